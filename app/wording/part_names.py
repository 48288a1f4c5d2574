"""Names of kinds of attention, layers, heads, rows and parts of the model."""

from collections.abc import Sequence

from headlight.app.charts import Axis
from headlight.model.analysis.architecture import Block
from headlight.model.analysis.decomposition import HEAD, Term
from headlight.model.analysis.reading import Reading
from headlight.model.probing.sites import Part, embeddings_of
from headlight.model.probing.trace import Pass
from headlight.model.tokenizer import Encoding
from headlight.model.transformer import TokenEmbedding


def axes(trace: Pass, kind: str) -> tuple[Axis, Axis]:
    """Queries (rows) and keys (columns)."""
    (query_side, key_side), (query, key) = trace.sides_of(kind), trace.texts_of(kind)
    return (
        Axis(f"query ({query_side.title})", query.tokens),
        Axis(f"key ({key_side.title})", key.tokens),
    )


def picture_name(trace: Pass, kind: str, layer: int, head: int, average: str) -> str:
    """The head's name, or what the mean is over; `layer` indexes the trace's arrays."""
    name, number = kind_name(trace, kind), layer_number(trace, kind, layer)
    return {
        "": head_name(trace, kind, layer, head),
        "heads": f"{name}, layer {number}, mean over heads",
        "layers": f"{name}, head {head + 1}, mean over layers",
        "both": f"{name}, mean over all heads",
    }[average]


def kind_name(trace: Pass, kind: str) -> str:
    return trace.kinds[kind][0].title.capitalize()


def part_name(trace: Pass, part: Part) -> str:
    """The name of a part that can be changed."""
    if part.what == "attention":
        return kind_name(trace, part.kind)
    stack = trace.sides[part.side].stack.capitalize()
    return f"{stack} {'residual stream' if part.what == 'residual' else part.what}"


def row_names(trace: Pass) -> list[str]:
    """The token read at each row of the logits, and the next one: “kleines → Mädchen”."""
    text = trace.texts[trace.predicted.name]
    tokens = text.tokens[: len(trace.following) or 1]
    return [
        f"{token} → {following}"
        for token, following in zip(tokens, (*tokens[1:], "…"), strict=True)
    ]


def term_name(term: Term) -> str:
    """The name of a term of a logit."""
    if term.what == HEAD:
        return f"{term.kind} {term.layer + 1}·{term.head + 1}"
    return f"{term.what} {term.layer + 1}" if term.layer is not None else term.what


def layer_number(trace: Pass, kind: str, layer: int) -> int:
    """The number of a layer on screen, from 1. It may differ from its index in the trace's arrays:
    not every layer has every kind of attention."""
    return trace.kinds[kind][layer].layer + 1


def spaced(encoding: Encoding) -> list[bool]:
    """For each token, whether a space precedes it."""
    ends = [0, *(end for _, end in encoding.offsets)]
    return [
        end == start == 0 or start > before
        for (start, end), before in zip(encoding.offsets, ends, strict=False)
    ]


def side_labels(encoding: Encoding, reading: Reading) -> tuple[Sequence[str], list[bool]]:
    """The labels of a side, and for each whether a space precedes it."""
    apart = spaced(encoding)
    names, first = reading.shown(encoding)
    return names, [apart[i] for i in first]


def head_name(trace: Pass, kind: str, layer: int, head: int) -> str:
    number = layer_number(trace, kind, layer)
    return f"{kind_name(trace, kind)}, layer {number}, head {head + 1}"


def token_title(model) -> str:
    """A title for the vectors that positions are added to."""
    scaled = isinstance(embeddings_of(model)[0].token, TokenEmbedding)
    return "Token embeddings × √d_model" if scaled else "Token embeddings, unscaled"


BLOCKS = {  # Block.part → its name in the paper's figure
    "embedding": "Embedding",
    "position": "Positional Encoding",
    "feed_forward": "Feed Forward",
    "recurrence": "Recurrent Unit",
    "add_norm": "Add & Norm",
    "norm": "Norm",
    "mean": "Mean over Positions",
    "pooling": "Pooling",
    "dense": "Dense",
    "generator": "Linear",
    "softmax": "Softmax",
    "log_softmax": "Log-Softmax",
}


def block_name(trace: Pass, block: Block) -> str:
    """The name in the paper's figure; "Masked" while the causal mask is on."""
    if not block.kind:
        return BLOCKS[block.part]
    masked = "causal" in block.site.masks and trace.masks.causal
    return f"{'Masked ' * masked}Multi-Head Attention"
