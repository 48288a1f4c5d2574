"""python -m model: one door for every command."""

import pytest

from model import __main__ as door


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
