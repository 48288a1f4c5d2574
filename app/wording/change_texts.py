"""Texts about changes, sweeps and attribution."""

import math
from collections.abc import Sequence

from headlight.app.wording.formats import signed, whole_percent
from headlight.model.probing.changes import VERBS, Change, Scope

NO_DIFFERENCE = (
    "Differences are drawn only on Attention. This page shows the current settings, with your "
    "changes."
)
CHANGES_HELP = """Changes to the running model, separated by `;`. Each names an attention type (or
`all`), optionally layer and head, and what to do. Tokens start at 1.

| | |
|---|---|
{}

The comparison reads the same target. To patch heads or compare weights, both texts must have the
same number of tokens.
""".format("\n".join(f"| `{verb.example}` | {verb.help} |" for verb in VERBS.values() if verb.help))


def probability(side: str, now: float, before: float) -> str:
    """How changes move the probability of a text, from its log-probabilities."""
    was, is_now = (whole_percent(math.exp(number)) for number in (before, now))
    logs = f"log-probability {signed(before)} → {signed(now)}"
    return f"Probability of the {side}: {was} → **{is_now}** ({logs})"


TERMS = (
    "Everything that writes to the residual stream adds to the logit: the token, its position, "
    "every head and every feed-forward sublayer. All biases form one part. Each norm's scale "
    "is frozen at its current value, so the parts add up exactly. To see what happens without "
    "a part, choose Without it. Click a head to select it."
)
METHOD_HELP = (
    "**attention**: mean weight over all heads. **head**: weight in the selected head. "
    "**rollout**: attention traced back through all layers (Abnar & Zuidema 2020). **norms**: "
    "weight times the length of the transformed value (Kobayashi et al. 2020). **gradient**: "
    "gradient times embedding. **removal**: how much the metric falls without the word. Above: "
    "Spearman's rank correlation between the methods; 1 means the same order."
)


def too_large_a_sweep(tokens: int, most: int) -> str:
    return (
        f"Changing these one at a time would send {tokens:,} tokens through the model; the "
        f"limit is {most:,}. Use a shorter text, or change whole heads or sublayers."
    )


def so_far(measured: int, missing: int) -> str:
    """The progress of a sweep."""
    return f"{measured:,} of {measured + missing:,} measured"


def too_many_removals(tokens: int, most: int) -> str:
    return (
        f"Leaving out one token at a time would send {tokens:,} tokens through the model; the "
        f"limit is {most:,}. Use a shorter text."
    )


def sweep_explained(measure: str, score: float, has_other: bool) -> str:
    """What the numbers of a sweep mean; `measure`: what is measured, `score`: before any change."""
    more = (
        ""
        if has_other
        else (" To patch heads or the residual stream, choose a comparison under “What if”.")
    )
    return (
        f"**Effect**: {measure} after the change minus before ({signed(score)}). Below 0: the "
        f"output needs this part. Click a cell, or a row of the table, to select its head.{more}"
    )


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
