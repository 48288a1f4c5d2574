"""What the changes, or another run, do to what the model answers: measured over the same text, and
in words."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from headlight.app import selection
from headlight.app.results.memoize import cached
from headlight.app.results.shown import Shown, target_of
from headlight.app.state import catalog, messages, session
from headlight.app.state.options import OTHER
from headlight.app.text import findings, formats, output_texts
from headlight.app.text.formats import Parts
from headlight.model.masks import Masks
from headlight.model.probing.changes import CannotChange, written
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.trace import CannotRead


@dataclass(frozen=True)
class Effect:
    """What is said of an effect, and `brief`ly, in a few words. `row`: the token after which a
    probability moved most; None if none moved, or if the picture shows neither the current nor the
    changed model. `now`: what a changed model writes, as differences from the text before; `rest`:
    what is said where that stands elsewhere."""

    said: Parts = field(default_factory=list)
    row: int | None = None
    brief: Parts = field(default_factory=list)
    now: Parts = field(default_factory=list)
    rest: Parts = field(default_factory=list)


@dataclass(frozen=True)
class Moved:
    """The next-token probability that moved most over a text: after `row`, which is token `at`, of
    `token`; for a class, that of the class before, and `token` is the class now."""

    row: str
    token: str
    before: float
    after: float
    at: int = 0

    @property
    def by(self) -> float:
        return abs(self.after - self.before)


@dataclass(frozen=True)
class Peek:
    """The largest weight from a row of the decoder, `at` from 0, to the very token that it
    predicts, and its head: `layer` and `head` as on screen, counted from 1."""

    kind: str
    layer: int
    head: int
    at: int
    row: str
    next_token: str
    weight: float


def effect() -> Effect:
    """What masks, padding and changes do to the output, compared with the model as trained over the
    same text; or what another run, or an earlier training step, does otherwise. Empty where nothing
    is compared."""
    shows = session.values()["shows"]
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        run = selection.run(changed=True)
        plain = as_trained(run)
        if session.context().has_other and (run == plain or shows == OTHER):
            found = _other()
        elif run != plain:
            found = _of_changes(plain, run)
        elif run.step != FINAL:
            final = replace(run, step=FINAL)
            before, after = selection.shown(final), selection.shown(run)
            found = _moved(before, after, translated_lines(before, after))
            lead = "Compared with the final weights, "
            found = Effect(findings.after_lead(lead, found.said), found.row, found.brief)
        else:
            return Effect()
        return replace(found, row=None) if shows == OTHER else found
    return Effect()


def _other() -> Effect:
    """The output of the other run's model for its own text, and what moved most, with its row.
    The target of either run may differ from its output: it may be typed, or written by another
    training step."""
    other, plain = selection.other_run(), selection.run(changed=False)
    assert other is not None
    both = selection.shown(plain), selection.shown(other)
    chosen = session.values()
    line, other_line = chosen["line"], chosen["other"].strip()
    lines = [line, other_line or line] if both[1].view.checkpoint.writes else []
    lead = findings.with_other(other_line, chosen["other_model"], chosen["other_step"])
    found = _moved(*both, lines)
    brief = findings.brief_swap(formats.differences(line, other_line or line), found.brief)
    told = found.said, found.rest or found.said
    said, rest = (findings.after_lead(lead, each) for each in told)
    return Effect(said, found.row, brief, found.now, rest)


def as_trained(run: Run) -> Run:
    """The same texts read by the model as trained."""
    return replace(run, masks=Masks(), changes=(), pad_to=0, other=None)


def translation(shown: Shown, line: str) -> str:
    """The model's translation of a line under the masks, padding and changes of a run."""
    view, run = shown.view, shown.run
    ids = target_of(view, line, run.masks, run.pad_to, written(run.changes), run.other).ids
    return view.tokenizer.target.decode(ids)


def _of_changes(plain: Run, run: Run) -> Effect:
    """What the model writes now, and the next-token probability that changed most; and its row."""
    both = selection.shown(plain), selection.shown(run)
    parts, stays, after = [], findings.STAYS, findings.AFTER
    if not run.masks.causal and (seen := peek_of(both[1])):
        where, what = (seen.layer, seen.head), (seen.row, seen.next_token)
        parts += findings.peeking(*where, *what, seen.weight)
        if replace(run, masks=replace(run.masks, causal=True), pad_to=0) == plain:
            stays = findings.STAYS_UNSEEN
        after = findings.FINISHED  # which it did not when it wrote the text
    texts = {"stays": stays, "start": after, "former": findings.FORMER}
    found = _moved(*both, translated_lines(*both), findings.SAID["now"], **texts)
    return replace(found, said=[*parts, *found.said], rest=[*parts, *found.rest])


def translated_lines(before: Shown, after: Shown) -> list[str]:
    """The line that two runs translate; empty where they write nothing of their own."""
    view = before.view
    writes = view.checkpoint.writes and catalog.trained(view.name) == view.name
    return [session.values()["line"]] * 2 if writes and not session.values()["target"] else []


def _moved(
    before: Shown,
    after: Shown,
    lines: Sequence[str],
    lead: str = "it writes",
    stays: str = findings.STAYS,
    start: str = findings.AFTER,
    former: str = findings.AFTER,
) -> Effect:
    """What differs between two runs that translate these lines, if any: the texts, the class, or
    the next-token probability that changed most; and the token after which it did. `lead` comes
    before what `after` writes; `stays` says that this is the text of `before`. `start` comes before
    a row, or `former` where the texts differ, since the row belongs to the text of `before`."""
    if moved := class_moved(before, after):
        classes = moved.row, moved.token, moved.before, moved.after
        return Effect(findings.class_moved(*classes), brief=findings.brief_class(*classes))
    writes, same, brief, written = [], [], [], []
    if lines:
        was, now = map(translation, (before, after), lines)
        differences = formats.differences(was, now)
        written = differences if now.strip() else []
        if was == now:
            same = [(stays, "")]
        else:
            writes = findings.writes(lead, differences, now)
            brief = findings.first_difference(differences)
            start = former
    moved = moved_most(before, after)
    if moved is None:
        was, now = (
            output_texts.output(each.view.checkpoint, each.run, lambda each=each: each.trace)[1]
            for each in (before, after)
        )
        said = findings.SAME_OUTPUT if now == was else f"The output changes: {was} → {now}"
        brief = brief or [("output stays" if now == was else f"→ {now}", "")]
        return Effect(writes + same or [(said, "")], brief=brief)
    brief = brief or findings.brief_move(moved.token, moved.before, moved.after)
    if moved.by <= findings.NOTHING:
        rest = [*same, (findings.NO_CHANGE, "")]
        return Effect(writes + rest, None, brief, written, rest)
    rest = [*same, *findings.moved(moved.row, moved.token, moved.before, moved.after, start)]
    return Effect(writes + rest, moved.at, brief, written, rest)


def peek() -> Peek | None:
    """Where the decoder peeks most while the causal mask is off; else None."""
    if not session.values()["line"]:
        return None
    with suppress(CannotChange, CannotRead, messages.NothingToShow):  # the page says why
        shown = selection.shown(selection.run(changed=True))
        return None if shown.run.masks.causal else peek_of(shown)
    return None


def moved_most(before: Shown, after: Shown) -> Moved | None:
    """What moved most between two runs over the same predicted text; None if no row of the model
    predicts the next token, or the texts differ. Raises CannotRead and CannotChange."""
    trace = before.trace
    side, texts = trace.predicted, [each.run.texts[-1].ids for each in (before, after)]
    if side.predicts != "next token" or texts[0] != texts[1]:
        return None
    was, now = (each.answers.wanted for each in (before, after))
    rows = min(len(was), len(now))
    by = np.abs(now[:rows] - was[:rows])
    if not np.isfinite(by).any():
        return None
    row = int(np.nanargmax(by))
    tokens = trace.texts[side.name].tokens
    if row + 1 < len(tokens):
        following = tokens[row + 1]
    else:  # a model without eos predicts nothing there: NaN
        (following,) = before.view.checkpoint.outputs([before.view.model.config.eos_id])
    return Moved(tokens[row], following, float(was[row]), float(now[row]), row)


def class_moved(before: Shown, after: Shown) -> Moved | None:
    """For a classifier, its class before and now, and the probability of the latter; else None."""
    if before.trace.predicted.predicts != "class":
        return None
    was, now = (each.answers for each in (before, after))
    outputs = before.view.checkpoint.outputs
    old, new = (outputs([int(answers.best[0])])[0] for answers in (was, now))
    best = int(now.best[0])
    return Moved(old, new, float(was.wanted[best]), float(now.wanted[best]))


@cached()
def peek_of(shown: Shown) -> Peek | None:
    """The row of a decoder that attends most to the token it is to predict, without a causal mask;
    None where no row can. Raises CannotRead and CannotChange."""
    traced = shown.trace
    attention = shown.attention  # a long text's one layer after the other
    best = None
    for kind, sites in traced.kinds.items():
        query, key = traced.sides_of(kind)
        if "causal" not in sites[0].masks or query.name != key.name:
            continue
        text = traced.texts[query.name]
        real = sum(role != "pad" for role in text.roles)
        for site, layer in zip(sites, attention[kind], strict=True):  # (head, query, key)
            ahead = np.diagonal(layer, 1, axis1=-2, axis2=-1)[:, : real - 1]
            if ahead.size and ahead.max() > (best.weight if best else 0):
                head, row = map(int, np.unravel_index(ahead.argmax(), ahead.shape))
                tokens = text.tokens[row], text.tokens[row + 1]
                where = kind, site.layer + 1, head + 1
                best = Peek(*where, row, *tokens, float(ahead.max()))
    return best
