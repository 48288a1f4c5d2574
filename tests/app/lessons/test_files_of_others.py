"""Folders of lessons and of answers that somebody else filled: whatever stands there is used, or
refused by itself in a sentence, and the other files work."""

import csv
import json
import os
import random
import time

import pytest

from headlight.app.lessons import __main__ as command
from headlight.app.lessons.check import check
from headlight.app.lessons.lesson import load_folder
from headlight.model.messages import LONGEST_MESSAGE
from tests.app.lessons.common import loaded
from tests.app.lessons.test_answers import filled, marker, resealed
from tests.app.lessons.test_lesson_files import GOOD

SECONDS = 2  # per file
NUMBERS = [60, pytest.param(2000, marks=pytest.mark.long)]
ODD = [
    "{[a]: b}", "{{a: b}: c}", "? [a]\n: b", "[" * 900, "{a: " * 900, "!!set {a}", "!!bool x",
    "!!timestamp x", "*a", "&a b", "<<: {a: b}", "1: 2", "null", "~", "true", ".nan", "-.inf", "=",
    "2001-13-45", "2001-12-14", "0x_", "9" * 5000, "1e400", "-1", "", "'", '"', "\0", "\x85", "\t",
    "x" * 50_000, "{x}", "{row}", "[]", "{}", "[[], {}]", "{[1, 2]: {[a]: b}}", "../../x", "/", "…",
    "# read: x", "---", "## Hint", "## Reveal", "\u2028", "e\u0301" * 200, "\U0001f642", "<b>",
]  # fmt: skip
NAMES = [
    os.fsdecode(b"R\xe9mi"), os.fsdecode(b"\xff\xfe"), os.fsdecode("名前".encode("shift_jis")),
    "Rémi", "x" * 200, "a\nb", "=1+1", "-x", "[a](b)", " ", "\x1b[31m", "\u202eabc",
]  # fmt: skip


def is_sentence(text):
    return 0 < len(text) <= LONGEST_MESSAGE and "\n" not in text and text.isprintable()


def changed(content: bytes, chance: random.Random) -> bytes:
    """With one to four things changed: letters, lines, values, bytes."""
    for _ in range(chance.randint(1, 4)):
        lines = content.split(b"\n")
        one, odd = chance.randrange(len(lines)), chance.choice(ODD).encode()
        start = chance.randrange(len(content) + 1)
        match chance.randrange(8):
            case 0:  # another value
                key, colon, _ = lines[one].partition(b":")
                lines[one] = key + (b": " if colon else b"") + odd
            case 1:
                lines.insert(one, odd)
            case 2:
                lines.insert(one, chance.choice(lines))
            case 3:
                del lines[one : one + chance.randint(1, 5)]
            case 4:
                lines = [content[:start] + odd + content[start:]]
            case 5:
                lines = [content[:start] + bytes([chance.randrange(256)]) + content[start + 1 :]]
            case 6:
                lines = [content[:start]]
            case 7:
                lines[one] = chance.choice((b"  ", b"\t", b"- ", b"")) + lines[one].lstrip()
        content = b"\n".join(lines)
    return content


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lesson_that_somebody_wrote(tmp_path, number):
    chance, refused = random.Random(number), 0
    (tmp_path / "good.md").write_text(GOOD, encoding="utf-8")
    file = tmp_path / "other.md"
    for _ in range(number):
        content = changed(GOOD.encode(), chance)
        file.write_bytes(content)
        start = time.process_time()
        try:
            lessons, errors = load_folder(tmp_path)
            lines, of_check = check(file, loaded)
        except BaseException:
            print(content[:3000])
            raise
        assert time.process_time() - start < SECONDS, content[:3000]
        assert lessons[0].name == "good" and len(lessons) + len(errors) == 2
        refused += bool(errors)
        for said in [*map(str, [*errors, *of_check]), *lines]:
            assert is_sentence(said), said
    assert number / 4 < refused < number
    print(f"{number} lessons, {refused} refused as they were read")


def answer(content: str, chance: random.Random) -> bytes:
    """A file with something changed, some with a fitting digest."""
    if chance.random() < 0.3:
        return changed(content.encode(), chance)
    odd = [*ODD, None, True, -1, 10**30, 1e300, float("inf"), [], [[]], {}, {"a": [1]}, "\ud800"]
    changes = json.loads(content)
    where = changes if chance.random() < 0.4 else chance.choice(changes["answers"])
    where[chance.choice([*where])] = chance.choice([*odd, *["NESTED"] * 4])
    depth = chance.choice((3, 100, 985))
    return resealed(json.dumps(changes)).replace('"NESTED"', "[" * depth + "]" * depth).encode()


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_that_somebody_wrote(tmp_path, number, capsys):
    chance, good = random.Random(number), filled()
    names = [f"{i}.json" for i in range(number)]
    for name in names:
        while (made := answer(good, chance)) == good.encode():
            pass  # a change that changes nothing
        (tmp_path / name).write_bytes(made)
    start = time.process_time()
    rows = reported(tmp_path, [*names, "good.json"], good)
    assert time.process_time() - start < SECONDS * (5 + number / 100)
    counted = sum(not row["problem"] for row in rows)
    assert counted < number / 2
    print(f"{number} files of answers, {number + 1 - counted} refused")


def reported(folder, names, good):
    """The rows of a report on files of a folder, the last of which is good."""
    (folder / names[-1]).write_text(good, encoding="utf-8")
    out = folder / "grades.csv"
    command.main(["report", *(str(folder / name) for name in names), "--out", str(out)])
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(names) and not rows[-1]["problem"]
    assert all(is_sentence(row["problem"] or ".") for row in rows)
    return rows


def odd_files(folder, ending, good):
    """Names of what stands in a folder and is no file, or has a name in another encoding."""
    for name in NAMES:
        (folder / f"{name}{ending}").write_text(good, encoding="utf-8")
    os.mkfifo(folder / f"pipe{ending}")
    (folder / f"device{ending}").symlink_to("/dev/zero")
    (folder / f"circle{ending}").symlink_to(f"circle{ending}")
    (folder / f"to the pipe{ending}").symlink_to(f"pipe{ending}")
    (folder / f"nowhere{ending}").symlink_to("gone")
    (folder / f"folder{ending}").mkdir()
    (folder / f"large{ending}").touch()
    os.truncate(folder / f"large{ending}", 2**40)
    return [*NAMES, "pipe", "device", "circle", "to the pipe", "nowhere", "folder", "large"]


@pytest.mark.timeout(20)
def test_files_of_any_name_and_kind(tmp_path, capsys, monkeypatch):
    lessons, answers = tmp_path / "lessons", tmp_path / "answers"
    lessons.mkdir()
    answers.mkdir()
    names = odd_files(lessons, ".md", GOOD)
    found, errors = load_folder(lessons)
    assert (len(found), len(errors)) == (len(NAMES), len(names) - len(NAMES))
    monkeypatch.chdir(tmp_path)
    assert command.main(["check", "lessons"]) == 1
    said = capsys.readouterr()
    assert all(map(is_sentence, [*said.out.splitlines(), *said.err.splitlines()]))
    assert len(said.out.splitlines()) == len(NAMES)

    names = [f"{name}.json" for name in odd_files(answers, ".json", filled())]
    rows = reported(answers, [*names, "last.json"], filled(student="Bob"))
    assert [bool(row["problem"]) for row in rows] == [False] + [True] * len(names[1:]) + [False]
    assert rows[0]["file"] == "R�mi.json"


def test_a_report_that_ends_early_leaves_the_old_one(tmp_path, monkeypatch):
    out = tmp_path / "grades.csv"
    out.write_text("old")
    (tmp_path / "a.json").write_text(filled(), encoding="utf-8")
    monkeypatch.setattr(type(marker()), "grade", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        command.main(["report", str(tmp_path / "a.json"), "--out", str(out)])
    assert out.read_text() == "old"
