"""`headlight figure`: the file that it writes, the caption that it prints, and what it refuses."""

import re
from functools import cache

import pytest
from pypdf import PdfReader

from headlight import load, record
from headlight.app.command import main
from headlight.app.export import figure_command, figures


def told(capsys, *arguments) -> str:
    """What the command says when it ends with 2."""
    with pytest.raises(SystemExit) as end:
        main(["figure", *map(str, arguments)])
    said = capsys.readouterr()
    assert end.value.code == 2 and not said.out
    assert said.err.count("\n") == 1 and len(said.err) <= 301, said.err
    return said.err


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Of one of our own models, as a file."""
    trace = load("en-de").trace("A dog.", "Ein Hund.")
    file = tmp_path_factory.mktemp("recording") / "one.safetensors"
    tokens = [text.tokens for text in trace.texts.values()]
    record(trace.attention, *tokens, origin="mine").save(file)
    return file


def test_a_head_of_a_shipped_model(tmp_path, capsys):
    out = tmp_path / "fig.pdf"
    main(["figure", "en-de", "A dog runs.", "--target", "Ein Hund rennt.", "--layer", "3", "--head",
          "2", "--changes", "cross.3.2=uniform", "--width", "84mm", "--out", str(out)])  # fmt: skip
    said = capsys.readouterr().out
    assert said.startswith("Weights of cross-attention, layer 3, head 2, of the model “English → ")
    assert "cross.3.2=uniform" in said and "“A dog runs.” → “Ein Hund rennt.”" in said
    (page,) = PdfReader(out).pages
    assert abs(float(page.mediabox.width) / 72 - 84 / 25.4) < 0.01
    assert {"dog", "rennt"} <= {*page.extract_text().split()}


def test_a_word_alignment(tmp_path, capsys):
    out, source, target = tmp_path / "fig.svg", "A dog runs.", "Ein Hund rennt."
    main(["figure", "en-de", source, "--target", target, "--alignment", "--out", str(out)])
    said = capsys.readouterr().out
    assert said.startswith("Word alignment by the model “English → ") and "A dog runs ." in said
    words, drawn = load("en-de").align(source, target), out.read_text()
    assert all(f">{word}</text>" in drawn for word in (*words.source, *words.target))
    line = rf'd="M [\d.]+ ([\d.]+) \nL [\d.]+ ([\d.]+) \n" [^>]*stroke: {figures.INK}'
    black = [tuple(map(float, ends)) for ends in re.findall(line, drawn)]
    heights = [sorted(set(each)) for each in zip(*black, strict=True)]
    links = {(heights[0].index(start), heights[1].index(end)) for start, end in black}
    assert links == words.links() and len(black) == len(words.target)


def test_a_recording_has_its_own_text(recording, tmp_path, capsys):
    for text in ([], ["A dog ."]):
        main(["figure", str(recording), *text, "--kind", "encoder", "--whole", "--out",
              str(tmp_path / "fig.svg")])  # fmt: skip
        said = capsys.readouterr().out
        assert "“mine”, on “A dog .” → “Ein Hund .”" in said and "all heads" in said


def test_what_is_refused_is_said_in_a_sentence(recording, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figure_command, "opened", cache(figure_command.opened))
    out, missing = ["--out", tmp_path / "fig.pdf"], tmp_path / "none.safetensors"
    for arguments, says in {
        ("nothing", "a b", *out): "no checkpoint nothing",
        (missing, *out): "none.safetensors cannot be read: No such file",
        (recording, "a b", *out): "“A dog .”",
        (recording, "--changes", "all=off", *out): "not the model",
        ("copy", *out): "Give a text",
        ("copy", "  ", *out): "Give a text",
        ("copy", "a b", "--kind", "self", *out): "There is no self layer 1 head 1; there are enc",
        ("copy", "a b", "--layer", "9", *out): "There is no cross layer 9 head 1",
        ("copy", "a b", "--head", "0", *out): "There is no cross layer 1 head 0",
        ("copy", "a b", "--changes", "nonsense", *out): "nonsense",
        ("copy", "a b", "--changes", "cross.9.9=off", *out): "cross.9.9=off",
        ("copy", "a b", "--width", "wide", *out): "“wide” is no width",
        ("copy", "a b", "--width", "0.6in", *out): "Make it at least",
        ("copy", "a b", "--out", tmp_path / "fig.gif"): "must end in",
        ("copy", "a b", "--out", tmp_path / "no" / "fig.pdf"): "cannot be written",
        ("copy", "a " * 10_000, *out): "reads at most",
        ("copy", "a b", "--alignment", "--layer", "0", *out): "leave out --layer",
        ("english", "A dog.", "--alignment", *out): "no cross-attention",
        (recording, "--alignment", *out): "Aligning words takes more",
    }.items():
        assert says in told(capsys, *arguments), arguments
    assert not [*tmp_path.iterdir()]
