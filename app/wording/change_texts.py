"""Texts about changes, sweeps and attribution."""

from headlight.app.wording.formats import signed

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


def log_probability(side: str, now: float, before: float) -> str:
    """The log-probability of a text with the changes, and by how much they move it."""
    moved = f"{now - before:+.2f}".replace("-", "−")
    return f"Log-probability of the {side}: **{signed(now)}** ({moved})"


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


def too_large_a_sweep(tokens: int, most: int) -> str:
    return (
        f"To change each of these by itself, {tokens:,} tokens would go through the model; at most "
        f"{most:,} are allowed. Take a shorter text, or change heads or sublayers as a whole."
    )


def so_far(measured: int, missing: int) -> str:
    """The progress of a sweep."""
    return f"{measured:,} of {measured + missing:,} measured"


def too_many_removals(tokens: int, most: int) -> str:
    return (
        f"To leave out each token of the text by itself, {tokens:,} tokens would go through the "
        f"model; at most {most:,} are allowed. Take a shorter text."
    )


def sweep_explained(score: float, has_other: bool) -> str:
    """What the numbers of a sweep mean."""
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
