"""Every preset in the app, on every page, with the user's sentence; and the way to Llama."""

import pytest
import torch

from headlight.app.state.catalog import DEFAULT_MODEL
from headlight.app.views import from_2017_to_llama
from headlight.model import load
from headlight.model.analysis import lineage
from headlight.model.presets import PRESETS
from tests.app.common import App, forget_all, plain_text
from tests.conftest import long_but

TEXT = "Two dogs run on the beach."
PAGES = ("heads", "positions", "lineage")


@pytest.fixture(scope="module")
def default():
    return load(DEFAULT_MODEL)


@pytest.fixture(scope="module")
def app():
    """One start for all tests here."""
    page = App()
    page.menus = "head_picker", "output"
    page.query_params["source"] = TEXT
    yield page.run()
    forget_all()


@pytest.mark.parametrize("preset", long_but(["vanilla", "bloem"], PRESETS))
def test_every_preset_reads_the_users_sentence(app, small_presets, preset):
    """On Attention and on PyTorch, which depend on its parts; and on one of the other pages."""
    app.session_state["model"] = f"{preset}, untrained"
    for page in ("attention", PAGES[[*PRESETS].index(preset) % len(PAGES)]):
        app.switch_page(page).run()
        assert not app.exception and not app.error, page
        assert any("Random weights" in text.value for text in app.markdown)
        assert app.text_area(key="source").value == TEXT
    app.switch_page("compare").run()
    assert not app.exception and not app.error
    said = [info.value for info in app.info if "no counterpart" in info.value]
    if preset in ("paper", "pre_norm", "hyunwoongko", "window"):
        assert not said and app.dataframe[0].value["agrees"].all()
    else:
        assert len(said) == 1
    alone = {"bloem": ["encoder"], "decoder_only": ["decoder"]}
    kinds = alone.get(preset, ["encoder", "decoder", "cross"])
    assert app.segmented_control(key="kind").options == kinds


def show(page, picture, **chosen):
    app = App()
    app.query_params.update(dict(source=TEXT, picture=picture) | chosen)
    app.switch_page(page).run()
    assert not app.exception and not app.error
    assert app.segmented_control(key="picture").value == picture
    explained = '<div translate="yes">\n\n', "\n\n</div>"  # see `explain` of frame.py
    return [text.value.removeprefix(explained[0]).removesuffix(explained[1])
            for text in app.markdown]  # fmt: skip


@pytest.mark.parametrize("text", ["", "dog " * 2000])
def test_a_text_that_cannot_be_read_is_answered(app, text):
    app.switch_page("lineage")
    app.text_area(key="source").set_value(text).run()
    assert not app.exception
    answers = [plain_text(one.value) for one in (*app.info, *app.error)]
    assert any(one.startswith(("Type a sentence", "The source is 2,001")) for one in answers)
    app.text_area(key="source").set_value(TEXT).run()
    assert not app.error


@pytest.fixture(scope="module")
def effects(default):
    source = default.tokenizer.encode(TEXT)
    models = lineage.members(len(default.tokenizer), 1024)
    ids = torch.tensor([[*source.ids, 2]])
    return lineage.effects(models, ids, (*source.tokens, "</s>"))


def test_each_swap_is_told_with_what_it_changes(effects):
    for swap, step in lineage.LINE.items():
        shown = show("lineage", "One part", swap=swap)
        assert from_2017_to_llama.in_words(step) in shown, swap
        assert from_2017_to_llama.effect_in_words(step, effects[swap]) in shown, swap
        assert any(text.startswith(step.title) for text in shown), swap
    table = from_2017_to_llama.lineage(effects)
    shown = show("lineage", "One part after another")
    assert table in shown and len(table.splitlines()) == 2 + len(lineage.LINE)
