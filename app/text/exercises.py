"""Exercises: what a page suggests trying, each with its answer. Numbers in an answer are those of
the model and the text on the page."""

from collections.abc import Sequence
from typing import NamedTuple

from headlight.app.text.formats import escaped, signed, times
from headlight.model.rounding import percent

CLEAR = 0.3  # a weaker rank correlation counts as none


class Exercise(NamedTuple):
    """A task, which follows “Try:”, and the answer that unfolds; both in Markdown."""

    task: str
    answer: str


NEURONS = Exercise(
    "find a head in the model view, then open it in the neuron view. What makes a weight large?",
    "A query and a key that have large numbers of the same sign in the same places. Each pair of "
    "numbers is multiplied, the products are added up, and softmax favours the largest sums.",
)
ROLLERCOASTER = Exercise(
    "drag “rollercoaster” to zero. Why does the answer become the plain mean?",
    "Its dot product with every key is then 0, and softmax turns equal scores into equal weights: "
    "one third each.",
)
TWICE = Exercise(
    "type a word twice. Which swap makes its two vectors equal?",
    "“rotary”. Positions are no longer added to the embeddings, so a word enters layer 1 as the "
    "same vector wherever it stands. They rotate queries and keys instead.",
)


def invented_word(word: str, tokens: Sequence[str]) -> Exercise:
    count = "one token" if len(tokens) == 1 else f"{len(tokens)} tokens"
    return Exercise(
        f"invent a word, such as “{word}”. Which parts of it become tokens?",
        f"Here “{word}” is {count}: {' + '.join(f'“{escaped(token)}”' for token in tokens)}. What "
        "was frequent in the training texts is one token; the rest is split.",
    )


def same_word_twice(adds_positions: bool, is_first_layer: bool) -> Exercise:
    task = "type a word twice. Does it enter as the same vector both times?"
    if not is_first_layer:
        return Exercise(
            task,
            "Usually not: the layers before have added what each of the two attended to. Compare "
            "encoder layer 1.",
        )
    if adds_positions:
        return Exercise(
            task,
            "No. Their embeddings are equal, but each gets the vector of its own position added.",
        )
    return Exercise(
        task, "Yes: this model adds no positions to the embeddings. If at all, attention uses them."
    )


def size_of_query(width: int, heads: int, d_model: int) -> Exercise:
    return Exercise(
        "count the numbers in a query. Why are there fewer than in x?"
        if width < d_model
        else "count the numbers in a query. How many are there in all heads together?",
        f"A query has {width}, x has {d_model}. Each of the {heads} heads has a query of its own, "
        f"{times((heads, width))} = {heads * width} numbers in all.",
    )


def range_of_scores(key: str, largest: float, least_key: str, least: float) -> Exercise:
    """Of the row that is followed."""
    return Exercise(
        "find the largest and the smallest score in the framed row. What do they mean on their "
        "own?",
        f"“{escaped(key)}” has {signed(largest)}, “{escaped(least_key)}” {signed(least)}. On "
        "their own, nothing: only differences within a row count. Add 100 to the whole row, and "
        "softmax gives the same weights.",
    )


def order_of_scores(width: int) -> Exercise:
    return Exercise(
        "compare with the scores before. Does another key have the largest one?",
        f"No. All scores are divided by the same number, √{width}, so their order stays the same. "
        "They come closer together, and softmax spreads the weight more evenly.",
    )


def without_mask(share: float, are_masked: bool) -> Exercise:
    """`share`: of all rows' weight, what would go to the masked pairs."""
    return Exercise(
        "imagine that nothing were masked. How much weight would go to the masked keys?",
        f"{percent(share)} of a row's weight, on average. With the mask it goes to the keys that "
        "are left, because each row still adds up to 1."
        if are_masked
        else "None: nothing is masked here. In decoder self-attention, later tokens are.",
    )


def why_scaling(largest: float, unscaled: float) -> Exercise:
    """The largest weight in a row with and without the scaling, mean over the rows."""
    return Exercise(
        "imagine the scores had not been divided. Why are they?",
        f"Without it, the weight gathers on fewer keys: the largest weight in a row is "
        f"{percent(unscaled)} on average, and {percent(largest)} with the scaling. Near 100%, "
        "almost no gradient is left to learn from.",
    )


def all_on_one(key: str, weight: float) -> Exercise:
    """The largest weight of the row that is followed."""
    return Exercise(
        "imagine a row with all its weight on one key. What is h?",
        f"Exactly that key's value. The framed row has {percent(weight)} on “{escaped(key)}”.",
    )


def band_of_head(width: int) -> Exercise:
    return Exercise(
        "select another head. Which numbers are its own?",
        f"Each head has {width}: head 1 has numbers 1 to {width}, head 2 has numbers "
        f"{width + 1} to {2 * width}, and so on. The frame moves there.",
    )


def size_of_output(rows: int, columns: int) -> Exercise:
    return Exercise(
        "count the weights of this matrix. Do the heads share them?",
        f"{times((rows, columns))} = {rows * columns:,}. No: each head's numbers are multiplied by "
        "rows of their own, and the results are added up.",
    )


WITHOUT_RESIDUAL = Exercise(
    "imagine that x were left out. Why is it added?",
    "Without x, only what the heads have gathered remains, and the token's own vector is lost. The "
    "sum also gives gradients a direct path to the first layers.",
)
EACH_BY_ITSELF = Exercise(
    "follow another query. Do the other tokens matter in this step?",
    "No: each token's vector goes through the same matrices on its own. Only attention moves "
    "anything from one token to another.",
)
