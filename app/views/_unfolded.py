"""What an open block of the architecture shows: its heads, its hidden numbers, or its vectors."""

import numpy as np

from headlight.app.components.model_map import BlockPicture, Unfolded
from headlight.app.components.packing import as_sent, shrink, to_bytes
from headlight.app.components.thumbnails import SIDE, signed_thumbnail, thumbnail
from headlight.app.results import layer_results
from headlight.app.shell.grid_display import off_tiles
from headlight.app.state import session
from headlight.app.state.catalog import ModelView
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text.part_names import block_name
from headlight.app.views import _blocks
from headlight.model.analysis.architecture import OUTPUT, Block
from headlight.model.analysis.head_metrics import most_telling_row
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Pass, Trace
from headlight.model.rounding import percent

VECTORS = "embedding", "position"
ACROSS = 128  # numbers of a vector that a picture shows side by side


def unfolded(
    view: ModelView, run: Run, trace: Trace | LongTrace, block: Block, kind: str
) -> Unfolded:
    """All that an open block shows; `kind` is the attention that stands for it, or empty. Nothing
    here takes a pass through the model: a text too long for that has no pictures."""
    pages = {"embedding": "positions", "position": "positions"}
    pages |= {"softmax": HOME, "log_softmax": HOME, "generator": HOME}
    page = PAGES[pages.get(block.part, "inside" if kind else "residual")]
    settings = {}
    if kind:
        after = "Feed-forward" if block.sublayer == "feed_forward" else "Add & norm"
        focus = session.focus()
        head = focus.head if (kind, block.layer) == (focus.kind, focus.layer) else 0
        settings = {
            "kind": kind,
            "layer": (block.layer or 0) + 1,
            "head": head + 1,
            "at": "Input" if block.kind else after,
        }
    pictures = []
    if isinstance(trace, Trace):
        if block.kind:
            pictures = _heads(run, trace, block)
        elif block.part == "feed_forward" and block.layer is not None:
            pictures = _hidden(layer_results.hidden_of(view, run, block.stack, block.layer))
    if block.part in VECTORS:
        pictures = _vectors(trace, block)
    return Unfolded(
        where=f"layer {block.layer + 1}" if block.layer is not None else "",
        text=_blocks.explained(view.model, trace, block),
        facts=_blocks.in_numbers(trace, block),
        link=(f"Open {page.title}", page.path, settings),
        pictures=pictures,
        joins="Concat → Linear" if block.kind else "",
    )


def _heads(run: Run, trace: Trace, block: Block) -> list[BlockPicture]:
    """A map of each head, with the row that the selected one shows best."""
    kind = block.kind
    layer = trace.kinds[kind].index(block.site)
    _, keys = (text.tokens for text in trace.texts_of(kind))
    heads, focus = trace.attention[kind][layer], session.focus()
    selected = focus.head if (kind, layer) == (focus.kind, focus.layer) else -1
    row = session.chosen_token("follow")
    if not 0 <= row < heads.shape[1]:
        first = max(selected, 0)
        words = trace.row_words(kind, layer, first)
        found = most_telling_row(as_sent(heads[first]), words, keys)
        row = min(1, heads.shape[1] - 1) if found is None else found
    every = max(1, -(-max(heads.shape[1:]) // SIDE))
    cells = to_bytes(shrink(heads, every, every))
    off = off_tiles(run).get(kind, ())
    pictures = []
    for head, weights in enumerate(heads):
        word = trace.row_words(kind, layer, head)[row]
        is_off = layer * len(heads) + head in off
        settings = {"kind": kind, "layer": (block.layer or 0) + 1, "head": head + 1}
        caption = "off" if is_off else f"{word} → {keys[weights[row].argmax()]}"
        pictures.append(
            BlockPicture(
                f"head {head + 1}", caption, thumbnail(cells[head]), row // every,
                cells.shape[1], settings, is_off, head == selected,
            )
        )  # fmt: skip
    return pictures


def _hidden(hidden: np.ndarray | None) -> list[BlockPicture]:
    """The hidden numbers of a feed-forward, (position, d_ff), that are above zero for a token."""
    if hidden is None:
        return []
    positive = np.maximum(hidden, 0)
    order = np.argsort(-positive.mean(axis=0), kind="stable")[: positive.any(axis=0).sum()]
    title = f"A row per token, a column for {len(order):,} hidden numbers"
    caption = f"{percent((hidden > 0).mean())} of all {hidden.shape[1]:,} are above zero"
    return [BlockPicture(title, caption, signed_thumbnail(positive[:, order]))]


def _vectors(trace: Pass, block: Block) -> list[BlockPicture]:
    """Token vectors, position vectors and their sum, on one scale."""
    side = next(side for side in trace.sides.values() if side.stack == block.stack)
    parts = {"tokens": trace.token.get(side.name), "positions": trace.table.get(side.name)}
    vectors = {name: part for name, part in parts.items() if part is not None and part.any()}
    if len(vectors) > 1:
        vectors["sum: what enters layer 1"] = np.sum([*vectors.values()], axis=0)
    most = max((np.abs(part).max() for part in vectors.values()), default=0.0)
    signs = ["", "+ ", "= "]
    return [
        BlockPicture(f"{sign}{name}", "", signed_thumbnail(part[:, :ACROSS], most))
        for sign, (name, part) in zip(signs, vectors.items(), strict=False)
    ]


def finding(trace: Pass, block: Block, shown: Unfolded) -> str:
    """What the open block does with this sentence."""
    name = f"**{block_name(trace, block)}**" + f", {shown.where}" * bool(shown.where)
    if block.site:
        query, key = trace.sides_of(block.kind)
        where = f"within the {key.title}" if query == key else f"from {query.title} to {key.title}"
        count = block.site.n_heads
        heads = f"{count} heads attend {where} at the same time" if count > 1 else "one head"
        return f"{name}: {heads}, and one matrix mixes what they bring."
    if block.part == "feed_forward" and shown.pictures:
        share, *rest = shown.pictures[0].caption.split(" are")[0].split(" of all ")
        return f"{name}: each token activates {share} of the {rest[0]} hidden numbers on average."
    if block.part in VECTORS:
        added = ", and its position is added" * (len(shown.pictures) > 1)
        return f"{name}: each token becomes {block.shape[-1]:,} numbers{added}."
    if block.stack == OUTPUT:
        return f"{name}: from the last vectors to the prediction."
    return f"{name}: keeps the vectors of every token in a usable range."
