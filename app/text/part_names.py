"""Names of kinds of attention, layers, heads, rows and parts of the model."""

from collections.abc import Sequence

from headlight.app.text.axis import Axis
from headlight.model.analysis.architecture import Block
from headlight.model.analysis.decomposition import Term
from headlight.model.analysis.reading import Reading
from headlight.model.probing.changes import Change, Scope
from headlight.model.probing.sites import Part, Place, embeddings_of
from headlight.model.probing.trace import Pass
from headlight.model.tokenizer import Encoding
from headlight.model.transformer import TokenEmbedding

Axes = tuple[Axis, Axis]
READING = Reading()


def axes(trace: Pass, place: Place, reading: Reading = READING) -> Axes:
    """Queries (rows), each labelled by the word that the head follows, and keys (columns). The
    title of rows with two words says which of them stands there."""
    kind = place.kind
    (query_side, key_side), (_, key) = trace.sides_of(kind), trace.texts_of(kind)
    labels, hover = row_labels(trace, place, reading)
    is_written = trace.shift(*place) and not reading.average
    word = "" if not hover else ", about to be written" if is_written else ", just read"
    return (
        Axis(f"query ({query_side.title}{word})", labels, hover=hover),
        Axis(f"key ({key_side.title})", reading.shown(key)[0]),
    )


def row_labels(
    trace: Pass, place: Place, reading: Reading = READING
) -> tuple[Sequence[str], Sequence[str]]:
    """The word that a head follows at each of its rows, and the same with the other of the two that
    a decoder's row stands for; empty where there is no other. Heads of a mean may follow different
    words, and tokens of a word stand in different rows: then the word read."""
    query, _ = trace.sides_of(place.kind)
    read, _ = reading.shown(trace.texts[query.name])
    if query != trace.predicted or not (after := following(trace, reading)):
        return read, ()
    if trace.shift(*place) and not reading.average:
        return after, [f"{b} (read: {a})" for a, b in zip(read, after, strict=True)]
    return read, [f"{a} (next: {b})" for a, b in zip(read, after, strict=True)]


def following(trace: Pass, reading: Reading) -> Sequence[str]:
    """For each row of the predicted text the token that it predicts; empty where rows predict
    something else, or tokens are put together to words."""
    if reading.words or not (tokens := trace.next_tokens):
        return ()
    _, first = reading.shown(trace.texts[trace.predicted.name])
    return [tokens[i] for i in first]


def both_words(trace: Pass, kind: str, reading: Reading = READING) -> Sequence[tuple[str, str]]:
    """For each row of the text that a decoder writes, both words that it stands for: the one just
    read, and the next one; empty for other rows."""
    query, _ = trace.sides_of(kind)
    if query != trace.predicted or not (after := following(trace, reading)):
        return ()
    read, _ = reading.shown(trace.texts[query.name])
    return list(zip(read, after, strict=True))


def moments(trace: Pass, kind: str, reading: Reading = READING) -> Sequence[str]:
    """`both_words` in words."""
    return [
        f"Having read “{word}”, about to write “{next_word}”"
        for word, next_word in both_words(trace, kind, reading)
    ]


def shared_row_labels(trace: Pass, kind: str, layers: Sequence[int]) -> Sequence[str]:
    """Labels of rows that all heads of some layers share: the word that they follow, or both where
    they differ."""
    read = trace.texts_of(kind)[0].tokens
    if kind not in trace.shifts or not (shifts := trace.shifts[kind][list(layers)]).any():
        return read
    return trace.next_tokens if shifts.all() else _both(read, trace.next_tokens)


def _both(read: Sequence[str], following: Sequence[str]) -> list[str]:
    return [f"{a} → {b}" for a, b in zip(read, following, strict=True)]


def picture_name(trace: Pass, place: Place, average: str) -> str:
    """The head's name, or what the mean is over."""
    kind, layer, head = place
    name, number = kind_name(trace, kind), layer_number(trace, kind, layer)
    return {
        "": head_name(trace, place),
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
    return _both(tokens, (*tokens[1:], "…"))


def term_name(term: Term) -> str:
    """The name of a term of a logit."""
    if term.layer is not None and term.head is not None:
        return f"{term.kind.replace('_', ' ')} {term.layer + 1}.{term.head + 1}"
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


def head_name(trace: Pass, place: Place) -> str:
    kind, layer, head = place
    return f"{kind_name(trace, kind)}, layer {layer_number(trace, kind, layer)}, head {head + 1}"


def token_title(model) -> str:
    """A title for the vectors that positions are added to."""
    scaled = isinstance(embeddings_of(model)[0].token, TokenEmbedding)
    return "Token embeddings × √d_model" if scaled else "Token embeddings, unscaled"


BLOCKS = {  # Block.part → its name in the paper's figure
    "embedding": "Embedding",
    "position": "Positional Encoding",
    "feed_forward": "Feed Forward",
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
    if not block.site:
        return BLOCKS[block.part]
    masked = "causal" in block.site.masks and trace.masks.causal
    return f"{'Masked ' * masked}Multi-Head Attention"


def chip(change: Change, keys: Sequence[str] = ()) -> str:
    """A change in a few words: “Cross 1.2 off”, “Encoder “woman” hidden”. `keys`: the tokens that
    its part attends to, where known."""
    return f"{short_name(change.scope)} {change.in_words(keys)}"


def short_name(scope: Scope) -> str:
    """A head, its layer or its kind of attention: “Cross 1.2”."""
    kind = scope.kind.replace("_", " ").capitalize()
    if scope.layer is None:
        return kind
    if scope.head is None:
        return f"{kind} layer {scope.layer + 1}"
    return f"{kind} {scope.layer + 1}.{scope.head + 1}"
