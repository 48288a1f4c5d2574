"""headlight paths"""

from headlight.model.probing.changes import Pathed, parse
from headlight.model.surveys.paths_command import main
from tests.model.common import load

PAIR, OTHER, HELD = ("a b c", "d b c"), ("b a d", "c a d"), ("c a b", "b a b")


def test_it_says_what_the_method_says_and_each_path_is_a_change(capsys):
    main(["copy", *PAIR, "--pair", *OTHER, "--held-out", *HELD, "--keep", "0.7"])
    said, *lines = capsys.readouterr().out.splitlines()
    found = load("copy").paths([PAIR, OTHER], 0.7, [HELD])
    assert said == str(found)
    shares, paths = zip(*(line.split() for line in lines), strict=True)
    assert parse("; ".join(paths)) == found.paths
    assert all(isinstance(path, Pathed) for path in found.paths)
    assert [int(share.strip("<%")) for share in shares[:3]] == [
        round(100 * effect) for effect in found.effects[:3]
    ]
