"""What a message quotes."""

import os

import pytest

from headlight.model.messages import reason, short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a name", "a name"), ("  two\nlines\t\r\n", "two lines"), ("\x1b[31m", "�[31m"),
        (os.fsdecode(b"R\xe9mi"), "R�mi"), ("abcdefghij", "abcdefghij"), (["a", 1], "['a', 1]"),
        ("abcdefghijk", "abcde…hijk"), ("a" + "x" * 10**7 + "b", "axxxx…xxxb"),
    ],
)  # fmt: skip
def test_a_quoted_text_is_one_line_of_bounded_length(text, shown):
    assert short(text, 10) == shown


def test_the_reason_of_an_error(tmp_path):
    with pytest.raises(OSError) as missing:
        (tmp_path / "x").read_text()
    assert reason(missing.value) == "No such file or directory"
    assert reason(ValueError("It is long.\n" * 100)).startswith("It is long. It")
    assert reason(KeyError()) == "KeyError"
    assert len(reason(ValueError("x" * 50_000))) <= 150
