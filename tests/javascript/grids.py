"""Weights, texts and looks for tests of the head grid, in Node and in Chromium; and its state in
Node."""

from base64 import b64encode
from dataclasses import asdict, replace

import numpy as np

from headlight.app import theme
from headlight.app.components.packing import (
    GridOptions,
    GridText,
    PackedAttention,
    pack,
)

SOURCE = ["A", "dog", "runs", "on", "the", "beach", "."]
TARGET = ["<s>", "Ein", "Hund", "rennt", "am", "Strand", "."]
NAMES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}
SHOW = """({ bytes, look }) => {
  grid.takeWeights(Uint8Array.from(Buffer.from(bytes, "base64")));
  grid.takeLook(look);
}"""
FOCUS = dict(kind="cross", layer=1, head=2)
LOOK = GridOptions(
    focus=FOCUS,
    show="all kinds",
    scale="linear",
    order={},
    average="",
    least=0.0,
    palette=theme.WEIGHTS["ink"],
    colour=theme.FOCUS,
    acts=True,
    session="one",
)


def attention(kinds, source=SOURCE, target=TARGET, layers=4, heads=4) -> dict[str, np.ndarray]:
    """Random weights, (layers, heads, query, key) by kind."""
    random, lengths = np.random.default_rng(0), {"source": len(source), "target": len(target)}
    found = {}
    for kind in kinds:
        scores = 2 * random.normal(size=(layers, heads, *(lengths[side] for side in SIDES[kind])))
        if kind == "decoder":
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        shares = np.exp(scores)
        found[kind] = (shares / shares.sum(axis=-1, keepdims=True)).astype(np.float32)
    return found


def packed(
    weights, source=SOURCE, target=TARGET, answers=None, following=(), shifts=(), signed=0.0
) -> bytes:
    """`following` of the target, `shifts` of cross-attention; `signed` as in pack."""
    sides = {
        "source": GridText("Source", source, [True] * len(source)),
        "target": GridText("Target", target, [True] * len(target), following),
    }
    parts = [
        PackedAttention(
            kind,
            NAMES[kind],
            *SIDES[kind],
            cells,
            range(1, len(cells) + 1),
            shifts if kind == "cross" else (),
        )
        for kind, cells in weights.items()
    ]
    return pack(sides, parts, answers, signed)


class Grid:
    """A state in the words of these tests; layers and heads counted from 1, as on the screen."""

    def __init__(self, evaluate):
        self.evaluate, self.weights = evaluate, attention(NAMES)
        evaluate("() => { globalThis.grid = new GridState(true); grid.act = () => {}; }")
        self.look()

    def __call__(self, expression: str):
        return self.evaluate(f"() => {expression}")

    def show(self, packed: bytes, look=LOOK) -> "Grid":
        sent = {name: value for name, value in asdict(look).items() if value != {}}
        argument = {"bytes": b64encode(packed).decode(), "look": sent | {"order": {}}}
        self.evaluate(SHOW, argument)
        return self

    def look(self, **other) -> "Grid":
        return self.show(packed(self.weights), replace(LOOK, **other))

    def said(self) -> str:
        return self("grid.now().message.flatMap((part) => [part].flat()[0]).join('')")

    def point(self, kind, layer, head, row, column) -> str:
        tile = 4 * (layer - 1) + head - 1
        self(f"void (grid.pointed = grid.cell(grid.part('{kind}'), {tile}, {row}, {column}))")
        return self.said()

    def word(self, side: str, index: int, pinned: bool = False) -> str:
        """With a word pointed at or pinned, and nothing else."""
        word = f"{{ tokens: [{{ side: '{side}', index: {index} }}], to: [] }}"
        others = ["pointed", "pinned"]
        self(f"void (grid.{others.pop(pinned)} = {word}, grid.{others[0]} = null)")
        return self.said()

    def marked(self) -> list[int]:
        return self("grid.marked(grid.now().pointed).rows.map(({ index }) => index)")

    def shaded(self, side: str, is_attended: bool) -> np.ndarray:
        """How strongly each word of a side is shaded."""
        shades = np.zeros(len(SOURCE))
        for token, attended, weight in self("grid.shades(grid.now().pointed).shaded"):
            if token["side"] == side and attended == is_attended:
                shades[token["index"]] = weight
        return shades

    def answers(self) -> tuple[str, list[str]]:
        """The heading of the predictions, and their bars."""
        found = self("grid.answersAt(grid.now().pointed)")
        bars = [" ".join([bar["label"], *bar["notes"]]) for bar in found["bars"]]
        return found["title"], bars
