from dataclasses import replace

import pytest

from headlight.model import load
from headlight.model.tokenizer import Encoding
from tests.app.common import view_of

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "=1+1",
    "]]>&amp;\"'",
    "שלום",
    "🙂",
    "\x00\x08\x1b",
    "a,b\n\"c\"",
    "\u202egnp",
    "NA",
    "$x^2$",
    "\\alpha_1^2",
    "中文",
    "e\u0301\u0323",
    "\u0301",
    "مرحبا",
    "\ufffe\x85",
]  # fmt: skip


@pytest.fixture(scope="module")
def trace():
    return load("en-de").trace("A man in a blue shirt is standing on a ladder.")


@pytest.fixture(scope="module")
def view(trace):
    return view_of(trace)


@pytest.fixture(scope="module")
def hostile(trace):
    """The same weights, of tokens that nobody tokenised so."""

    def side(name, encoding):
        first = 0 if name == "src" else 7
        tokens = [HOSTILE[(first + i) % len(HOSTILE)] for i in range(len(encoding.ids))]
        return Encoding(encoding.ids, tuple(tokens), encoding.offsets)

    return view_of(replace(trace, texts={name: side(name, t) for name, t in trace.texts.items()}))
