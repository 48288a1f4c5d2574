"""python -m model: one door for every command."""

import pytest

from model import __main__ as door
from model.pretrained.weights import CannotLoad


def test_it_lists_every_command(capsys):
    door.main([])
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in door.COMMANDS)


@pytest.mark.parametrize("name", door.COMMANDS)
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as end:
        door.main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: python -m model {name}" in capsys.readouterr().out


def test_an_unknown_command():
    with pytest.raises(SystemExit, match="There is no command 'tarin'; there are train"):
        door.main(["tarin"])


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(door.COMMANDS, "train", ("nosuchpackage.train", ""))
    with pytest.raises(SystemExit, match="nosuchpackage is missing here: pip install nosuchp"):
        door.main(["train"])


def test_its_arguments_are_those_of_the_command_line(monkeypatch):
    monkeypatch.setattr("sys.argv", ["model", "tarin", "train"])
    with pytest.raises(SystemExit, match="'tarin'"):
        door.main()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/there/x"), "/there/x: No space left on device."),
        (FileNotFoundError("There is no checkpoint x."), "There is no checkpoint x."),
        (CannotLoad("x is cut off."), "x is cut off."),
    ],
)
def test_what_a_command_cannot_do_is_one_sentence(monkeypatch, error, said):
    class Fails:
        def main(self, arguments):
            raise error

    monkeypatch.setattr(door, "import_module", lambda name: Fails())
    with pytest.raises(SystemExit) as end:
        door.main(["train"])
    assert end.value.code == said
