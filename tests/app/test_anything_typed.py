"""Whatever is typed, pasted or given as a file, from the text to the exports and back. Rows sum to
1 or are zero, offsets lie in the text, what is written reads back equal, nothing of the user's
comes alive, and whatever cannot be done is told in a sentence.

25 examples of a property, and 5,000 others in `make test-long`; half as many of those that run the
model, a tenth of those that load one or make pages, a twentieth of those that run the app, but at
least five.
"""

import csv
import io
from dataclasses import replace

import hypothesis
import numpy as np
import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from headlight.app import charts, theme
from headlight.app.export import bertviz_html, pictures, tables
from headlight.app.export.view import permalink
from headlight.app.state import settings
from headlight.app.state.pages import PAGES
from headlight.app.state.setting import ABSENT
from headlight.app.state.settings import SETTINGS
from headlight.app.text import formats, part_names
from headlight.model.checkpoint import Checkpoint
from headlight.model.probing.changes import CannotChange
from headlight.model.probing.sites import Place
from headlight.model.probing.trace import CannotRead
from headlight.model.surveys import sentences
from headlight.model.surveys.sentences import Line, attend, encode
from headlight.model.surveys.tables import FORMULAS, spreadsheet_safe
from headlight.model.training.data import DataError
from tests.app.common import App, plain_text, view_of
from tests.app.test_settings import HERE
from tests.app.test_shown_as_text import PAYLOADS
from tests.markup import Markup
from tests.model.common import random_model, tiny_tokenizer

ALL = hypothesis.settings.default.max_examples
HALF, FEW, FEWER = (hypothesis.settings(max_examples=max(5, ALL // part)) for part in (2, 10, 20))
ALIVE = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "<b>", "&lt;", "]]>",
    "{{x}}", "=1+1", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "＝1", "\t=1", "'", '"', ",",
    "[a](javascript:alert(1))", "![a](http://x.example/y.png)", "$x^2$", "\\alpha", "`a`", "**b**",
    "# title", ":red[x]", ":material/add:", "<|endoftext|>", "<pad>", "</s>", "NaN", "null", "-0",
]  # fmt: skip
LETTERS = [
    "the dog", "Ein Hund", " ", "  ", "\n", "\r\n", "\t", "\0", "\x08", "\x1b[31m", "\x7f", "\x85",
    "\u2028", "\u202e", "\ufeff", "\ufffe", "\u0301", "e\u0301\u0323", "ﷺ", "שלום", "中文", "🙂",
    "👩‍👩‍👧", "🇩🇪", "\U0010ffff", "ß", "İ", "ﬁ", "0", "1e309", "½", "²",
]  # fmt: skip
LETTER = st.characters(exclude_categories=["Cs"])
TEXT = st.one_of(
    st.text(LETTER, max_size=30),
    st.lists(st.sampled_from(ALIVE + LETTERS) | LETTER, max_size=8).map("".join),
)
MODEL = random_model(vocab_size=320, max_length=128)
TINY = Checkpoint(MODEL, tiny_tokenizer(), {"title": "tiny"}, "paper")


# From the text to the numbers, to files, and back


def traced(text, target, line=""):
    """Where the model takes all that; else it says in a sentence why not."""
    try:
        return TINY.trace(text, target, changes=line)
    except (CannotRead, CannotChange) as error:
        is_sentence(str(error))
        hypothesis.reject()


def is_sentence(said: str) -> None:
    """One that a page can show as it is."""
    assert said and said[-1] in ".…)”" and "Traceback" not in said, said
    said.encode("utf-8")


@given(TEXT)
def test_offsets_lie_in_the_text_and_cover_it(text):
    encoding = TINY.tokenizer.encode(text)
    covered = set()
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        assert 0 <= start <= end <= len(text) and token
        covered |= {*range(start, end)}
    plain = text.replace("\xa0", " ")  # a space that keeps words together is read as any other
    assert covered >= {i for i, letter in enumerate(plain) if letter != " "}
    assert TINY.tokenizer.decode(encoding.ids) == plain


@HALF
@given(TEXT, TEXT, st.sampled_from(["", "cross.1.2=off", "all=mask:none", "encoder=hide:1",
                                    "decoder.2=temperature:0.1", "all=uniform"]))  # fmt: skip
def test_rows_sum_to_one_or_are_zero_and_tables_read_back_equal(text, target, line):
    trace = traced(text, target, line)
    for weights in trace.attention.values():
        sums = weights.sum(axis=-1)
        assert (np.isclose(sums, 1, atol=1e-5) | (sums == 0)).all() and weights.min() >= 0
    view = view_of(trace)
    weights = trace.attention["cross"][2, 1]
    query, key = (text.tokens for text in trace.texts_of("cross"))
    with np.load(io.BytesIO(tables.npz(view)), allow_pickle=False) as found:
        assert all((found[kind] == all).all() for kind, all in trace.attention.items())
    table = pd.read_parquet(io.BytesIO(tables.parquet(view, one_head=True)))
    np.testing.assert_array_equal(table.weight, weights.ravel())
    assert tuple(table.key_token[: len(key)]) == key
    assert tuple(table.query_token[:: len(key)]) == query
    text = tables.csv(view, one_head=True).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights.ravel(), atol=1e-8)
    for row, token in zip(rows, key, strict=False):
        assert row["key_token"] == spreadsheet_safe(token).replace("\0", "")
        assert not any(cell.startswith(FORMULAS) for cell in row.values())


def elements(page: str) -> list[tuple[str, ...]]:
    """Of a page, with the names of their attributes."""
    return [(tag, *attributes) for tag, attributes in Markup(page).tags]


PLAIN = view_of(TINY.trace("the dog", "Ein Hund"))


def bertviz(view) -> str:
    return bertviz_html.page(view.trace, "head", "cross", range(3), 2, 1)


@FEW
@given(TEXT, TEXT)
def test_nothing_of_the_user_s_is_alive_in_a_page(text, target):
    """Pages have the elements that they have for other texts, and no figure takes a tag."""
    trace = traced(text, target)
    view = view_of(trace)
    view = replace(view, settings=view.settings | {"model": text, "source": text})
    for make in (bertviz, lambda view: pictures.page(view).decode("utf-8")):
        assert elements(make(view)) == elements(make(PLAIN))
    axes = part_names.axes(trace, Place("cross", 0, 0))
    weights, stops = trace.attention["cross"][0, 0], theme.INKED["light"]
    drawn = charts.attention(weights, *axes, stops).to_plotly_json()
    for side in ("xaxis", "yaxis"):
        assert not any("<" in label for label in drawn["layout"][side]["ticktext"])


@example(" ".join(PAYLOADS))
@given(TEXT)
def test_markdown_shows_a_text_as_it_is(text):
    """Apart from white space, of which Markdown keeps none, and NUL, which it replaces."""
    assert plain_text(formats.escaped(text)).split() == text.replace("\0", "\ufffd").split()


# What is changed


SCOPE = st.builds(
    lambda kind, numbers: ".".join([kind, *map(str, numbers)]),
    st.sampled_from(["all", "encoder", "cross", "source", "encoder_feed_forward"]) | TEXT,
    st.lists(st.integers(-1, 9), max_size=2),
)
VERB = st.sampled_from(
    ["off", "mean", "resample", "resample:0", "random:999999", "uniform", "skip",
     "patch", "patch:1,2", "hide:1", "hide:2,3", "mask:none",
     "mask:window-2", "mask:prefix-0", "mask:strided-0", "forbid:1>1", "allow:1-3>2",
     "positions:none", "temperature:0", "temperature:1e-300", "temperature:0.5",
     "weight:1>1:0.5", "weight:1>1:nan", "weight:9>9:1", "hide:99999999999",
     "forbid:1-999999999>1-999999999", "positions:shifted-3", "positions:shifted-1023",
     "positions:shifted-99999", "mask:window-99999", "mask:strided-99999"]
) | TEXT  # fmt: skip
LINE = st.lists(st.builds("{}={}".format, SCOPE, VERB), max_size=3).map("; ".join) | TEXT


@HALF
@example("all=temperature:1e-300", "")
@given(LINE, TEXT)
def test_changes_are_made_or_refused_in_a_sentence(line, text):
    for weights in traced(text, "Ein Hund", line).attention.values():
        sums = weights.sum(axis=-1)
        assert (np.isclose(sums, 1, atol=1e-5) | (sums == 0)).all()


# What is chosen


NUMBER = st.integers() | st.floats()
VALUE = st.none() | st.booleans() | NUMBER | TEXT | st.lists(TEXT | NUMBER, max_size=3)
CHOSEN = st.dictionaries(st.sampled_from([*SETTINGS, "x"]), VALUE, max_size=8)
BEYOND = ["inf", "-inf", "1e400", "Infinity", "nan", "9" * 400, "-" + "9" * 400, "1e308", "5e-324",
          "-0", "0x10", "٣", "1_0", "2.5", "1e0", " 3", ""]  # fmt: skip
LIMITS = {limit + by for setting in SETTINGS.values() if type(setting.default) in (int, float)
          for limit in (setting.least, setting.most) for by in (-1, 0, 1)}  # fmt: skip
NUMBERS = NUMBER.map(str) | st.sampled_from([*BEYOND, *map(str, sorted(LIMITS))])
ADDRESS = st.dictionaries(
    st.sampled_from([*SETTINGS]), st.lists(TEXT | NUMBERS, max_size=3), max_size=8
)


@given(CHOSEN, ADDRESS)
def test_settings_are_valid_together_and_come_back_by_their_address(chosen, address):
    found = settings.valid(chosen, HERE, address).values
    assert settings.valid(found, HERE).values == found
    for key, setting in SETTINGS.items():
        if key in found:
            assert type(found[key]) is type(setting.default)
            text = setting.as_text(found[key])
            again = setting.parse(text if isinstance(text, list) else [text])
            assert again == found[key] or again is ABSENT or found[key] == [""]
    permalink({key: found[key] for key in found if SETTINGS[key].address}, "stage")


# Files


@given(st.binary(max_size=200) | TEXT.map(str.encode))
def test_a_file_of_sentences_is_read_or_refused_in_a_sentence(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "sentences.tsv"
    file.write_bytes(content)
    try:
        lines = sentences.read(file)
        with_targets = [Line(line.number, line.source, line.target or "x") for line in lines]
        seen = attend(TINY, encode(TINY, with_targets))
    except DataError as error:
        is_sentence(str(error))
        return
    for line, one in zip(lines, seen, strict=True):
        assert one.number == line.number
        as_read = TINY.tokenizer.normalized(line.source).removeprefix(" ")
        assert TINY.tokenizer.decode(one.texts["src"].ids) == as_read


# The app


@hypothesis.settings(FEWER, suppress_health_check=list(hypothesis.HealthCheck))
@given(
    TEXT, TEXT, LINE, TEXT, ADDRESS,
    st.sampled_from(["uneven", "short", "classifier"]),
    st.sampled_from([entry for key, entry in PAGES.items() if key != "take-away"]),
)  # fmt: skip
def test_a_session_lives_whatever_is_typed(page, text, target, line, other, address, name, entry):
    texts = {"model": name, "target": target, "changes": line, "other": other}
    session = App()
    session.query_params.update(address | texts)
    session.run()
    well(session)
    well(session.switch_page(entry.key).run())
    well(session.text_area(key="source").set_value(text).run())
    session.menus = ("what_if",)
    well(session.run())
    if "changes" in [box.key for box in session.text_input]:  # not where nothing can be changed
        well(session.text_input(key="changes").set_value("").run())
    well(session.text_area(key="source").set_value("the dog sees the cat").run())


def well(session) -> None:
    assert not session.exception, session.exception[0].message
    for said in session.error:
        is_sentence(said.value)
