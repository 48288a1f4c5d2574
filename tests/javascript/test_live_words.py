"""What a live page says and edits in its own scripts, against the Python that does so in the app:
lines of changes after strokes on the grid, findings, shares."""

import random

import numpy as np
import pytest

from headlight.app.text import findings, formats
from headlight.model.probing import editing
from headlight.model.probing.changes import HeadOff, Scope, parse, written
from headlight.model.rounding import percent

SHARES = [0, 1e-7, 0.004, 0.005, 0.0051, 0.5, 0.994, 0.9949, 0.996, 0.9999, 1]
WORDS = ["Hund", ".", " dog ", "<s>", "…", "3", "é"]


def test_strokes_change_a_line_as_in_the_app(node):
    """Random ones, many of them undoing others: on and off, a token hidden in one scope or two,
    cells painted either way, weights."""
    draw, line, strokes, expected = random.Random(0), "", [], []
    scopes = [Scope("cross"), Scope("cross", 1), Scope("cross", 1, 2), Scope("encoder", 0, 1)]
    for _ in range(400):
        scope, now = draw.choice(scopes), parse(line)
        at = dict(kind=scope.kind, layer=scope.layer, head=scope.head)
        cell, number = [draw.randrange(3), draw.randrange(3)], draw.randrange(3)
        match draw.randrange(4):
            case 0:
                stroke = ["toggled", at | {"verb": "off"}]
                new = editing.toggled(now, HeadOff(scope))
            case 1:
                several = draw.sample(scopes[:3], draw.choice((1, 2)))
                where = [dict(kind=s.kind, layer=s.layer, head=s.head) for s in several]
                stroke = ["hidden", where, number]
                new = editing.hidden(now, several, number)
            case 2:
                allow = draw.random() < 0.5
                stroke = ["paintedCell", at, cell, allow]
                new = editing.painted(now, scope, tuple(cell), allow)
            case 3:
                stroke = ["weighed", at, cell, draw.choice((0.0, 0.25, 1.0))]
                new = editing.weighed(now, scope, tuple(cell), stroke[-1])
        line = written(new) if draw.random() < 0.95 else ""
        strokes.append((stroke, line))
        expected.append(written(new))
    found = node.scope("app/live/changes.js")(
        """(strokes) => {
          const edits = { toggled, hidden, paintedCell, weighed };
          let line = "";
          return strokes.map(([[name, ...given], after]) => {
            const now = written(edits[name](parse(line), ...given));
            line = after;
            return now;
          });
        }""",
        strokes,
    )
    assert found == expected


@pytest.fixture(scope="module")
def said(node):
    return node.scope("app/live/findings.js")


def as_lists(parts) -> list:
    return [list(part) for part in parts]


@pytest.mark.parametrize("start", [findings.AFTER, findings.FINISHED, findings.FORMER])
def test_what_moved_is_said_as_in_the_app(said, start):
    rng = np.random.default_rng(0)
    pairs = [
        *rng.random((40, 2)),
        *((x, x + 0.0015) for x in (0.1, 0.3, 0.5031)),
        (0.125, 0.13),
        (0.12, 0.13),
        (0.335, 0.345),
        (0.004, 0.0),
    ]
    for number, (before, after) in enumerate(np.array(pairs).tolist()):
        row, token = WORDS[number % 7], WORDS[number % 5]
        most = {"row": row, "token": token, "before": before, "after": after}
        found = said("({ most, start }) => moved(most, start)", {"most": most, "start": start})
        assert found == as_lists(findings.moved(row, token, before, after, start))
    still = said("() => moved({ row: 'a', token: 'b', before: 0.5, after: 0.5005 }, 'after')")
    assert still == said("() => moved(null, 'after')") == [[findings.NO_CHANGE, ""]]


def test_other_findings_are_said_as_in_the_app(said):
    for text in ("Ein Hund.", "Ein Hund", " ", "Was?"):
        found = said("(text) => nowWrites('Ein Kater.', text)", text)
        changed = formats.differences("Ein Kater.", text)
        assert found == as_lists(findings.writes(findings.SAID["now"], changed, text))
    for old, now in (("good", "bad"), ("good", "good")):
        argument = {"old": old, "now": now, "before": 0.3, "after": 0.004}
        found = said("(moved) => classMoved(moved)", argument)
        assert found == as_lists(findings.class_moved(old, now, 0.3, 0.004))
    peek = {"layer": 1, "head": 2, "row": "Ein", "next": ".", "weight": 0.42}
    found = said("(peek) => peeking(peek)", peek)
    assert found == as_lists(findings.peeking(2, 3, "Ein", ".", 0.42))
    found = [said(f"() => stays('translation', {alone})") for alone in ("false", "true")]
    assert found == [[[findings.STAYS, ""]], [[findings.STAYS_UNSEEN, ""]]]


def test_two_texts_differ_as_in_the_app(said):
    draw = random.Random(0)
    words = ["a", " b", " c", ".", ", ", "…", " é", " ,", "3"]
    for _ in range(300):
        texts = ["".join(draw.choices(words, k=draw.randrange(12))) for _ in range(2)]
        found = said("(texts) => differences(...texts)", texts)
        assert found == as_lists(formats.differences(*texts)), texts


def test_shares_are_written_as_in_the_app(node):
    """Of halves, which no decimal has, either is right."""
    shares = [*SHARES, *np.linspace(0.0013, 0.9987, 300).tolist()]
    written = node.scope("app/components/shared/numbers.js")
    for digits in (0, 1):
        found = written("([all, digits]) => all.map((x) => percent(x, digits))", [shares, digits])
        expected = [percent(share, digits) for share in shares]
        ties = [abs(100 * share * 10**digits % 1 - 0.5) < 1e-9 for share in shares]
        assert [f for f, t in zip(found, ties, strict=True) if not t] == [
            e for e, t in zip(expected, ties, strict=True) if not t
        ]
