"""headlight why"""

from headlight.model.analysis.why import why
from headlight.model.surveys.why_command import main
from tests.model.common import load

TEXT = "a b c"


def printed(capsys, *arguments):
    main(["copy", TEXT, *arguments])
    return capsys.readouterr().out.splitlines()


def test_it_says_what_the_method_says(capsys):
    copy = load("copy")
    found = copy.why(copy.run(TEXT), "cross.2.1=2>2")
    said, *pairs = printed(capsys, "cross.2.1=2>2")
    assert said == str(found) and len(pairs) == 5
    assert pairs[0].split(maxsplit=1) == ["59%", "“b” (source) × “b” (source)"]
    run = copy.run(TEXT, "c b", changes="encoder.1.1=off")
    options = "--target", "c b", "--changes", "encoder.1.1=off", "--by", "parts"
    expected = why(copy.model, run, "cross.2.1=2>2", by="parts")
    assert printed(capsys, "cross.2.1=2>2", *options)[0] == str(expected)


def test_a_head_alone_lists_its_tokens(capsys):
    copy = load("copy")
    trace = copy.trace(TEXT)
    best = trace.attention["cross"][1, 0].argmax(axis=-1)
    lines = printed(capsys, "cross.2.1")
    assert len(lines) == len(best)
    for number, (line, key) in enumerate(zip(lines, best, strict=True), start=1):
        query, token = trace.tgt.tokens[number - 1], trace.src.tokens[key]
        assert line == f"{number} {query} attends most to {key + 1} {token}"
