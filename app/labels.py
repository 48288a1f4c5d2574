"""What the pages say: one wording for one thing."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np

from app.charts import Axis
from model.analysis.alignment import GOLD, HeadAlignment
from model.analysis.architecture import Block
from model.analysis.decomposition import HEAD, Term
from model.analysis.domain import Domain
from model.analysis.head_metrics import (
    Measured,
    measure,
    nearest_names,
    rows_that_show,
    tokens_of,
    with_one_key,
)
from model.analysis.leak import Leak
from model.analysis.positions import answers
from model.analysis.projection import Answer, Plane
from model.analysis.reading import Reading
from model.corpus.survey import Survey
from model.families.parts import HalvedPositions
from model.probing.long_trace import LongTrace
from model.probing.reference import without_counterpart
from model.probing.run import Run
from model.probing.sites import Part, embeddings_of, predicted_side
from model.probing.trace import Pass, Trace
from model.tokenizer import Encoding
from model.transformer import TokenEmbedding
from model.variants import LearnedPositions, PositionsFromOne

MOST_ROWS = 8  # that a sentence names
EMBEDDING, MASKED_TOKEN = "embedding", "masked token"
ANSWERS = {  # what a model predicts → what that is called
    "class": "Class",
    "next token": "Next token",
    MASKED_TOKEN: "Most probable in each place",
}
LONGEST_NAME = 300  # characters of what anyone may have written into a card

NO_DIFFERENCE = "Differences are drawn on Attention; here this run is shown, with its changes."
CHANGES = """What is changed in the model while it runs, separated by semicolons: a kind of
attention (or `all`), perhaps a layer and a head, and what is done to it. Tokens count from 1.

| | |
|---|---|
| `cross.1.2=off` | the output of head 2 in layer 1 is zero; `mean`: its mean over many texts |
| `encoder.2=uniform` | its heads attend to everything alike |
| `encoder_feed_forward.2=skip` | the sublayer adds nothing to the residual stream |
| `cross=hide:3,4` | nobody attends to tokens 3 and 4 |
| `decoder=mask:window-2` | or `none`, `causal`, `prefix-2`, `strided-2`, `diagonal`, `no_first` … |
| `decoder.1=forbid:3>1` | query 3 may not attend to key 1; or `allow` |
| `cross.4=temperature:0.5` | scores are divided by it before the softmax |
| `encoder.1.3=weight:2>4:0.7` | one weight is set, the others of its row are scaled |
| `source=positions:none` | or `sinusoidal`, `learned`, `shifted-3` |
| `cross.3.4=patch` | as it is for the other sentence; `patch:2,3`: at these tokens |

The other sentence is read with the same target. Heads can be patched from it, and weights compared
with it, where both have as many tokens.
"""
SHARES = {  # numbers of Measured that are shares → on what
    "itself": "itself",
    "previous": "previous",
    "next": "next",
    "first": "first",
    "end": "</s>",
    "punctuation": "punctuation",
    "same_token": "same token",
    "diagonal": "the diagonal",
}


def axes(trace: Pass, kind: str) -> tuple[Axis, Axis]:
    """Queries (rows) and keys (columns)."""
    (query_side, key_side), (query, key) = trace.sides_of(kind), trace.texts_of(kind)
    return (
        Axis(f"query ({query_side.title})", query.tokens),
        Axis(f"key ({key_side.title})", key.tokens),
    )


def picture_name(trace: Pass, kind: str, layer: int, head: int, average: str) -> str:
    """The head, or what the mean is over. `layer` is that of the trace's arrays."""
    name, number = kind_name(trace, kind), layer_number(trace, kind, layer)
    return {
        "": head_name(trace, kind, layer, head),
        "heads": f"{name}, layer {number}, mean over its heads",
        "layers": f"{name}, head {head + 1}, mean over the layers",
        "both": f"{name}, mean over all heads",
    }[average]


def kind_name(trace: Pass, kind: str) -> str:
    return trace.kinds[kind][0].title.capitalize()


def part_name(trace: Pass, part: Part) -> str:
    """Of what can be changed by itself."""
    if part.what == "attention":
        return kind_name(trace, part.kind)
    stack = trace.sides[part.side].stack.capitalize()
    return f"{stack} {'residual stream' if part.what == 'residual' else part.what}"


def row_names(trace: Pass) -> list[str]:
    """What is read at each row of the logits, and what follows there: “kleines → Mädchen”."""
    text = trace.texts[trace.predicted.name]
    tokens = text.tokens[: len(trace.following) or 1]
    return [f"{one} → {two}" for one, two in zip(tokens, (*tokens[1:], "…"), strict=True)]


def term_name(term: Term) -> str:
    """What adds to a logit, in a few words."""
    if term.what == HEAD:
        return f"{term.kind} {term.layer + 1}·{term.head + 1}"
    return f"{term.what} {term.layer + 1}" if term.layer is not None else term.what


TERMS = (
    "What writes to the residual stream adds to the logit: the token, its position, every head and "
    "every feed-forward; the biases are one part. Norms divide by a scale, which is frozen at its "
    "value in this run: so the parts add up exactly, and it does not tell what the model would do "
    "without one (the page Ablation does). A click on a head selects it."
)
METHODS = (
    "**attention**: the mean weight of all heads; **head**: of the selected one; **rollout**: "
    "attention followed down through all layers (Abnar & Zuidema 2020); **norms**: weights times "
    "the length of what is sent (Kobayashi et al. 2020); **gradient**: times the embedding; "
    "**removal**: what the score loses without the word. Above: Spearman’s rank correlation of "
    "what they say of the words; 1 is the same order."
)

SHIFTS = ("is read", "is predicted")  # by shift: the row at which a head aligns a word


def alignment_note(
    found: HeadAlignment,
    heads: Sequence[tuple[int, int]],
    sites,
    shift: int | None,
    dashed: bool,
) -> str:
    """What the lines are drawn from: heads, each at its own row or all at one, or, of none, the
    influence; and what is `dashed`."""
    if heads:
        rows = found.shifts if shift is None else np.full_like(found.shifts, shift)
        names = ", ".join(
            f"layer {sites[layer].layer + 1} head {head + 1} "
            f"(word that {SHIFTS[rows[layer, head]]})"
            for layer, head in heads
        )
        note = f"Each target word with the source word it attends to most, in {names}."
    else:
        note = (
            "Each target word with the source word without which its log-probability falls most; "
            "thick: much of all that it loses."
        )
    return note + " Dashed: the run without the changes, or the other run." * dashed


def alignment_explained(found: HeadAlignment, sites, known: bool) -> str:
    """How the heads were measured and chosen; `known` on many sentences, else on this one."""
    heads = " and ".join(
        f"layer {sites[layer].layer + 1} head {head + 1}" for layer, head in found.heads
    )
    where = "of other sentences" if known else "of this sentence; none were chosen on others"
    right = (
        "one that a person linked"
        if found.by == GOLD
        else "the one that the model needs most (influence: hide it, and the log-probability of "
        "the target word falls most)"
    )
    return (
        "A row of the decoder reads one token and predicts the next; which of the two a head "
        "aligns is measured. **Agreement**: how often the source word with the largest weight is "
        f"{right}. Best set: {heads}, which agree for {found.together:.0%} of "
        f"{found.words:,} target words {where}. A click on a row shows that head."
    )


def too_large_a_sweep(tokens: int, most: int) -> str:
    return (
        f"To change each of these by itself, {tokens:,} tokens would go through the model; at most "
        f"{most:,} are allowed. Take a shorter text, or change heads or sublayers as a whole."
    )


STOPPED = "You stopped what takes long here."


def so_far(measured: int, missing: int) -> str:
    """How far a sweep is."""
    return f"{measured:,} of {measured + missing:,} measured"


def too_many_removals(tokens: int, most: int) -> str:
    return (
        f"To leave out each token of the text by itself, {tokens:,} tokens would go through the "
        f"model; at most {most:,} are allowed. Take a shorter text."
    )


def sweep_explained(score: float, has_other: bool) -> str:
    """What the numbers of a sweep are."""
    more = (
        ""
        if has_other
        else (
            " Name another sentence, model or step under “What if”, and heads and the residual "
            "stream can be patched from it."
        )
    )
    return (
        f"**Effect**: the score with the one change less the score without any, "
        f"{signed(score)}. Below 0, the output needs what was changed. Click a row to "
        f"select its head on the other pages.{more}"
    )


def signed(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def layer_number(trace: Pass, kind: str, layer: int) -> int:
    """What a layer of the trace's arrays is called, counted from 1: not every layer of a model has
    every kind of attention."""
    return trace.kinds[kind][layer].layer + 1


def spaced(encoding: Encoding) -> list[bool]:
    """For each token, whether it stands apart from the one before."""
    ends = [0, *(end for _, end in encoding.offsets)]
    return [
        end == start == 0 or start > before
        for (start, end), before in zip(encoding.offsets, ends, strict=False)
    ]


def ahead(people: int) -> str:
    """How long one still waits, in people."""
    if not people:
        return "You are next …"
    return f"{people} {'people are' if people > 1 else 'person is'} ahead of you …"


def side_labels(encoding: Encoding, reading: Reading) -> tuple[Sequence[str], list[bool]]:
    """What is shown of a side: labels, and for each whether it stands apart."""
    apart = spaced(encoding)
    names, first = reading.shown(encoding)
    return names, [apart[i] for i in first]


def head_name(trace: Pass, kind: str, layer: int, head: int) -> str:
    number = layer_number(trace, kind, layer)
    return f"{kind_name(trace, kind)}, layer {number}, head {head + 1}"


def card(trace: Trace | LongTrace, kind: str, weights: np.ndarray) -> str:
    """Markdown on one head with its weights (query, key): a line of plain numbers, the patterns it
    is nearest to, each with its rule and the rows that show it, and which rows have no choice."""
    query, key, self_attention = tokens_of(trace, kind)
    weights = weights[None, None]
    measured = measure(weights, query, key, self_attention)
    numbers = head_numbers(measured, 0, 0)
    alone = _only_one_key(query, with_one_key(trace.allowed(kind)))
    if "entropy" not in numbers:
        return "\n\n".join(filter(None, ["Too few tokens to measure: no row has a choice.", alone]))
    shares = ", ".join(
        f"{label} {percent(numbers[name])}" for name, label in SHARES.items() if name in numbers
    )
    lines = [
        f"Entropy {numbers['entropy']:.1f} bits · mean distance {numbers['distance']:.1f} tokens · "
        f"share of weight on: {shares}\n"
    ]
    for match in nearest_names(measured, 0, 0):
        line = f"- **{match.name}** {percent(match.score)}: {match.reason}"
        rows = rows_that_show(weights, query, key, self_attention, 0, 0, match.name)
        if rows and match.score > 0:
            line += f"; clearest in the rows {_quoted(query, rows)}"
        lines.append(line + ".")
    return "\n".join([*lines, *(["", alone] if alone else [])])


GONE = "This head was pruned: it attends to nothing, and writes nothing."


def is_gone(card: Mapping, kind: str, layer: int, head: int) -> bool:
    """Whether a model's card says that a head was pruned; layer of the model, from 0."""
    return {"kind": kind, "layer": layer, "head": head} in card.get("pruned", ())


def _only_one_key(query: Sequence[str], rows: Sequence[int]) -> str:
    if not rows:
        return ""
    which = f"{_quoted(query, rows[:MOST_ROWS])}{' …' if len(rows) > MOST_ROWS else ''}"
    row, has = ("Row", "has its") if len(rows) == 1 else ("Rows", "have their")
    return f"{row} {which} {has} whole weight, 1, on one token: only one key is visible."


def _quoted(tokens: Sequence[str], rows: Sequence[int]) -> str:
    return ", ".join(f"“{escaped(tokens[row])}”" for row in rows)


def percent(share: float) -> str:
    return f"{100 * share:.0f}\u202f%"


def size(count: int) -> str:
    """Of a file with so many bytes."""
    return f"{count / 1e6:,.0f} MB" if count >= 2e6 else f"{count / 1e3:,.0f} kB"


INTERVAL, P = ", 95 %", ", p"  # behind the name of a column: its interval, its p


def always(survey: Survey, kind: str, layer: int, head: int) -> str:
    """Whether a head is always as it is in one sentence; layer of the model, from 0."""
    return f"*Is this head always like this?* {survey.in_words(kind, layer, head)}"


def head_numbers(measured: Measured, layer: int, head: int) -> dict[str, float]:
    """What could be measured of a head: a causal decoder has no next token to attend to."""
    return {
        name: float(values[layer, head])
        for name, values in measured.numbers.items()
        if measured.rows[name][layer, head]
    }


# What Streamlit makes of plain text once Markdown is parsed, where a backslash no longer helps:
# links of http://, www. and a@b.c, icons and emoji of :name:, arrows of -> and its like.
APART = re.compile(
    r"(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)|(?=@)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE
)
NOTHING = ":small[]"  # an empty span: two texts instead of one


def escaped(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is, in one paragraph."""
    parts = (re.sub(r"[!-/:-@[-`{-~]", r"\\\g<0>", part) for part in APART.split(text))
    return re.sub(r"^[ \t]|[\n\r]", lambda space: f"&#{ord(space[0])};", NOTHING.join(parts))


def leak(trace: Pass, found: Leak) -> str:
    """How much attention goes where a mask of training would not let it, layer by layer."""
    layers = ", ".join(percent(share) for share in found.shares)
    which = "layer by layer" if len(found.shares) > 1 else "in its layer"
    return f"{kind_name(trace, found.kind)}, weight on {found.where}, {which}: {layers}."


def notices(side: str, text: str, encoding: Encoding) -> list[str]:
    """What one should know about a typed text before reading the pictures."""
    if not text:
        return []
    notes = []
    control = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cf")})
    if control:
        names = ", ".join(f"U+{ord(c):04X}" for c in control)
        notes.append(
            f"The {side} holds invisible characters ({names}). The model reads them like any "
            "other; the pictures show them by their code."
        )
    torn = sorted({text[start] for start, end in _spans_of_several_tokens(encoding)} - {*control})
    if torn:
        names = ", ".join(f"U+{ord(c):04X}" for c in torn[:8]) + (" …" if len(torn) > 8 else "")
        notes.append(
            f"The {side} holds characters that the model has hardly or never met in training "
            f"({names}). It reads them byte by byte (🙂 1/4 is the first of four bytes), so do not "
            "expect it to know them."
        )
    return notes


def left_out(count: int) -> str:
    """On pasted pairs whose source stood in another one too."""
    pairs = "pair was" if count == 1 else "pairs were"
    return (
        f"{count:,} pasted {pairs} left out: of pairs with the same source, the last one is kept."
    )


def unlike_training(domain: Domain, card: Mapping) -> str:
    """A sentence on a text that is unlike what the model was trained on."""
    language = LANGUAGES.get((card.get("direction") or [""])[-1])
    wanted = f"good {language}" if language else "a sound verdict" if card.get("classes") else ""
    return (
        f"This model was trained on {escaped(domain.text[:LONGEST_NAME])}; do not expect "
        f"{wanted or 'a good answer'} here."
    )


def _spans_of_several_tokens(encoding: Encoding) -> set[tuple[int, int]]:
    counts = Counter(span for span in encoding.offsets if span[1] - span[0] == 1)
    return {span for span, count in counts.items() if count > 1}


def empty_rows(weights: np.ndarray, query: Axis) -> str | None:
    """A sentence on the rows of (query, key) that may attend to nothing."""
    empty = [query.labels[i] for i in np.flatnonzero(~weights.any(axis=1))]
    if not empty:
        return None
    which = ", ".join(f"“{escaped(token)}”" for token in empty[:8]) + (
        " …" if len(empty) > 8 else ""
    )
    return (
        f"Under these masks {len(empty)} of {len(query.labels)} rows may attend to nothing and are "
        f"left blank: {which}. Their weights are all zero."
    )


def in_plane(plane: Plane, answer: Answer, sides: tuple[str, str], width: int) -> str:
    """What a head's queries and keys, of `width` numbers, lose in the plane, and by how much
    that misleads on one query."""
    query_title, key_title = sides
    whose = (
        f"Queries and keys both come from the {query_title}"
        if query_title == key_title
        else f"Queries come from the **{query_title}**, keys from the **{key_title}**"
    )
    text = (
        f"{whose}, {width} numbers each. The plane is a PCA of queries and keys together and "
        f"keeps **{percent(plane.explained.sum())}** of their variance. Weights are the head's "
        "own. "
    )
    off = answer.off()
    if not off.size:
        return f"{text}Under these masks it may attend to nothing: its weights are all zero."
    return (
        f"{text}Dot products in the plane are only approximate: for this query q·k ÷ √{width} is "
        f"off by {off.mean():.2f} on average and at most {off.max():.2f}, and weights made of them "
        f"would put **{percent(answer.total_variation())}** of the row elsewhere."
    )


def positions(model) -> str:
    """What kind of positional table a model has."""
    position = embeddings_of(model)[0].position
    if not all(side.table for side in model.sides()):
        return "None: it turns queries and keys instead."
    if isinstance(position, LearnedPositions):
        return "It was learned, one vector a position, like the words'."
    if isinstance(position, HalvedPositions):
        return "All sines, then all cosines, in each half fast waves on the left."
    text = "Sine and cosine by turns, fast waves on the left, slow ones on the right."
    if isinstance(position, PositionsFromOne):
        return f"{text} Its frequencies begin at k = 1, one pair later than the paper's."
    return text


def place_of_norm(final: bool, stack: str) -> str:
    """What a stack's norms do to the length of a vector: a final one tells that they come before
    the sublayers."""
    if final:
        return (
            f"The norms of this {stack} come before its sublayers (pre-norm), so the sum is free "
            "to grow, and a final norm follows the last layer."
        )
    return (
        f"Each layer of this {stack} ends in a norm of its own (post-norm), which sets every "
        "vector to about one length; no final norm follows."
    )


def far_longer(tokens: Sequence[str], lengths: Sequence[float], top: float) -> str:
    """What is said of vectors longer than `top`, where the colours end; `lengths` are the greatest
    of each token's."""
    far = [f"“{token}”" for token, length in zip(tokens, lengths, strict=True) if length > top]
    if not far:
        return ""
    names = escaped(", ".join(far[:3]) + (" …" if len(far) > 3 else ""))
    return (
        f"The vector of {names} is up to {max(lengths):,.0f} long, and the colours end at "
        f"{top:,.0f}: such massive activations (Sun et al. 2024) are often the first token's, and "
        "many heads attend to them."
    )


POSITIONS = {  # kind of positional table (see model/analysis/positions.py) → what a model is given
    "sinusoidal": "sines and cosines as in the paper, each row as long as the model's own",
    "learned": "a table that was not its own: random vectors as long as the model's own rows, the "
    "same every time, as a learned table is before training",
    "none": "zeros: the words alone",
    "shifted": "its own table from a later row on, as if other words stood before the sentence",
}


def token_title(model) -> str:
    """What the model adds the positions to."""
    scaled = isinstance(embeddings_of(model)[0].token, TokenEmbedding)
    return "Token embeddings × √d_model" if scaled else "Token embeddings, not scaled"


def compared(trace: Pass, kind: str) -> str:
    """What is done to queries and keys before the scores compare them, as sentences."""
    site, told = trace.kinds[kind][0], ""
    if not trace.sides[site.query_side].table:
        told += " Queries and keys are turned by their positions here, as the scores compare them."
    if site.n_key_heads < site.n_heads:
        told += f" The {site.n_heads} heads share {site.n_key_heads} heads of keys."
    return told


BLOCKS = {  # part of a Block → its name in the paper's figure
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
    """As the paper's figure has it; attention is masked while its causal mask is on."""
    if not block.kind:
        return BLOCKS[block.part]
    masked = "causal" in block.site.masks and trace.masks.causal
    return f"{'Masked ' * masked}Multi-Head Attention"


def times(shape: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


def odd_parts(model) -> str:
    """The parts of a model for which torch.nn.Transformer has no counterpart."""
    return " and ".join(without_counterpart(model))


def first_undefined(attention: dict[str, np.ndarray], trace: Trace) -> str | None:
    """A sentence on where PyTorch's weights, (layers, heads, query, key), stop being numbers, where
    ours are."""
    for kind, weights in attention.items():
        alone = np.isnan(weights) & ~np.isnan(trace.attention[kind])
        undefined = alone.any(axis=(1, 3))  # (layers, query)
        if undefined.any():
            layer, row = np.argwhere(undefined)[0]
            token = escaped(axes(trace, kind)[0].labels[row])
            return (
                f"PyTorch's weights are NaN from {trace.kinds[kind][0].title}, layer "
                f"{layer_number(trace, kind, layer)}, row “{token}” on: that row may attend to "
                "nothing, and softmax of nothing is undefined. Ours is zero there. Before that "
                "layer the two can be compared."
            )
    return None


def not_finite(where: str, parameters: Sequence[str]) -> str:
    """Sentences on NaN and infinite numbers: where in the run they begin, and which of the model's
    weights they are in."""
    more = f" and {len(parameters) - 1} more" if len(parameters) > 1 else ""
    weights = f"in the weights “{parameters[0]}”{more}" if parameters else ""
    if not where:
        return f"Numbers {weights} are NaN or infinite; for this sentence nothing depends on them."
    said = f"The numbers of this model are NaN or infinite from {where} on: what follows is blank."
    if not parameters:
        return f"{said} Its weights are finite, but so large that their products are not."
    return f"{said} It has such numbers {weights}."


LANGUAGES = {
    "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "hu": "Hungarian", "is": "Icelandic", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "nb": "Norwegian Bokmål", "nl": "Dutch",
    "nn": "Norwegian Nynorsk", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def with_differences(before: str, after: str) -> str:
    """A text in Markdown: new words bold, those that are gone struck through."""
    old, new = before.split(), after.split()
    parts = []
    for tag, first, last, start, end in SequenceMatcher(None, old, new, False).get_opcodes():
        gone, words = (escaped(" ".join(some)) for some in (old[first:last], new[start:end]))
        if tag == "equal":
            parts.append(words)
        else:
            parts += [f"~~{gone}~~"] * bool(gone) + [f"**{words}**"] * bool(words)
    return " ".join(parts)


def output(view, run: Run, trace: Callable[[], Trace | LongTrace]) -> tuple[str, str]:
    """What a model's output is called, and the output as plain text; `trace` of the run."""
    predicted = predicted_side(view.model)
    if len(run.texts) > 1:
        direction = view.checkpoint.card.get("direction") or ["", ""]
        text = view.tokenizer.target.decode(run.texts[-1].ids)
        return LANGUAGES.get(direction[-1], direction[-1]) or "Output", text
    if predicted.predicts == EMBEDDING:
        return "Output", f"an embedding of {view.model.config.d_embedding:,} numbers"
    title, found = ANSWERS[predicted.predicts], answers(trace())
    if predicted.predicts == MASKED_TOKEN:  # each row fills its own place
        return title, view.tokenizer.target.decode(found.best.tolist())
    (answer,) = view.checkpoint.outputs(found.best[-1:].tolist())
    return title, f"{answer}, {percent(float(found.probability[-1]))}"
