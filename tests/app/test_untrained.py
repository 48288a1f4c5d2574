"""Every preset in the app, on every page, with the user's sentence; and the way to Llama."""

import pytest
import torch

from headlight.app.results import system_results
from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.state.catalog import DEFAULT_MODEL
from headlight.app.views import from_2017_to_llama
from headlight.model import load
from headlight.model.analysis import lineage
from headlight.model.presets import PRESETS
from headlight.model.probing.run import FINAL, Run
from headlight.model.rounding import percent
from tests.app.common import App, components, forget_all
from tests.conftest import long_but

TEXT = "Two dogs run on the beach."
PAGES = ("stage", "lineage")


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
    """On the stage, which depends on its parts; and on one of the other pages."""
    app.session_state["model"] = f"{preset}, untrained"
    for page in ("stage", PAGES[[*PRESETS].index(preset) % len(PAGES)]):
        app.switch_page(page).run()
        assert not app.exception and not app.error, page
        said = [text.value for text in (*app.markdown, *app.caption)]
        assert any("Random weights" in text or "weights are random" in text for text in said)
        assert app.text_area(key="source").value == TEXT
    app.switch_page("stage").run()
    (look,) = components(app, "stage_look")
    assert look["twin"] == (preset in ("paper", "pre_norm", "hyunwoongko", "window"))
    alone = {"bloem": ["encoder"], "decoder_only": ["decoder"]}
    kinds = alone.get(preset, ["encoder", "decoder", "cross"])
    app.switch_page("take-away").run()
    assert app.segmented_control(key="kind").options == kinds


@pytest.fixture(scope="module")
def effects(default):
    source = default.tokenizer.encode(TEXT)
    models = lineage.members(len(default.tokenizer), 1024)
    ids = torch.tensor([[*source.ids, 2]])
    return lineage.effects(models, ids, (*source.tokens, "</s>"))


def test_the_line_counts_what_the_model_of_each_stop_has(effects):
    paper, *stops = from_2017_to_llama.stops(effects)
    assert [stop.name for stop in stops] == [*effects] and paper.moved == ""
    total = int(paper.parameters.replace(",", ""))
    for stop in stops:
        before, after = effects[stop.name].parameters
        total += int(stop.parameters.replace(",", "").replace("−", "-"))
        assert total == after and before + total - after == before
        moved = sum(effects[stop.name].moved) / len(effects[stop.name].moved)
        assert stop.moved == percent(moved, 1)


def test_the_figure_of_each_stop_counts_and_frames_what_its_swap_changes(default, effects):
    """All blocks' parameters are the model's; what is new is what the swap is called after, and
    the figure has what is gone at its place."""
    run = Run((default.tokenizer.encode(TEXT),) * 2)
    view, seen = catalog.view_of(DEFAULT_MODEL, FINAL, "cpu"), {}
    for name in (lineage.PAPER_MODEL, *lineage.LINE):
        trace, shown = system_results.lineage_figure(Shown(view, run), name)
        seen[name] = trace, shown, from_2017_to_llama.names(name)
        counted = sum(block.parameters for block in shown)
        assert counted == (
            effects[name].parameters[1]
            if name in effects
            else effects["decoder only"].parameters[0]
        )
    parts, removed = {}, {}
    for (_, old, old_names), (name, (trace, shown, names)) in zip(
        seen.values(), [*seen.items()][1:], strict=False
    ):
        was, gone = from_2017_to_llama.compared(trace, (old, old_names), (shown, names))
        parts[name] = {block.part for block in was}
        if gone:
            removed[name] = {(block.stack, block.sublayer) for block in gone}
            merged = from_2017_to_llama.merged(old, shown)
            assert [block for block in merged if block not in gone] == shown
            assert [block.part for block in merged] == [block.part for block in old]
    assert parts == {
        "decoder only": set(),
        "learned positions": {"position"},
        "unscaled": {"embedding"},
        "GELU": {"feed_forward"},
        "pre-norm": {"norm"},
        "RMSNorm": {"norm"},
        "no biases": {"self_attn", "feed_forward"},
        "SwiGLU": {"feed_forward"},
        "rotary": {"self_attn"},
        "groups": {"self_attn"},
    }
    encoder = {("encoder", sublayer) for sublayer in ("", "self_attn", "feed_forward")}
    assert removed == {
        "decoder only": encoder | {("decoder", "cross_attn")},
        "rotary": {("decoder", "")},
    }
