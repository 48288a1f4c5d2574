"""What a user reads has the field's words: token, query, key, attends to. None of the words that
stood in their place is left in what is on the screen, in files, in --help or in the docs."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT
from tests.test_documentation import plain, sentences

OLD = {
    r"(\b|_)pieces?\b": "token",
    r"\bask(s|ing)\b": "query",
    r"\bwho may attend\b": "which query may attend to which key",
    r"\blook(s|ed|ing)? at\b": "attends to",
    r"\blook(s|ed|ing)? (ahead|back|there)\b": "attends to",
    r"\b(tokens?|words?|quer(y|ies)|heads?) (sees?|looks?)\b": "attends to",
    r"\b(could|can|may) see (padding|a later|an earlier)\b": "may attend to",
    r"\bin focus\b": "selected",
    r"\btake[ _-]away\b": "export",
    r"\blook[ _-]?ups?\b": "query, key, value",
    r"\bgives? on\b": "output",
    r"\bmost pointed\b": "lowest entropy",
    r"(^|[\d}*])[ \u00a0\u202f]%(?![\w({])": "no space before %",
    r"\bother run\b": "comparison",
    r"\bnobody may\b": "no token may",
    r"\bcomes? about\b": "arises",
    r"\bby turns\b": "alternating",
    r"\b(they|texts) part\b": "diverge",
    r"\bclearest in\b": "best examples",
    r"\bcannot be said\b": "does not apply",
    r"\bno part here\b": "Headlight does not support",
    r"\bheads of cross-attention\b": "cross-attention heads",
}
# Addresses, and the names that follow from them.
EXCEPTIONS = {"take-away", "lookup", "look_up", ".st-key-look_up", "Other run"}


def script_texts(path: Path) -> Iterator[str]:
    """Every literal of JavaScript, whose comments nobody sees."""
    literal = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
    for match in re.finditer(
        rf"//[^\n]*|/\*.*?\*/|({literal})", path.read_text("utf-8"), re.DOTALL
    ):
        if match[1]:
            yield match[1][1:-1]


MOST_MEDIAN, LONGEST = 12, 28  # words of a sentence


def whole_texts(path: Path) -> Iterator[str]:
    """Literals of Python with X for what is put in; of docstrings only those that --help shows."""
    hidden = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if "`headlight " in (about := ast.get_docstring(tree) or ""):
        yield re.sub(r"(?<=\S)\n(?=\S)", " ", about)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            hidden.add(id(node.value))
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in ast.walk(node)}
            yield "".join(part.value if hasattr(part, "value") and isinstance(part, ast.Constant)
                          else "X" for part in node.values)  # fmt: skip
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{[^{}]*\}", "X", node.value)


def sentences_of(text: str) -> list[list[str]]:
    """Words of each sentence, if a text has any: a word, and a space or an end behind a stop."""
    if not re.search(r"\w.*[.?!…](\s|[”’*)]*$)", text):
        return []
    blocks = re.split(r"\n+|(?<=[.?!]) +(?=\*\*|--)|\| ", text)
    return [words for block in blocks for words in sentences(plain(block)) if len(words) > 1]


def said() -> Iterator[tuple[str, str]]:
    """Where something stands that users read, and each text there."""
    for folder in ("app", "model"):
        for kind, texts in (("py", whole_texts), ("js", script_texts)):
            for path in sorted(ROOT.glob(f"{folder}/**/*.{kind}")):
                yield from ((path.name, text) for text in texts(path))


def test_no_old_word_is_left():
    files = [ROOT / "README.md", *ROOT.glob("assets/checkpoints/*/README.md")]
    files += [*ROOT.glob("assets/checkpoints/*/config.json"), *ROOT.glob("app/**/*.html")]
    written = [(file.name, re.sub(r"\]\([^)]*\)", "]", file.read_text("utf-8"))) for file in files]
    left = [
        (name, found[0])
        for name, text in (*said(), *written)
        if text.strip() not in EXCEPTIONS
        for old in OLD
        for found in re.finditer(old, text, re.IGNORECASE)
    ]
    assert left == []


def test_sentences_are_short():
    """What the app and the commands say; lessons and documents have tests of their own."""
    found = {" ".join(words): len(words) for _, text in said() for words in sentences_of(text)}
    assert len(found) > 1000
    assert [words for words, count in found.items() if count > LONGEST] == []
    assert statistics.median(found.values()) <= MOST_MEDIAN
