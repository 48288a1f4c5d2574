"""What a user reads has the field's words: token, query, key, attends to. None of the words that
stood in their place is left in what is on the screen, in files, in --help or in the docs."""

import ast
import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def python_texts(path: Path) -> Iterator[str]:
    """Every literal; of model/ the docstrings too, which help() and --help show."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = set()
    if path.is_relative_to(ROOT / "app"):
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(tree) if isinstance(node, owners)]
        hidden = {id(node.body[0].value) for node in nodes if ast.get_docstring(node) is not None}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.value


def script_texts(path: Path) -> Iterator[str]:
    """Every literal of JavaScript, whose comments nobody sees."""
    literal = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`'
    for match in re.finditer(
        rf"//[^\n]*|/\*.*?\*/|({literal})", path.read_text("utf-8"), re.DOTALL
    ):
        if match[1]:
            yield match[1][1:-1]


def markdown_texts(path: Path) -> Iterator[str]:
    """Without where links lead."""
    yield re.sub(r"\]\([^)]*\)", "]", path.read_text(encoding="utf-8"))


def notebook_texts(path: Path) -> Iterator[str]:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        yield "".join(cell["source"])


def whole(path: Path) -> Iterator[str]:
    yield path.read_text(encoding="utf-8")


KINDS = {  # which files, and what of them is read
    "app/**/*.py": python_texts,
    "model/**/*.py": python_texts,
    "app/**/*.js": script_texts,
    "app/**/*.html": whole,
    "README.md": markdown_texts,
    "assets/checkpoints/*/README.md": markdown_texts,
    "assets/checkpoints/*/config.json": whole,
    "assets/*.ipynb": notebook_texts,
}


def old_words(text: str) -> list[str]:
    if text.strip() in EXCEPTIONS:
        return []
    return [found[0] for old in OLD for found in re.finditer(old, text, re.IGNORECASE)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_old_word_is_left(kind):
    paths = sorted(ROOT.glob(kind))
    assert paths
    left = {
        f"{path.relative_to(ROOT)}: {text[:80]!r}": words
        for path in paths
        for text in KINDS[kind](path)
        if (words := old_words(text))
    }
    assert left == {}


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


def test_sentences_are_short():
    """What the app and the commands say; lessons and documents have tests of their own."""
    found = {
        " ".join(words): len(words)
        for folder in ("app", "model")
        for kind, texts in (("py", whole_texts), ("js", script_texts))
        for path in sorted(ROOT.glob(f"{folder}/**/*.{kind}"))
        for text in texts(path)
        for words in sentences_of(text)
    }
    assert len(found) > 1000
    assert [words for words, count in found.items() if count > LONGEST] == []
    assert statistics.median(found.values()) <= MOST_MEDIAN
