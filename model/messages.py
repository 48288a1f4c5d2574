"""What a message quotes: one line, short enough to read, whatever a file or a name holds."""

LONGEST_MESSAGE = 300  # characters of a message
MOST_OF_NAME, MOST_OF_REASON = 80, 150  # characters of a name or a path, and of a reason, in it


def short(text: object, most: int = MOST_OF_NAME) -> str:
    """`text` on one line of at most `most` characters, with its middle left out where there are
    more; what cannot be printed, such as the odd bytes of a file name, is �."""
    # A little more than is kept: what stands beyond it is not looked at.
    text = str(text)
    text = text if len(text) <= 4 * most else f"{text[: 2 * most]}{text[-2 * most :]}"
    line = "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))
    if len(line) <= most:
        return line
    half = (most - 1) // 2
    return f"{line[: most - 1 - half]}…{line[-half:]}"


def reason(error: BaseException) -> str:
    """Why, without a full stop: of an error of the system without its number and its file."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return short(text, MOST_OF_REASON).rstrip(".")
