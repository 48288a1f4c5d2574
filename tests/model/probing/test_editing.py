"""What an act of the user's makes of a line of changes."""

import pytest

from headlight.model.probing.changes import Scope, parse, written
from headlight.model.probing.editing import hidden, painted, toggled, weighed

HEAD = Scope("cross", 0, 1)
BOTH = Scope("encoder"), Scope("cross")


@pytest.mark.parametrize(
    ("before", "act", "after"),
    [
        ("", lambda c: toggled(c, *parse("cross.1.2=off")), "cross.1.2=off"),
        ("all=mean; cross.1.2=off", lambda c: toggled(c, *parse("cross.1.2=off")), "all=mean"),
        ("", lambda c: hidden(c, BOTH, 2), "encoder=hide:3; cross=hide:3"),
        (
            "encoder=hide:3; cross=hide:3",
            lambda c: hidden(c, BOTH, 0),
            "encoder=hide:1,3; cross=hide:1,3",
        ),
        ("encoder=hide:3; cross=hide:3,4", lambda c: hidden(c, BOTH, 2),
         "cross=hide:4"),
        # Hidden from some of them alone: now from all.
        ("cross=hide:3", lambda c: hidden(c, BOTH, 2),
         "cross=hide:3; encoder=hide:3"),
        ("cross.1=hide:3", lambda c: hidden(c, BOTH[1:], 2), "cross.1=hide:3; cross=hide:3"),
        ("cross=hide:3", lambda c: hidden(c, [HEAD], 2), "cross=hide:3; cross.1.2=hide:3"),
        ("", lambda c: painted(c, HEAD, (2, 0), False), "cross.1.2=forbid:3>1"),
        ("cross.1.2=forbid:3>1", lambda c: painted(c, HEAD, (2, 1), False),
         "cross.1.2=forbid:3>1-2"),
        ("cross.1.2=forbid:3>1-2", lambda c: painted(c, HEAD, (2, 0), True),
         "cross.1.2=forbid:3>2"),
        ("cross.1.2=forbid:3>1", lambda c: painted(c, HEAD, (2, 0), True), ""),
        ("cross=forbid:3>1", lambda c: painted(c, HEAD, (2, 0), True),
         "cross=forbid:3>1; cross.1.2=allow:3>1"),
        ("cross.1.2=weight:1>2:0.5", lambda c: weighed(c, HEAD, (0, 1), 0.7),
         "cross.1.2=weight:1>2:0.7"),
        ("cross.1.2=weight:1>2:0.5", lambda c: weighed(c, HEAD, (0, 2), 1.0),
         "cross.1.2=weight:1>2:0.5; cross.1.2=weight:1>3:1.0"),
    ],
)  # fmt: skip
def test_an_act(before, act, after):
    assert written(act(parse(before))) == after


def test_an_act_twice_is_undone():
    start = parse("encoder=temperature:2.0; cross.1.2=forbid:1>1; cross=hide:9")
    off = parse("decoder.1.1=off")[0]
    assert toggled(toggled(start, off), off) == start
    assert hidden(hidden(start, BOTH, 4), BOTH, 4) == start
    assert painted(painted(start, HEAD, (4, 4), True), HEAD, (4, 4), False) == start
