"""Lines and sentence pairs of a typed text."""


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def pairs_of(text: str) -> list[tuple[str, str]]:
    """Source and target of each line, separated by a tab; "" for a line without one. Further
    columns are ignored."""
    columns = ((*line.split("\t"), "") for line in lines_of(text))
    return [(source.strip(), target.strip()) for source, target, *_ in columns]
