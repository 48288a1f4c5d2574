"""What an open block of the architecture shows: its heads, its hidden numbers, or its vectors."""

import numpy as np

from headlight.app import theme
from headlight.app.components.colour_key import Scale, weight_scale
from headlight.app.components.model_map import BlockPicture, Inside, Unfolded
from headlight.app.components.packing import as_sent, shrink, to_bytes
from headlight.app.components.thumbnails import SIDE, signed_thumbnail, thumbnail
from headlight.app.results import layer_results
from headlight.app.results.shown import Shown
from headlight.app.shell.grid_display import off_tiles
from headlight.app.state import session
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text.part_names import block_title
from headlight.app.views import _blocks
from headlight.model.analysis.architecture import OUTPUT, Block
from headlight.model.analysis.head_metrics import most_telling_row
from headlight.model.probing.long_trace import LongTrace
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Pass, Trace
from headlight.model.rounding import percent

ACROSS = 128  # numbers of a vector that a picture shows side by side
LESS, *_, MORE = theme.DIFFERENCES["light"][1:-1]  # as signed_thumbnail draws them
SHOWN_ON = {  # Block.part → the key of the page that shows more
    "embedding": "positions", "position": "positions",
    "softmax": HOME, "log_softmax": HOME, "generator": HOME,
}  # fmt: skip


def unfolded(shown: Shown, trace: Trace | LongTrace, block: Block, kind: str) -> Unfolded:
    """All that an open block shows; `kind` is the attention that stands for it, or empty. Nothing
    here takes a pass through the model: a text too long for that has no pictures."""
    page = PAGES[SHOWN_ON.get(block.part, "inside" if kind else "residual")]
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
    title = block_title(trace, block)
    if block.layer is not None:
        depth = next(len(side.layers) for side in trace.sides.values() if side.stack == block.stack)
        title += f", layer {block.layer + 1} of {depth}"
    finding, inside = _inside(shown, trace, block)
    return Unfolded(
        title=title,
        finding=finding,
        text=_blocks.explained(shown.view.model, trace, block),
        link=(f"Open {page.title}", page.path, settings),
        inside=inside,
    )


def _inside(shown: Shown, trace: Trace | LongTrace, block: Block) -> tuple[str, Inside | None]:
    """What the block does with this sentence, and its pictures."""
    if block.site:
        query, key = trace.sides_of(block.kind)
        where = f"within the {key.title}" if query == key else f"from {query.title} to {key.title}"
        count = block.site.n_heads
        heads = f"{count} heads attend {where} in parallel." if count > 1 else f"one head, {where}."
        return heads, _heads(shown.run, trace, block) if isinstance(trace, Trace) else None
    if block.part == "feed_forward" and block.layer is not None and isinstance(trace, Trace):
        hidden = layer_results.hidden_of(shown, block.stack, block.layer)
        if hidden is not None:
            share, count = percent((hidden > 0).mean()), f"{hidden.shape[1]:,}"
            finding = f"each token activates {share} of the {count} hidden numbers on average."
            return finding, _hidden(hidden)
    if block.part in ("embedding", "position"):
        inside = _vectors(trace, block)
        added = ", and its position is added" * (len(inside.pictures) > 1)
        return f"each token becomes {block.shape[-1]:,} numbers{added}.", inside
    if block.stack == OUTPUT:
        return "from the last vectors to the prediction.", None
    return "keeps the vectors of every token in a usable range.", None


def _heads(run: Run, trace: Trace, block: Block) -> Inside:
    """A map of each head, with the row that the selected one shows best."""
    kind = block.kind
    layer = trace.kinds[kind].index(block.site)
    (query, key), (_, keys) = trace.sides_of(kind), trace.texts_of(kind)
    heads, focus = trace.attention[kind][layer], session.focus()
    selected = focus.head if (kind, layer) == (focus.kind, focus.layer) else -1
    row = session.chosen_token("follow")
    if not 0 <= row < heads.shape[1]:
        first = max(selected, 0)
        words = trace.row_words(kind, layer, first)
        found = most_telling_row(as_sent(heads[first]), words, keys.tokens)
        row = min(1, heads.shape[1] - 1) if found is None else found
    every = max(1, -(-max(heads.shape[1:]) // SIDE))
    cells = to_bytes(shrink(heads, every, every))
    off = off_tiles(run).get(kind, ())
    pictures, stops = [], session.stops()
    for head, weights in enumerate(heads):
        word = trace.row_words(kind, layer, head)[row]
        is_off = layer * len(heads) + head in off
        settings = {"kind": kind, "layer": (block.layer or 0) + 1, "head": head + 1}
        caption = "off" if is_off else f"{word} → {keys.tokens[weights[row].argmax()]}"
        pictures.append(
            BlockPicture(
                f"head {head + 1}", caption, thumbnail(cells[head], stops), row // every,
                cells.shape[1], settings, is_off, head == selected,
            )
        )  # fmt: skip
    key = [f"row: {query.title} (query)", f"column: {key.title} (key)", "framed: named above"]
    key += ["hatched: masked"] * (not cells.all())
    return Inside(pictures, [*key, weight_scale(session.palette()).html()], "Concat → Linear")


def _hidden(hidden: np.ndarray) -> Inside:
    """The hidden numbers of a feed-forward, (position, d_ff), that are above zero for a token."""
    positive = np.maximum(hidden, 0)
    order = np.argsort(-positive.mean(axis=0), kind="stable")[: positive.any(axis=0).sum()]
    caption = f"{len(order):,} of {hidden.shape[1]:,} are above zero for some token"
    picture = BlockPicture("hidden numbers", caption, signed_thumbnail(positive[:, order]))
    scale = Scale("", ("transparent", MORE), "0", f"{positive.max():.1f}")
    return Inside([picture], ["row: token", "column: hidden number", scale.html()])


def _vectors(trace: Pass, block: Block) -> Inside:
    """Token vectors, position vectors and their sum, on one scale."""
    side = next(side for side in trace.sides.values() if side.stack == block.stack)
    parts = {"tokens": trace.token.get(side.name), "positions": trace.table.get(side.name)}
    vectors = {name: part for name, part in parts.items() if part is not None and part.any()}
    if len(vectors) > 1:
        vectors["sum: what enters layer 1"] = np.sum([*vectors.values()], axis=0)
    most = max((np.abs(part).max() for part in vectors.values()), default=0.0)
    pictures = [
        BlockPicture(f"{sign}{name}", "", signed_thumbnail(part[:, :ACROSS], most))
        for sign, (name, part) in zip(("", "+ ", "= "), vectors.items(), strict=False)
    ]
    scale = Scale("", (LESS, "transparent", MORE), f"−{most:.1f}", f"{most:.1f}")
    columns = f"column: one of {min(ACROSS, block.shape[-1])} numbers"
    return Inside(pictures, [f"row: {side.title} token", columns, scale.html()])
