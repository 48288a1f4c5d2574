"""What one changes in the model, on the page."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.app.state import catalog
from headlight.app.state.options import SWEEPS, THIS_SENTENCE
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import formats, head_card
from headlight.model import load
from headlight.model.masks import Masks
from headlight.model.probing import sweeps
from headlight.model.probing.changes import parse
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.sweeps import Score
from tests.app.common import finished, forget_all, unfold, words
from tests.conftest import long_but

MAN, WOMAN = "A man is riding a bike.", "A woman is riding a bike."


@pytest.fixture
def changed(page, models):
    def open_with(line="", model="uneven", source="the dog sees the cat", view=HOME, **more):
        page.query_params.update(model=model, source=source, changes=line, **more)
        return page.switch_page(view).run()

    return open_with


DIFFERENCES = {  # before, after → what is shown
    ("a red dog", "a blue dog"): "a ~~red~~ **blue** dog",
    ("a dog", "a dog"): "a dog",
    ("a dog", ""): "~~a dog~~",
    ("", "a *dog*"): "**a *dog***",
    ("a red dog runs.", "a red dog?"): "a red dog ~~runs.~~ **?**",
    ("a red dog runs.", "a red dog."): "a red dog ~~runs~~.",
    ("a dog.", "a dog?"): "a dog ~~.~~ **?**",
    ("red, hot", "cold"): "~~red, hot~~ **cold**",
}


def test_words_that_differ_are_marked():
    shown = {both: formats.as_markdown(formats.differences(*both)) for both in DIFFERENCES}
    assert {both: text.replace("\\", "") for both, text in shown.items()} == DIFFERENCES
    assert shown["", "a *dog*"] == "**a \\*dog\\***"


def test_changes_are_added_without_writing_them(changed):
    page = changed(kind="cross", layer="2", head="3")
    for of, verb in (
        ("head", "uniform"),
        ("layer", "temperature:2.0"),
        ("kind", "mask:no_first"),
        ("head", "skip"),
    ):
        page.session_state["what_if"] = True  # open
        page.run()
        page.segmented_control(key="change_of").set_value(of)
        page.selectbox(key="ready_made").set_value(verb).run()
    assert not page.exception and page.session_state["changes"] == (
        "cross.2.3=uniform; cross.2=temperature:2.0; cross=mask:no_first; cross.2=skip"
    )


def test_back_to_the_model_as_trained_undoes_whatever_has_a_badge_but_the_target(changed):
    acts = dict(causal=False, pad_to=24, step="256")
    given = {key: str(value).lower() for key, value in acts.items()}
    target = "Un chien court."
    page = changed("cross.1.1=off", "en-fr", "A dog runs.", target=target, **given)
    state = page.session_state
    assert not page.exception and {key: state[key] for key in acts} == acts
    page.button(key="as_trained").click().run()
    expected = dict(causal=True, pad_to=0, step=FINAL, changes="", target=target)
    assert {key: state[key] for key in expected} == expected
    assert page.button(key="as_trained").disabled


def test_another_model_that_cannot_be_read_leaves_the_top_bar(changed, monkeypatch):
    sound = catalog.view_for

    def torn(session, name, step, device):
        if step == "16":
            raise catalog.UnreadableModel("Step 16 is torn.")
        return sound(session, name, step, device)

    monkeypatch.setattr(catalog, "view_for", torn)
    page = changed(model="en-fr", source=MAN, other_step="16")
    assert not page.exception and any("torn" in error.value for error in page.error)
    page.selectbox(key="other_step").set_value("").run()
    assert not page.exception and not page.error


def test_a_minimal_pair_is_taken(changed):
    page = changed(model="en-de")
    page.session_state["what_if"] = True  # open
    page.run()
    page.selectbox(key="minimal_pair").select_index(0).run()
    assert not page.exception
    shown = page.session_state["source"], page.session_state["other"]

    assert shown == catalog.pairs("en-de")[0]
    assert not page.error


@pytest.mark.parametrize("name", ["en-de", "en-fr"])
def test_shipped_pairs_have_as_many_tokens(name):

    tokenizer = load(name).tokenizer
    assert len(catalog.pairs(name)) >= 6 and catalog.pairs("reverse") == []
    for one, other in catalog.pairs(name):
        assert len(tokenizer.encode(one).ids) == len(tokenizer.encode(other).ids)
        differing = sum(a != b for a, b in zip(one.split(), other.split(), strict=True))
        assert 1 <= differing <= 3


@pytest.mark.parametrize(
    ("line", "readable"),
    [
        ("cross.1.1=off; cross.9=off; nonsense; encoder=hide:2", "cross.1.1=off; encoder=hide:2"),
        ("decoder.1.1=weight:1>2:0.5", ""),  # a masked key: known when the model has read the text
    ],
)
def test_a_line_that_cannot_be_followed_is_kept_until_the_user_agrees(changed, line, readable):
    page = changed(line)
    for entry in PAGES.values():
        page.switch_page(entry.key).run()
        assert not page.exception, entry.title
        assert page.session_state["changes"] == line
    page.switch_page(HOME).run()
    assert page.error
    if readable:
        page.button(key="keep_readable").click().run()
        assert not page.error and page.session_state["changes"] == readable


def test_a_page_that_leaves_changes_out_says_so(changed):
    page = changed("all=off; all=hide:2", model="en-de", view="inside", at="Concatenation")
    assert any("leaves your changes out" in text.value for text in page.caption)
    assert "gives NOT" not in words(page)


@pytest.fixture
def small(small_presets):
    """Presets at small sizes, which other tests do not see."""
    forget_all()
    yield
    forget_all()


COMPARED = [  # model, what is compared with
    ("en-de", {"other": WOMAN}),
    ("en-fr", {"other_step": "16"}),
    ("en-de", {"causal": "false", "other_masks": "true"}),
    ("annotated, untrained", {"other_model": "pre_norm, untrained"}),
]


@pytest.mark.parametrize(("model", "chosen"), COMPARED)
def test_a_comparison_is_shown_and_patched_from(changed, small, model, chosen):
    """The other run has the same target, and weights of its own."""
    page = changed(model=model, source=MAN, shows="Comparison", all_heads="true", **chosen)
    step, name = chosen.get("other_step", FINAL), chosen.get("other_model", model)
    donor, own = (
        catalog.view_of(one, at, "cpu").checkpoint for one, at in ((name, step), (model, FINAL))
    )
    target = load(catalog.DEFAULT_MODEL if "untrained" in model else model).translate(MAN)
    other = Run((own.tokenizer.encode(chosen.get("other", MAN)), target))
    kind, layer, head = (page.settings[key] for key in ("kind", "layer", "head"))

    def card(trace):
        at = layer - 1, head - 1
        words = trace.row_words(kind, *at)
        return head_card.card(trace, kind, trace.attention[kind][at], words).partition("\n")[0]

    shown = card(donor.trace_run(other))
    assert shown in words(page) and not page.exception and not page.error
    if "causal" not in chosen:
        assert (
            card(own.trace_run(replace(other, texts=(own.tokenizer.encode(MAN), target)))) != shown
        )
    page.session_state["shows"] = "Current"
    line = "cross.2=patch; encoder_residual.1=patch"
    page.text_input(key="changes").set_value(line).run()
    assert not page.exception and not page.error
    masks = Masks(causal="causal" not in chosen)
    run = Run((own.tokenizer.encode(MAN), target), masks, changes=parse(line), other=other)
    patched = own.trace_run(replace(run, checkpoint=model), donor=donor)
    assert card(patched) in words(page)


UNTRAINED = dict(source=MAN, other_model="pre_norm, untrained", shows="Comparison")


def test_other_models_are_those_with_the_same_tokens_layers_and_heads(changed, small):
    options = (
        changed(model="annotated, untrained", **UNTRAINED).selectbox(key="other_model").options
    )
    assert UNTRAINED["other_model"] in options and catalog.alike(catalog.DEFAULT_MODEL) == []
    assert not {"reverse", catalog.DEFAULT_MODEL, "van_dijck, untrained"} & {*options}


def test_a_model_that_only_reading_tells_apart_is_refused(changed, small, monkeypatch):
    monkeypatch.setattr(catalog, "alike", lambda name: [UNTRAINED["other_model"]])
    page = changed(model=catalog.DEFAULT_MODEL, **UNTRAINED)
    assert page.error and not page.exception


def effects_of(page):
    return page.dataframe[0].value["effect"].to_numpy()


@pytest.mark.parametrize("name", long_but(["Residual stream patched, per token"], SWEEPS))
def test_a_sweep_is_listed(changed, en_de, name):
    page = changed(model="en-de", source=MAN, other=WOMAN, sweep=name)
    page = finished(unfold(page, "all_effects"))
    assert not page.exception and not page.error
    run = en_de.run(MAN)
    other = replace(run, texts=(en_de.tokenizer.encode(WOMAN), run.texts[1]), checkpoint="en-de")
    swept = en_de.swept(replace(run, other=other), SWEEPS[name], donor=en_de)
    assert effects_of(page) == pytest.approx(np.sort(swept.effects), abs=2e-3)


def test_a_score_may_be_of_one_token_or_of_two(changed, en_de):
    page = changed(model="en-de", source=MAN)
    unfold(page, "all_effects")
    assert not any("patched" in option for option in page.segmented_control(key="sweep").options)
    page.selectbox(key="score_at").set_value(2).run()
    page.text_input(key="score_token").set_value("Mann").run()
    page.text_input(key="score_against").set_value("Frau").run()
    assert not page.exception and not page.error
    (man,), (woman,) = (en_de.tokenizer.encode(word).ids for word in ("Mann", "Frau"))
    swept = en_de.swept(en_de.run(MAN), "heads", Score(1, man, woman))
    assert effects_of(page) == pytest.approx(np.sort(swept.effects), abs=2e-3)
    page.text_input(key="score_token").set_value("Donaudampfschiff").run()
    assert page.error and page.session_state["score_token"] == "Donaudampfschiff"


@pytest.fixture
def passes(monkeypatch):
    """Of how many changes each pass of a sweep is; there are several."""
    made, scores = [], sweeps._scores

    def counted(model, run, changes, *more):
        made.append(len(changes))
        return scores(model, run, changes, *more)

    monkeypatch.setattr(sweeps, "_scores", counted)
    monkeypatch.setattr(sweeps, "MAX_BATCH_TOKENS", 250)
    return made


def test_a_long_sweep_is_made_pass_by_pass_and_can_be_stopped(changed, passes):
    source = "A woman stops in the middle of the road."
    page = changed(model="en-de", source=source)
    unfold(page, "all_effects")
    assert len(passes) == 1 and len(page.dataframe[0].value) == passes[0] < 48
    assert page.get("progress") and page.get("progress")[0].proto.text.startswith(f"{passes[0]} of")
    page.button(key="stop_heads").click().run()
    assert not page.exception and len(passes) == 1 and not page.get("progress")
    assert f"{passes[0]} of 48 measured" in words(page)
    page.segmented_control(key="sweep").set_value("Sublayers skipped").run()
    assert "of 48 measured" not in words(page) and page.get("progress")
    page.segmented_control(key="sweep").set_value("Heads off").run()
    page.session_state["all_effects"] = False
    unfold(page, "all_heads")
    page.selectbox(key="measured_on").set_value(THIS_SENTENCE).run()
    assert page.dataframe[0].value["ablation"].count() == passes[0]
    assert not page.exception and "of 48 measured" in words(page)
    page.button(key="go_on_heads").click().run()
    assert page.get("progress") and "of 48 measured" not in words(page)


def test_one_click_makes_the_new_translation_the_target_and_undo_takes_it_back(changed, en_de):
    line = "all=hide:2"
    new = en_de.translate(MAN, changes=line).text
    assert new != en_de.translate(MAN).text
    page = changed(model="en-de", source=MAN, view="inside")

    def use():
        return next((b for b in page.button if b.key == "use_new_translation"), None)

    assert use() is None
    page.text_input(key="changes").set_value(line).run()
    assert use() is not None
    use().click().run()
    assert page.text_input(key="target").value == new and use() is None
    page.button(key="undo").click().run()
    assert page.text_input(key="target").value == "" and use() is not None
    assert page.settings["changes"] == line
    page.button(key="redo").click().run()
    assert page.text_input(key="target").value == new
    assert not page.exception
