"""The keys of each page, for the sheet that ? opens and for the documentation."""

Keys = tuple[tuple[str, str], ...]  # keys, and what they do

EVERYWHERE: Keys = (
    ("Enter", "in the sentence: run it"),
    ("Esc", "one step back: clear the selection, then leave Present"),
    ("?", "this list"),
)
BY_PAGE: dict[str, Keys] = {
    "stage": (
        ("1, 2, 3, 4, 5", "the model, all heads, one head, one row, one number"),
        ("Enter, Esc", "one step deeper, one step back"),
        ("arrows", "another head, row, stop, word, place or product; with Shift another cell"),
        ("H, W", "hide the word, swap it"),
        ("S", "swap it with a second word, chosen by Shift and a click"),
        ("O", "switch the head off or on"),
        ("M", "mask the cell, or allow it"),
        ("+ −", "more or less weight for the cell"),
        ("N, K, T", "no positions, peek ahead, blur all heads"),
        ("B", "hold: the model as trained"),
        ("Y", "why: the reasons of the cell"),
        ("D", "in a row or a number: √d on and off"),
        ("space", "what the model writes; there: play, pause"),
    ),
    "inside": (("← →", "the step before and after"),),
    "lookup": (
        ("arrows", "on an arrow of the three words: move it; with Shift in steps of 0.1"),
    ),
    "lineage": (("← →", "the change before and after"),),
}  # fmt: skip
