"""Models that are no encoder-decoders of the paper go through every step and every command: a
decoder alone, and one with an attention that only the tests know (tests/odd.py)."""

import io
import re

import numpy as np
import pandas as pd
import pytest

from headlight.app.export import pictures, tables
from headlight.app.state.options import STEPS
from headlight.app.state.pages import HOME, PAGES
from headlight.model import checkpoint, load
from headlight.model.presets import PRESETS
from headlight.model.tokenizer import Tokenizer
from tests import odd
from tests.app.common import unfold, view_of, words
from tests.conftest import LINES
from tests.model.common import random_model

SHAPES = {  # name → preset, kinds of attention with the numbers of their layers, and texts
    "odd": (odd.NAME, {"encoder": [1, 2], "decoder": [1, 2, 3], "cross": [1, 2, 3], odd.KIND: [2]}),
    "alone": ("decoder_only", {"decoder": [1, 2, 3]}),
}
TEXT = "the dog the"


LACKING = {  # name → preset, and the special tokens that its tokenizer lacks
    "bare": ("decoder_only", ("pad_id", "bos_id", "eos_id")),
    "mute": ("paper", ("bos_id",)),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of models for `--models`; see tests/conftest.py."""
    folder, tokenizer = tmp_path_factory.mktemp("others"), Tokenizer.train(LINES, vocab_size=300)
    of_shapes = {name: (preset, ()) for name, (preset, _) in SHAPES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, odd.NAME, odd.ODD)
        for name, (preset, ids) in (of_shapes | LACKING).items():
            model = random_model(preset, vocab_size=len(tokenizer), **dict.fromkeys(ids, -1))
            checkpoint.save(folder / name, model, preset, tokenizer, {"title": name})
        yield folder


every_model = pytest.mark.parametrize("name", SHAPES)


def opened(page, view, name):
    page.query_params.update(model=name, source=TEXT)
    page.switch_page(view).run()
    assert well(page)
    assert page.settings["model"] == name
    return page


def well(page):
    """Says what is wrong, if anything is."""
    wrong = [*page.exception, *page.error]
    assert not wrong, [one.value for one in wrong]
    return True


@every_model
def test_every_step(page, name):
    opened(page, "inside", name)
    for step in STEPS:
        page.session_state["at"] = step
        assert well(page.run()), step


@every_model
def test_the_heads_are_listed_by_the_layers_they_stand_in(page, name):
    opened(page, HOME, name)
    unfold(page, "all_heads")
    table = page.dataframe[0].value
    _, kinds = SHAPES[name]
    for kind, layers in kinds.items():
        assert sorted(set(table.layer[table.attention == kind])) == layers
    assert len(table) == 4 * sum(map(len, kinds.values()))


def test_a_decoder_alone_reads_one_text(page):
    opened(page, HOME, "alone")
    assert "target" not in [box.key for box in page.text_input]
    assert page.text_area(key="source").value == TEXT
    assert any(text.value.startswith("**Next token:**") for text in page.markdown)


@every_model
def test_every_export(models, name):
    seen = load(models / name).trace(TEXT)
    for kind, layers in SHAPES[name][1].items():
        view = view_of(seen, kind, len(layers) - 1, 1)
        assert f"layer {layers[-1]}, head 2" in view.name
        assert pictures.head(view, "svg") and pictures.page(view)
        one = pd.read_csv(io.BytesIO(tables.csv(view, one_head=True)), keep_default_na=False)
        assert set(one.attention) == {kind} and set(one.layer) == {layers[-1]}
        arrays = np.load(io.BytesIO(tables.npz(view)))
        np.testing.assert_array_equal(arrays[kind], seen.attention[kind])
        titles = {side.title for side in seen.sides.values()}
        assert set(arrays) == {*SHAPES[name][1], *titles, "settings"}
        table = pd.read_parquet(io.BytesIO(tables.parquet(view)))
        assert set(table.attention) == set(SHAPES[name][1])
    for ending in ("svg", "png", "pdf"):  # of the last kind: none has formats of its own
        assert pictures.head(view, ending) and pictures.grid(view, ending)


def test_a_model_without_special_tokens_opens_every_page(page):
    opened(page, HOME, "bare")
    for entry in PAGES.values():
        page.switch_page(entry.key).run()
        assert well(page), entry.key
    page.number_input(key="pad_to").set_value(9).run()
    assert not page.exception
    assert [error.value for error in page.error if "has no padding token" in error.value]
    assert page.text_area(key="source").value == TEXT


def test_a_change_is_measured_on_a_model_without_special_tokens(page):
    """The last row of a text predicts no token there."""
    page.query_params["changes"] = "decoder=uniform"
    assert re.search(r"After \*|by more than", words(opened(page, HOME, "bare")))


def test_a_model_that_cannot_write_says_so_and_reads_a_target_that_is_typed(page):
    page.query_params.update(model="mute", source=TEXT)
    for entry in PAGES.values():
        page.switch_page(entry.key).run()
        assert not page.exception, entry
    page.switch_page(HOME).run()
    assert "no token that starts a target" in page.error[0].value
    page.button(key="translate_again").click().run()
    assert not page.exception and page.text_area(key="source").value == TEXT
    page.text_input(key="target").set_value("ein Hund").run()
    assert well(page)
