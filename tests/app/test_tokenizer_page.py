"""The page Tokenizer: what it shows ends in what the model reads, for any text and tokenizer."""

import shutil

import pytest

from headlight.model import checkpoint, load
from headlight.model.probing.run import Run
from headlight.model.probing.trace import read_of
from tests.app.common import components
from tests.model.common import random_model
from tests.model.test_tokenizer import word_piece

HOSTILE = ["🙂 <b>bold</b> *x* :smile: $a$", "שלום עולם", "a" * 200, "</div><script>x", "\u200d ­"]


@pytest.fixture
def opened(page):
    def open_page(**asked):
        page.query_params.update({"model": "en-de"} | asked)
        page.switch_page("tokenizer").run()
        assert not page.exception
        return page

    return open_page


def tiles(page):
    (data,) = components(page, "token_tiles")
    return data


def merge_rows(page) -> list[list[str]]:
    """The symbols of each row of the merges."""
    return [row["symbols"] for row in tiles(page)["rows"]]


def test_the_merges_of_a_word_end_in_its_tokens(opened):
    page = opened(source="A dog is snowdogging.", word="4 ␣snowdogging")
    rows, table = merge_rows(page), page.dataframe[0].value
    of_word = table[table["from"] == "4 ␣snowdogging"]
    assert rows[0] == list("␣snowdogging") and len(rows) > 3 and tiles(page)["isDone"]
    (own,) = (one for one in tiles(page)["words"] if one["choice"] == tiles(page)["chosen"] == 3)
    assert own["tokens"] == of_word[["token", "id"]].to_numpy().tolist()
    assert [symbol.lstrip("␣") for symbol in rows[-1]] == [
        token.lstrip("·") for token in of_word["token"]
    ]
    assert [len(row) for row in rows] == list(range(len(rows[0]), len(rows[-1]) - 1, -1))
    assert (of_word["start"].iloc[0], of_word["end"].iloc[-1]) == (9, 20)


def test_it_opens_on_the_word_of_most_tokens(opened):
    page = opened(source="A dog is snowdogging.")
    assert tiles(page)["chosen"] == 3
    page.session_state["word"] = "2 ␣dog"
    assert merge_rows(page.run())[-1] == ["␣dog"]
    page.text_area(key="source").set_value("The cat.").run()
    assert not page.exception and tiles(page)["chosen"] >= 0


def test_special_tokens_say_what_adds_them(opened, en_de):
    page = opened(source="A dog.", target="Ein Hund", pad_to="6")
    read = read_of(
        en_de.model,
        Run(tuple(map(en_de.tokenizer.encode, ("A dog.", "Ein Hund"))), pad_to=6),
    )
    for side, ends in (
        ("source", ["end of every source", *["padding"] * 2]),
        ("target", ["padding"] * 3),
    ):
        page.segmented_control(key="text").set_value(side).run()
        table = page.dataframe[0].value
        assert list(table["id"]) == list(read["src" if side == "source" else "tgt"].ids)
        assert list(table["from"])[-3:] == ends
        assert (table["from"].iloc[0] == "start of every target") == (side == "target")
        special = table["from"].str.contains("every|padding")
        assert table["start"].isna().equals(special) and table["end"].isna().equals(special)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_shown_as_text(opened, text):
    page = opened(source=text)
    assert not page.error
    tokens = load("en-de").tokenizer.encode(text)
    assert list(page.dataframe[0].value["id"])[:-1] == list(tokens.ids)


@pytest.fixture
def pieces(models):
    tokenizer = word_piece()
    model = random_model("pre_norm", vocab_size=len(tokenizer))
    checkpoint.save(models / "pieces", model, "pre_norm", tokenizer, {})
    yield
    shutil.rmtree(models / "pieces")


def test_a_tokenizer_that_is_no_bpe_says_what_it_cannot_show(pieces, opened):
    page = opened(model="pieces", source="The DOG sees")
    assert "is WordPiece, not BPE" in tiles(page)["notes"][0] and not tiles(page)["rows"]
    assert page.dataframe[0].value["start"].iloc[0] == 0


def test_a_target_that_is_not_what_the_tokenizer_would_make_is_said(opened):
    # Random weights write what no tokenizer would.
    page = opened(model="uneven", source="the dog", text="target")
    assert "one by one" in tiles(page)["notes"][0]
    assert set(page.dataframe[0].value["from"]) <= {"start of every target", "the model"}
