"""Exercises: what a page invites to try, each with its answer. Answers with numbers are about the
model and the text on the page."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headlight.app.wording.formats import escaped, listed, percent, signed, times

LISTED = 3  # tokens; of more one is named
CLEAR = 0.3  # a rank correlation below it is called none


class Exercise(NamedTuple):
    """A task, which goes on after “Try:”, and the answer that unfolds; both in Markdown."""

    task: str
    answer: str


BEAMS = Exercise(
    "set Beams to 2, then to 8. Does another text win?",
    "Now and then. More beams keep texts that begin less well, and one of them may end better. "
    "The search compares scores, which do not tell how good a translation is.",
)
COMPARED = Exercise(
    "switch a mask off. Both pictures change. Does the difference?",
    "It stays a rounding error. Both implementations get the same masks, so both are right or "
    "wrong together.",
)
LONGER = Exercise(
    "a longer sentence. Which numbers change, and which belong to the system?",
    "The vectors' lengths change with the words, but not where a norm comes after the sum: there "
    "they are √d_model. Parameters and positions belong to the system.",
)
NEURONS = Exercise(
    "find a head in the model view, then open it in the neuron view. What makes a weight large?",
    "A query and a key with the same signs in the same places. Each pair of numbers is multiplied, "
    "the products are added up, and softmax enlarges the largest sums.",
)
REPEATED = Exercise(
    "repeat a word. Its embedding rows are equal; which picture tells them apart?",
    "“Positions”: every place has its own row. So the two rows of “Sum”, which layer 1 reads, "
    "differ as well.",
)
ROLLERCOASTER = Exercise(
    "drag “rollercoaster” towards zero. Why does the answer become the plain mean?",
    "The dot product of zero with any key is 0. Softmax gives equal scores equal weights, here one "
    "third each.",
)
SORTING = Exercise(
    "the model `sort`. Does it need positions?",
    "Yes, although the order of what it sorts does not matter. Without positions it gets some "
    "texts wrong, and more where letters repeat: copies of a letter enter as the same vector.",
)
TWICE = Exercise(
    "type a word twice. Which swap makes its two vectors equal?",
    "“rotary”. Nothing is added to the embeddings any more, so a word enters layer 1 as the same "
    "vector wherever it stands. Its position turns queries and keys instead.",
)


def along_the_source(head: str, first: str, last: str) -> Exercise:
    """Of a translator. `head`: whose largest weight moves most evenly, from one word to another."""
    return Exercise(
        "step with →. Which head moves along the source with the output?",
        f"Most evenly {head}. Its largest weight begins at “{escaped(first)}” and ends at "
        f"“{escaped(last)}”.",
    )


def least_certain(number: int, token: str, probability: float) -> Exercise:
    """Token `number` of the output, counted from 1."""
    return Exercise(
        "step with →. Where is the model least certain?",
        f"At token {number}, “{escaped(token)}”: it has a probability of {percent(probability)}.",
    )


def largest_part(shares: Mapping[str, float]) -> Exercise:
    """Part of a model → its share of the parameters."""
    largest = max(shares, key=shares.get)
    return Exercise(
        "count the parameters. Where are most of them?",
        f"The largest share, {percent(shares[largest])}, belongs to “{largest}”. Each number of a "
        "matrix is a parameter, so the widest matrices have most.",
    )


def invented_word(word: str, tokens: Sequence[str]) -> Exercise:
    count = "one token" if len(tokens) == 1 else f"{len(tokens)} tokens"
    return Exercise(
        f"invent a word, such as “{word}”. Which parts of it are tokens?",
        f"Here “{word}” is {count}: {' + '.join(f'“{escaped(token)}”' for token in tokens)}. What "
        "occurred often in the training texts is one token; the rest is split.",
    )


def changes_last(after: Sequence[str], depth: str, moved: bool) -> Exercise:
    """The tokens after which the prediction is final last, from `depth` on."""
    names = [f"“{escaped(token)}”" for token in after]
    named = listed(names) if len(names) <= LISTED else f"{len(names)} tokens, such as {names[0]},"
    answer = f"After {named} the final prediction comes last: only {depth} brings it."
    return Exercise(
        "find the token whose prediction changes last. Which layer changed it?",
        answer if moved else "None: every prediction is the final one from the start.",
    )


def most_focused(heads: Sequence[tuple[str, int, int, float]], depth: int) -> Exercise:
    """Those with the lowest entropies: kind, layer, head, entropy in bits. `depth`: of the
    stacks."""
    low = sum(layer <= depth / 2 for _, layer, _, _ in heads)
    names = [f"{kind} {layer}.{head} ({bits:.2f} bits)" for kind, layer, head, bits in heads]
    return Exercise(
        "sort by entropy. Are the most focused heads in the first layers?",
        f"Of the {len(heads)} most focused, {low} {'is' if low == 1 else 'are'} in the first half "
        f"of the layers: {listed(names)}.",
    )


def focus_and_loss(correlation: float, count: int) -> Exercise:
    """The rank correlation of the entropy of `count` heads with how much changes without them."""
    if abs(correlation) < CLEAR:
        verdict = "There is no clear relation"
    else:
        verdict = "They tend to" if correlation < 0 else "No, broad heads tend to matter more"
    return Exercise(
        "plot ablation against entropy. Do focused heads matter more?",
        f"{verdict}: over {count} heads, entropy and the size of the change without the head have "
        f"a rank correlation of {signed(correlation)}.",
    )


def first_and_last(pattern: str, first: str, last: str, uniform: str) -> Exercise:
    """How strongly the first and the last of the listed sentences show a pattern, and a uniform
    head in the last one."""
    return Exercise(
        "click the first sentence, then the last. Does the head do the same in both?",
        f"Less and less of it: “{pattern}” is {first} in the first and {last} in the last, where a "
        f"head with uniform weights has {uniform}.",
    )


# The steps of one head


def same_word_twice(adds_positions: bool, is_first_layer: bool) -> Exercise:
    task = "type a word twice. Does it enter as the same vector both times?"
    if not is_first_layer:
        return Exercise(
            task,
            "Usually not here: what comes before has added what each of the two attended to. "
            "Compare encoder layer 1.",
        )
    if adds_positions:
        return Exercise(
            task,
            "No. The word vectors are equal, but each is added to the vector of its own position.",
        )
    return Exercise(
        task, "Yes: this model adds no positions to the words. They enter with queries and keys."
    )


def size_of_query(width: int, heads: int, d_model: int) -> Exercise:
    return Exercise(
        "count the numbers of a query. Why are they fewer than those of x?"
        if width < d_model
        else "count the numbers of a query. How many are they in all heads together?",
        f"A query has {width}, x has {d_model}. Each of the {heads} heads has a query of its own, "
        f"{times((heads, width))} = {heads * width} numbers in all.",
    )


def range_of_scores(key: str, largest: float, least_key: str, least: float) -> Exercise:
    """Of the row that is followed."""
    return Exercise(
        "find the largest and the smallest score of the framed row. What do they mean by "
        "themselves?",
        f"“{escaped(key)}” has {signed(largest)}, “{escaped(least_key)}” {signed(least)}. By "
        "themselves, nothing: only differences within a row count. Add 100 to all of it, and "
        "softmax gives the same weights.",
    )


def order_of_scores(width: int) -> Exercise:
    return Exercise(
        "leave the scaling out. Does another key get the largest score?",
        f"No. All scores are divided by the same number, √{width}, so their order stays. They come "
        "closer together, and softmax spreads the weight more evenly.",
    )


def without_mask(share: float, are_masked: bool) -> Exercise:
    """`share`: of all rows' weight, what would go to the masked pairs."""
    return Exercise(
        "leave the mask out. How much weight goes where none may go?",
        f"{percent(share)} of all weight, mean over the rows. With the mask it goes to the keys "
        "that are left, because each row still adds up to 1."
        if are_masked
        else "None: no pair is masked here. In decoder self-attention, every later token is.",
    )


def why_scaling(largest: float, unscaled: float) -> Exercise:
    """The largest weight of a row with and without the scaling, mean over the rows."""
    return Exercise(
        "leave the scaling out. Why is it there?",
        f"To keep the weights from going to one key alone. The largest weight of a row is "
        f"{percent(largest)} on average, and {percent(unscaled)} without the scaling. Where it is "
        "near 100%, almost no gradient is left to learn from.",
    )


def all_on_one(key: str, weight: float) -> Exercise:
    """The largest weight of the row that is followed."""
    return Exercise(
        "imagine a row with all its weight on one key. What is h?",
        f"Exactly that key's value. The framed row has {percent(weight)} on “{escaped(key)}”.",
    )


def band_of_head(width: int) -> Exercise:
    return Exercise(
        "select another head in the bar. Which numbers are its own?",
        f"The next {width} for each head: head 1 has numbers 1 to {width}, head 2 has numbers "
        f"{width + 1} to {2 * width}, and so on. The frame moves there.",
    )


def size_of_output(rows: int, columns: int) -> Exercise:
    return Exercise(
        "count the weights of this matrix. Do the heads share them?",
        f"{times((rows, columns))} = {rows * columns:,}. No: each head's numbers are multiplied by "
        "rows of their own, and the results are added up.",
    )


WITHOUT_RESIDUAL = Exercise(
    "leave the residual out. Why is x added?",
    "Without x, only what the heads gathered remains, and the token's own vector is lost. The sum "
    "also lets gradients reach the first layers undiminished.",
)
EACH_BY_ITSELF = Exercise(
    "follow another query. Do the other tokens matter in this step?",
    "No: the same matrices read each token's vector by itself. Only attention moves anything "
    "from one token to another.",
)
