"""Every act is answered by a sentence that is true: each number and word of it is computed again
from the logits of a pass of the test's own."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from headlight.app.shell import effect
from headlight.app.shell.effect import Effect
from headlight.app.state import catalog
from headlight.app.state.options import THIS
from headlight.app.text import findings
from headlight.model import load
from headlight.model.checkpoint import SHIPPED
from headlight.model.masks import Masks
from headlight.model.probing.changes import CannotChange, parse, written
from headlight.model.probing.run import FINAL, Run

NAMES = sorted(folder.name for folder in SHIPPED.iterdir())
ACTS = (
    "off", "mean", "uniform", "skip", "hide", "mask", "forbid", "temperature", "weight",
    "positions", "causal", "src_padding", "tgt_padding", "padding", "step", "comparison",
)  # fmt: skip
SENTENCES = 4  # of each model
EACH = 30  # acts of one test
SHORT, LONG = [0], [*range(1, 10)]
PEEK = re.compile(
    r"Without the causal mask, the decoder peeks: in its self-attention (\d+)\.(\d+), (.*?) "
    r"attends to the next token, (.*?) \((\S+)%\)\. "
)
STILL = re.compile(r" changes most, by at most (\S+) percentage points\.$")


@cache
def own(name, step=FINAL):
    """A checkpoint that the app does not use."""
    return load(name) if step == FINAL else catalog.view_of(name, step, "cpu").checkpoint


def view_of(run):
    return catalog.view_for("test", run.checkpoint, run.step, "cpu")


def line_of(random, act, trace) -> str:
    """A change of the kind that an act is, at a random place."""
    kind = str(random.choice(sorted(trace.attention)))
    layers, heads, queries, keys = trace.attention[kind].shape
    layer, head = random.integers((layers, heads)) + 1
    at, row, key = f"{kind}.{layer}.{head}", *(random.integers((queries, keys)) + 1)
    side = trace.sides_of(kind)[0]
    return {
        "skip": f"{side.stack}_feed_forward.{layer}=skip",
        "hide": f"{kind}=hide:{key}",
        "mask": f"{kind}=mask:{random.choice(['none', 'window-1', 'diagonal', 'no_first'])}",
        "forbid": f"{at}=forbid:{row}>{key}",
        "temperature": f"{kind}.{layer}=temperature:{random.choice([0.5, 3])}",
        "weight": f"{at}=weight:{row}>{min(row, key)}:0.9",
        "positions": f"{side.title}=positions:none",
    }.get(act, f"{at}={act}")


def drawn(seed):
    """EACH runs before and after an act, and the act."""
    random, runs = np.random.default_rng(seed), []
    while len(runs) < EACH:
        name, act = str(random.choice(NAMES)), str(random.choice(ACTS))
        lines = [*dict.fromkeys(catalog.examples(name))][:SENTENCES]
        line = str(random.choice(lines))
        plain = replace(own(name).run(line), checkpoint=name)
        after, steps = plain, [step for step in catalog.steps(name) if step != FINAL]
        if act == "step":
            if not steps:
                continue
            after = replace(plain, step=str(random.choice(steps)))
        elif act == "padding":
            after = replace(plain, pad_to=max(len(text.ids) for text in plain.texts) + 3)
        elif act == "comparison":
            other = str(random.choice(lines))
            after = replace(plain, texts=(own(name).encode(other), *plain.texts[1:]))
        elif act in Masks.__dataclass_fields__:
            after = replace(plain, masks=replace(plain.masks, **{act: False}))
            after = replace(after, pad_to=max(len(text.ids) for text in plain.texts) + 3)
        else:
            after = replace(plain, changes=parse(line_of(random, act, own(name).trace_run(plain))))
            try:
                own(name).trace_run(after)
            except CannotChange:  # the page says why
                continue
        runs.append((act, line, plain, after))
    return runs


def effect_of(act, line, plain, after, monkeypatch) -> Effect:
    """What the app says and marks, for settings that select these runs."""
    other, is_other = own(plain.checkpoint).decode(after.texts[0]), act == "comparison"
    values = {"line": line, "target": "", "other": other, "other_model": "", "other_step": ""}
    shown = plain if is_other else after
    monkeypatch.setattr(effect.session, "values", lambda: values | {"shows": THIS})
    monkeypatch.setattr(effect.session, "context", lambda: SimpleNamespace(has_other=is_other))
    monkeypatch.setattr(effect.selection, "view", lambda run=shown: view_of(run))
    monkeypatch.setattr(effect.selection, "run", lambda changed=None: shown)
    monkeypatch.setattr(effect.selection, "other_run", lambda: after)
    return effect.effect()


def probabilities(run: Run) -> np.ndarray:
    """(row, output), in double precision."""
    logits = own(run.checkpoint, run.step).trace_run(run).logits.astype(np.float64)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def translated(run: Run, line: str) -> str:
    checkpoint = own(run.checkpoint, run.step)
    ids = checkpoint.translate(line, run.masks, run.pad_to, written(run.changes)).ids
    return checkpoint.tokenizer.target.decode(ids)


def in_sentence(token: str) -> str:
    """Punctuation is quoted; other tokens are in italics."""
    return token.strip() if re.search(r"\w", token) else f"“{token.strip() or token}”"


def shown_as(share: str, value: float) -> bool:
    """Whether a share in percent, “<1” included, is what a probability rounds to."""
    if share == "<1":
        return 0 < value < 0.0051
    return abs(float(share) / 100 - value) <= 0.0051


def check(act, line, plain, after, told: Effect) -> bool:
    """That what is said is so, and that the row is the one of which it is said; whether it names a
    token or a text."""
    text = "".join(part for part, _ in told.said)
    assert text.strip(), (act, after)
    checkpoint = own(plain.checkpoint)
    was, now = probabilities(plain), probabilities(after)
    leads = {
        "step": "Compared with the final weights, ",
        "comparison": f"With “{checkpoint.decode(after.texts[0])}” instead, ",
    }
    if lead := leads.get(act):
        assert text.startswith(lead)
        text = text.removeprefix(lead)
        text = text[:1].upper() + text[1:]
    if peek := PEEK.match(text):
        attention = own(after.checkpoint).trace_run(after)
        tokens = attention.texts[attention.predicted.name].tokens
        (kind,) = (k for k in attention.kinds if {s.stack for s in attention.sides_of(k)} ==
                   {attention.predicted.stack})  # fmt: skip
        real = len([one for one in attention.texts[attention.predicted.name].roles if one != "pad"])
        ahead = np.diagonal(attention.attention[kind], 1, -2, -1)[..., : real - 1]
        layer, head, row = np.unravel_index(ahead.argmax(), ahead.shape)
        site = attention.kinds[kind][layer]
        assert (int(peek[1]), int(peek[2])) == (site.layer + 1, head + 1)
        assert (peek[3], peek[4]) == tuple(map(in_sentence, tokens[row : row + 2]))
        assert shown_as(peek[5], ahead.max())
        text = text[peek.end() :]
    if checkpoint.classes:
        best = int(now[0].argmax())
        name = checkpoint.classes[best]
        verb = "stays" if best == was[0].argmax() else "changes to"
        found = re.search(rf"The class {verb} {name}: (\S+)% → (\S+)%\.$", text)
        assert found and shown_as(found[1], was[0, best]) and shown_as(found[2], now[0, best]), text
        return True
    named = False
    if checkpoint.writes:
        other = checkpoint.decode(after.texts[0]) if act == "comparison" else line
        before, current = translated(plain, line), translated(after, other)
        if before == current:
            assert (findings.STAYS_UNSEEN if peek and act == "causal" else findings.STAYS) in text
        else:
            names = "".join(part for part, tag in told.said if tag == "b" or not tag)
            assert re.sub(r"\s", "", current) in re.sub(r"\s", "", names), (names, current)
            named = True
    if plain.texts[-1].ids != after.texts[-1].ids:
        return True  # another text of a model that reads one: its output is said
    trace = checkpoint.trace_run(plain)
    ids = np.array(trace.following)
    rows = np.flatnonzero(ids >= 0)
    moved = np.abs(now[rows, ids[rows]] - was[rows, ids[rows]])
    if text.endswith(findings.NO_CHANGE):
        assert moved.max() <= findings.NOTHING + 1e-5 and told.row is None
        return named
    tokens = trace.texts[trace.predicted.name].tokens
    for row in rows[moved >= moved.max() - 1e-5]:  # any of those that move alike
        last = row + 1 == len(tokens)
        token = checkpoint.outputs([int(ids[row])])[0] if last else tokens[row + 1]
        where = findings.FINISHED if peek else findings.AFTER
        where = findings.FORMER if "Now it writes" in text else where
        said = findings.said(where, row=tokens[row], token=token, moves="…")
        start = "".join(part for part, _ in said).removesuffix("….")
        before, current = was[row, ids[row]], now[row, ids[row]]
        if start not in text or told.row != row:
            continue  # another of those, which may have the same words
        if found := STILL.search(text):
            assert moved.max() - 1e-6 <= float(found[1]) / 100 <= moved.max() + 0.0011
            assert moved.max() < 0.0101 and text.endswith(start.rstrip() + found[0])
            return True
        verb = "rises" if current > before else "falls"
        found = re.search(rf"{re.escape(start)}{verb} from (\S+)% to (\S+)%\.$", text)
        assert found and shown_as(found[1], before) and shown_as(found[2], current), text
        return True
    raise AssertionError(f"{text} names another token than the one that moves most")


@pytest.mark.parametrize("seed", [*SHORT, *(pytest.param(s, marks=pytest.mark.long) for s in LONG)])
def test_every_act_is_answered_by_what_it_did(seed, monkeypatch):
    results = [check(*one, effect_of(*one, monkeypatch)) for one in drawn(seed)]
    assert len(results) == EACH
    print("names a token, a class or a text:", sum(results), "of", EACH)


def test_every_kind_of_act_is_drawn():
    assert {act for seed in SHORT for act, *_ in drawn(seed)} >= {"step", "comparison", "causal"}
    assert effect.as_trained(drawn(0)[0][3]).changes == ()
