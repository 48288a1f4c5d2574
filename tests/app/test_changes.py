"""What one changes in the model, on the page."""

import re
from dataclasses import replace

import numpy as np
import pytest

from headlight.app.results import memoize
from headlight.app.state import catalog
from headlight.app.state import options as options_module
from headlight.app.state.pages import HOME, PAGES
from headlight.app.text import findings, formats, head_card
from headlight.model.checkpoint import SHIPPED, load
from headlight.model.masks import Masks
from headlight.model.probing import sweeps
from headlight.model.probing.changes import written
from headlight.model.probing.run import FINAL, Run
from headlight.model.surveys.survey import FILE, Survey
from tests.app.common import finished, forget_all, plain_text, unfold, words
from tests.conftest import long_but


@pytest.fixture
def changed(page, models):
    def open_with(line="", model="uneven", source="the dog sees the cat", view=HOME, **more):
        page.query_params.update(model=model, source=source, changes=line, **more)
        return page.switch_page(view).run()

    return open_with


def card_of(trace, kind, layer, head, surveyed=None):
    """`surveyed`: the model that has a survey."""
    words, matches = trace.row_words(kind, layer, head), {}
    if surveyed:
        survey = Survey.load(SHIPPED / surveyed / FILE)
        measured = survey.measured(trace.sites)[kind]
        matches = head_card.surveyed_matches(survey, measured, layer, head)
        assert set(matches) == set(measured.scores)
    return head_card.card(trace, kind, trace.attention[kind][layer, head], words, matches)


def with_differences(before, after):
    return formats.as_markdown(formats.differences(before, after))


def test_without_the_causal_mask_it_is_said_what_peeks(changed):
    en_de = load("en-de")
    target = en_de.translate(MAN)
    weights = en_de.trace(MAN, masks=Masks(causal=False)).attention["decoder"]
    ahead = np.diagonal(weights, 1, axis1=-2, axis2=-1)  # (layer, head, row)
    layer, head, row = np.unravel_index(ahead.argmax(), ahead.shape)
    tokens = ("<s>", *target.tokens)
    page = changed(model="en-de", source=MAN, causal="false")
    parts = map(findings.word, tokens[row : row + 2])
    named = [f"{formats.MARKS[tag]}{text}{formats.MARKS[tag]}" for text, tag in parts]
    expected = "{} attends to the next token, {}".format(*named)
    where = f"the decoder peeks: in its self-attention {layer + 1}.{head + 1}, "
    assert where + expected in words(page) and findings.percent(ahead.max()) in words(page)
    now, before = (
        float(en_de.trace(MAN, en_de.decode(target), masks=masks).log_probabilities.sum())
        for masks in (Masks(causal=False), Masks())
    )
    assert findings.probability("target", now, before) in words(page)


def test_a_probability_is_told_without_and_with_the_changes():
    expected = "Probability of the target: 17% → **<1%** (log-probability −1.75 → −28.59)"
    assert findings.probability("target", -28.59, -1.75) == expected


UNREADABLE = {  # line → a part of what is said
    "cross.1.1": "“cross.1.1” is not a change",
    "cross.9=off": "this attention has no layer 9",
    "sideways=off": "does not apply to “sideways”",
    "decoder.1.1=weight:1>2:0.5": "this key is masked",
}


@pytest.mark.parametrize("line", UNREADABLE)
def test_a_line_that_cannot_be_followed_is_answered_and_kept(changed, line):
    """On each page, one of the lines."""
    page = changed(line)
    for entry in [*PAGES.values()][[*UNREADABLE].index(line) :: len(UNREADABLE)]:
        page.switch_page(entry.key).run()
        assert not page.exception, entry.title
    page.switch_page("compare").run()
    assert any(UNREADABLE[line] in plain_text(error.value) for error in page.error)
    assert page.session_state["changes"] == line


def test_positions_says_that_it_leaves_changes_out(changed):
    page = changed("all.1.1=off; all=hide:2", model="en-de")
    page.switch_page("positions").run()
    assert any("leaves your changes out" in text.value for text in page.caption)


def test_words_that_differ_are_marked():
    assert with_differences("a red dog", "a blue dog") == "a ~~red~~ **blue** dog"
    assert with_differences("a dog", "a dog") == "a dog"
    assert with_differences("a dog", "") == "~~a dog~~"
    assert with_differences("", "a *dog*") == "**a \\*dog\\***"
    shown = with_differences("a red dog runs.", "a red dog?").replace("\\", "")
    assert shown == "a red dog ~~runs.~~ **?**"
    shown = with_differences("a red dog runs.", "a red dog.").replace("\\", "")
    assert shown == "a red dog ~~runs~~."
    assert with_differences("a dog.", "a dog?").replace("\\", "") == "a dog ~~.~~ **?**"
    shown = with_differences("red, hot", "cold").replace("\\", "")
    assert shown == "~~red, hot~~ **cold**"


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


def test_undo_and_redo_walk_the_lines_there_were(changed):
    page, lines = changed(), ["", "cross.2.3=off", "cross.2.3=off; cross.2.1=off"]
    for line in lines[1:]:
        page.text_input(key="changes").set_value(line).run()
    assert page.session_state["changes"] == lines[2] and page.button(key="redo").disabled
    page.button(key="undo").click().run()
    assert page.session_state["changes"] == lines[1]
    page.button(key="undo").click().run()
    assert page.session_state["changes"] == lines[0] and page.button(key="undo").disabled
    page.button(key="redo").click().run()
    assert page.session_state["changes"] == lines[1]
    page.toggle(key="causal").set_value(False).run()
    page.button(key="as_trained").click().run()
    assert page.session_state["changes"] == "" and page.button(key="redo").disabled
    assert page.session_state["causal"] and page.button(key="as_trained").disabled
    page.button(key="undo").click().run()
    assert page.session_state["changes"] == lines[1]


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


def test_of_a_line_that_cannot_be_followed_the_rest_is_kept_when_the_user_agrees(changed):
    page = changed("cross.1.1=off; cross.9=off; nonsense; encoder=hide:2")
    assert page.error and page.session_state["changes"].count(";") == 3
    page.button(key="keep_readable").click().run()
    assert not page.error and not page.exception
    assert page.session_state["changes"] == "cross.1.1=off; encoder=hide:2"


def test_it_is_said_on_the_stage_and_in_its_drawer(page):
    page.query_params.update(model="uneven", source="the dog", changes="cross.9=off")
    unfold(page)
    assert len(page.error) == 2 and not page.exception


def test_pytorch_is_given_the_changes_or_it_is_said_that_it_cannot_be(changed):
    page = changed("cross.1.2=off; encoder=hide:2", model="en-de", source="A dog runs.")
    page.menus = ("what_if",)
    page.switch_page("compare").run()
    page.session_state["head_picker"] = False
    page.run()
    assert not page.exception and not page.error
    table = page.dataframe[0].value
    assert table["agrees"].all() and len(table) == 49
    page.session_state["follow"], page.session_state["to"] = "2 ", "3 "  # as a click does
    trace = load("en-de").trace("A dog runs.", changes="cross.1.2=off; encoder=hide:2")
    kind, layer, head = (page.settings[key] for key in ("kind", "layer", "head"))
    weight = trace.attention[kind][layer - 1, head - 1, 1, 2]
    read, key = trace.texts["tgt"].tokens, trace.texts["src"].tokens
    assert kind == "cross"
    said = words(page.run()).replace("\\", "")
    assert f"Having read “{read[1]}”, about to write “{read[2]}”: weight on “{key[2]}” " in said
    assert f"{weight:.6f}" in said
    page.text_input(key="changes").set_value("cross.1.2=weight:1>2:0.5").run()
    said = [plain_text(error.value) for error in page.error]
    assert any("cannot be applied to torch.nn.Transformer" in sentence for sentence in said)


MAN, WOMAN = "A man is riding a bike.", "A woman is riding a bike."


def test_another_sentence_is_compared_and_patched_from(changed):
    given = dict(model="en-de", source=MAN, other=WOMAN, layer="4", head="3", all_heads="true")
    page = changed(shows="Comparison", **given)
    en_de = load("en-de")
    run = en_de.run(MAN)
    target = en_de.tokenizer.decode(run.texts[1].ids)
    other = en_de.run(WOMAN, target)
    card = card_of(en_de.trace_run(other), "cross", 3, 2, "en-de")
    assert any(card in text.value for text in page.markdown)
    page.session_state["shows"] = "After"
    page.text_input(key="changes").set_value("cross.3.4=patch").run()
    assert not page.exception and not page.error
    patched = en_de.trace(MAN, target, changes="cross.3.4=patch", other=other)
    card = card_of(patched, "cross", 3, 2, "en-de")
    assert any(card in text.value for text in page.markdown)


@pytest.mark.parametrize("more", [{"target": "ein Mann"}, {"causal": "false"}, {"pad_to": "12"}])
def test_a_change_that_does_nothing_is_told_to_do_nothing(changed, more):
    """Beside what the model writes without it, whatever target is read."""
    page = changed("cross.2.1=temperature:1.0", **more)
    assert not page.exception
    before, now = re.search(r"log-probability (\S+) → (\S+)\)", words(page)).groups()
    assert before == now or "causal" in more
    if "target" in more:  # else the mask, or the padding, may do something
        assert findings.NO_CHANGE in words(page)


def test_characters_of_another_sentence_are_its_own(changed):
    page = changed(model="en-de", source="Hi.", other="The little dog runs. 🙂", shows="Comparison")
    assert any("U+1F642" in info.value for info in page.info) and not page.exception
    page.switch_page("tokenizer").run()
    tokens = [*page.dataframe[0].value["token"]]
    assert not page.exception and tokens == ["H", "·i", ".", "</s>"]
    assert not any("one by one" in text.value for text in page.caption)


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


def test_arithmetic_is_that_of_the_model_as_it_is(changed):
    page = changed("all=off; cross.1=temperature:0.5", at="Concatenation")
    page.switch_page("inside").run()
    assert any("leaves your changes out" in text.value for text in page.caption)
    assert not page.exception and "gives NOT" not in words(page)


def test_a_minimal_pair_is_taken(changed):
    page = changed(model="en-de")
    page.session_state["what_if"] = True  # open
    page.run()
    page.selectbox(key="minimal_pair").select_index(0).run()
    assert not page.exception
    shown = page.session_state["source"], page.session_state["other"]

    assert shown == catalog.pairs("en-de")[0]
    assert not page.error


def test_sentences_of_other_lengths_are_compared_where_both_have_the_tokens(changed):
    page = changed(model="en-de", source=MAN, other="Two dogs.", shows="Comparison")
    assert not page.error and not page.exception
    page.session_state["shows"] = "After"
    page.text_input(key="changes").set_value("encoder.1.1=patch").run()
    assert any("patching needs the same number" in error.value for error in page.error)


@pytest.mark.parametrize("name", ["en-de", "en-fr"])
def test_shipped_pairs_have_as_many_tokens(name):

    tokenizer = load(name).tokenizer
    assert len(catalog.pairs(name)) >= 6 and catalog.pairs("reverse") == []
    for one, other in catalog.pairs(name):
        assert len(tokenizer.encode(one).ids) == len(tokenizer.encode(other).ids)
        differing = sum(a != b for a, b in zip(one.split(), other.split(), strict=True))
        assert 1 <= differing <= 3


def test_heads_of_a_long_text_are_not_all_tried_unasked(changed):
    for length, tried in ((3, True), (450, False)):
        page = changed(model="en-de", source="dog " * length, target="Hund",
                       measured_on="This sentence")  # fmt: skip
        unfold(page, "all_heads")
        assert not page.exception and ("ablation" in page.dataframe[0].value) == tried
        page.text_area(key="source").set_value("dog " * 450)


def test_another_step_is_compared_and_patched_from(changed, models):
    """The other run may be of another training step; what is patched is what that step gave."""
    given = dict(model="en-fr", source=MAN, other_step="16", layer="4", all_heads="true")
    page = changed(shows="Comparison", **given)
    assert not page.exception and not page.error
    en_fr, early = load("en-fr"), catalog.view_of("en-fr", "16", "cpu").checkpoint
    target = en_fr.translate(MAN).text
    head = page.settings["head"] - 1
    assert "With step 16 instead, " in words(page)
    shown = card_of(early.trace(MAN, target), "cross", 3, head)
    assert any(shown in text.value for text in page.markdown)
    page.session_state["shows"] = "After"
    page.text_input(key="changes").set_value("cross.2=patch; encoder_residual.1=patch").run()
    assert not page.exception and not page.error
    line = page.settings["changes"]
    patched = en_fr.trace(MAN, target, changes=line, other=early.run(MAN, target), donor=early)
    shown = card_of(patched, "cross", 3, head, "en-fr")
    assert any(shown in text.value for text in page.markdown)
    for entry in PAGES.values():
        if not (entry.run and entry.changes):
            continue
        page.switch_page(entry.key).run()
        assert not page.exception, entry.title
        said_why = [plain_text(error.value) for error in page.error]
        assert not said_why or "cannot be applied to torch.nn.Transformer" in said_why[0], said_why


@pytest.fixture
def small(small_presets):
    """Presets at small sizes, which other tests do not see."""
    forget_all()
    yield
    forget_all()


def test_other_models_are_those_with_the_same_tokens_layers_and_heads(changed, small):
    page = changed(
        model="annotated, untrained", source=MAN, other_model="pre_norm, untrained",
        shows="Comparison",
    )  # fmt: skip
    options = page.selectbox(key="other_model").options
    assert "pre_norm, untrained" in options
    assert not {"reverse", catalog.DEFAULT_MODEL, "van_dijck, untrained"} & {*options}
    assert catalog.alike(catalog.DEFAULT_MODEL) == []


def test_a_model_that_only_reading_tells_apart_is_refused(changed, small, monkeypatch):
    monkeypatch.setattr(catalog, "alike", lambda name: ["pre_norm, untrained"])
    page = changed(
        model=catalog.DEFAULT_MODEL, source=MAN, other_model="pre_norm, untrained",
        shows="Comparison",
    )  # fmt: skip
    assert any("has different layers or heads" in plain_text(error.value) for error in page.error)


def test_two_models_are_compared(changed, small):
    page = changed(
        model="annotated, untrained", source=MAN, other_model="pre_norm, untrained",
        shows="Comparison", all_heads="true",
    )  # fmt: skip
    assert not page.exception and not page.error
    kind, layer, head = (page.settings[key] for key in ("kind", "layer", "head"))
    target = load(catalog.DEFAULT_MODEL).translate(MAN)

    def card(name):
        checkpoint = catalog.view_of(f"{name}, untrained", "final", "cpu").checkpoint
        trace = checkpoint.trace_run(Run((checkpoint.tokenizer.encode(MAN), target)))
        return card_of(trace, kind, layer - 1, head - 1)

    assert card("pre_norm") in words(page) and card("annotated") not in words(page)


def test_masks_as_trained_are_compared_with(changed):
    given = dict(model="en-de", source=MAN, causal="false", all_heads="true")
    page = changed(other_masks="true", shows="Comparison", **given)
    assert page.toggle(key="other_masks").value
    shown = card_of(load("en-de").trace(MAN), "cross", 0, 1, "en-de")
    assert any(shown in text.value for text in page.markdown)
    page.toggle(key="causal").set_value(True).run()
    assert not page.exception and "other_masks" not in {one.key for one in page.toggle}


SWEPT = {  # sweep → how many rows for texts of source and target tokens
    "Heads off": lambda s, t: 48,
    "Sublayers skipped": lambda s, t: 20,
    "Tokens hidden": lambda s, t: s + t,
    "Heads patched": lambda s, t: 48,
    "Heads patched, per token": lambda s, t: 16 * (s + 2 * t),
    "Residual stream patched, per token": lambda s, t: 4 * (s + t),
}


def most_harmful(checkpoint, run: Run, name: str, score=sweeps.Score()) -> str:
    """The change with the lowest effect in the page's sweep, which is of this name, as a line."""
    wanted = "sweep", options_module.SWEEPS[name], score
    runs = [replace(each, checkpoint="", other=None) for each in (run, run.other) if each]
    entries = memoize.results_cache().entries.items()
    *_, swept = (
        made for (key, *_, of), (made, _) in entries
        if key == wanted
        and runs == [replace(one, checkpoint="", other=None) for one in (of, of.other) if one]
    )  # fmt: skip
    changes = sweeps.changes_of(checkpoint.model, run, options_module.SWEEPS[name])
    assert swept.changes == (*changes,) and not swept.missing
    return written(swept.changes[swept.effects.argmin()])


@pytest.mark.parametrize(
    "name", long_but(["Heads off", "Residual stream patched, per token"], SWEPT)
)
def test_a_sweep_is_drawn_and_listed(changed, name):
    page = changed(model="en-de", source=MAN, other=WOMAN, sweep=name)
    page = finished(unfold(page, "all_effects"))
    assert not page.exception and not page.error
    en_de = load("en-de")
    run = en_de.run(MAN)
    table = page.dataframe[0].value
    assert len(table) == SWEPT[name](*(len(text.ids) + 1 for text in run.texts))
    assert table["effect"].is_monotonic_increasing
    target = en_de.tokenizer.decode(run.texts[1].ids)
    other = en_de.run(WOMAN, target)
    line = most_harmful(en_de, replace(run, other=other), name)

    def total(trace):
        ids = [*run.texts[1].ids, en_de.model.config.eos_id]
        logits = trace.logits.astype(float)
        logits -= logits.max(axis=-1, keepdims=True)
        shares = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return shares[range(len(ids)), ids].sum()

    alone = en_de.trace(MAN, target, changes=line, other=other)
    expected = total(alone) - total(en_de.trace(MAN, target))
    assert table["effect"].iloc[0] == pytest.approx(expected, abs=2e-3)


def test_without_another_run_nothing_can_be_patched(changed):
    page = changed(model="en-de", source=MAN)
    unfold(page, "all_effects")
    assert page.segmented_control(key="sweep").options == list(SWEPT)[:3]
    assert "To patch heads or the residual stream, choose a comparison" in words(page)


def test_a_score_may_be_of_one_token_or_of_two(changed):
    page = changed(model="en-de", source=MAN)
    unfold(page, "all_effects")
    page.selectbox(key="score_at").set_value(2).run()
    page.text_input(key="score_token").set_value("Mann").run()
    page.text_input(key="score_against").set_value("Frau").run()
    assert not page.exception and not page.error
    en_de = load("en-de")
    (man,), (woman,) = (en_de.tokenizer.encode(word).ids for word in ("Mann", "Frau"))
    worst = most_harmful(en_de, en_de.run(MAN), "Heads off", sweeps.Score(1, man, woman))
    logits = [en_de.trace(MAN, changes=line).logits[1] for line in ("", worst)]
    plain, off = (row[man] - row[woman] for row in logits)
    assert page.dataframe[0].value["effect"].iloc[0] == pytest.approx(off - plain, abs=2e-3)
    page.text_input(key="score_token").set_value("Donaudampfschiff").run()
    assert any("tokens for this model" in error.value for error in page.error)
    assert page.session_state["score_token"] == "Donaudampfschiff"


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
    page.selectbox(key="measured_on").set_value(options_module.THIS_SENTENCE).run()
    assert page.dataframe[0].value["ablation"].count() == passes[0]
    assert not page.exception and "of 48 measured" in words(page)
    page.button(key="go_on_heads").click().run()
    assert page.get("progress") and "of 48 measured" not in words(page)


def test_a_sweep_goes_on_where_it_was(changed, passes):
    page = changed(model="en-de", source="A man stops in the middle of the street.")
    unfold(page, "all_effects")
    finished(page)
    assert len(page.dataframe[0].value) == sum(passes) == 48 and len(passes) > 3
    assert not page.get("progress") and not [b for b in page.button if b.label == "Stop"]


def test_a_sweep_of_a_long_text_is_not_made(changed):
    page = changed(
        model="en-de",
        source="A dog runs. " * 40,
        other="A cat runs. " * 40,
        target="Ein Hund. " * 40,
    )
    unfold(page, "all_effects")
    assert not page.error
    page.segmented_control(key="sweep").set_value("Heads patched, per token").run()
    assert any("tokens through the model" in info.value for info in page.info)


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
