"""Misconceptions that an answer in a lesson and a student's program share: name → what is said of
them. So a report counts both under one name."""

from collections.abc import Mapping

OF_ATTENTION = {
    "√d left out": "That is the dot product. Divide it by √d.",
    "divided by d": "You divided by d. Divide by its square root.",
    "√d_model": "You used the whole token's d_model. Use the d of one head.",
    "multiplied by √d": "Divide by √d instead: large sums should become smaller.",
    "rows for columns": "You transposed it: rows are queries, columns are keys.",
    "vectors, not tokens": "You multiplied Qᵀ K. It is Q Kᵀ: every query with every key.",
    "entries added": "The entries are multiplied, not added.",
    "no exponential": "You shared out the scores themselves. First raise e to each.",
    "winner takes all": "Attention mixes; it does not pick one.",
    "plain mean": "You counted each value equally. Weight them.",
    "sum of values": "Multiply by the weights first.",
}
OF_MASKS = {
    "True for False": "Those are the masked ones. Here True means: may attend.",
    "rows for columns": "You swapped rows and columns. A row is the token that attends.",
    "without the diagonal": "A token may attend to itself: the diagonal is allowed.",
}


def chosen(known: Mapping[str, str], *names: str) -> dict[str, str]:
    """Those of these names."""
    return {name: known[name] for name in names}
