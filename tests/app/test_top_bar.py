"""What stands on top of every page."""

import pytest

from app.top_bar import FEW


@pytest.fixture
def bar(page):
    page.query_params.update(model="uneven", source="the dog")
    return page.run()


def badges(page):
    return [button.key for button in page.button if button.key.startswith("badge_")]


def test_a_badge_removes_itself_and_what_it_says(bar):
    bar.toggle(key="causal").set_value(False).run()
    assert badges(bar) == ["badge_causal"]
    assert bar.button(key="badge_causal").label == "Causal mask off ×"
    bar.button(key="badge_causal").click().run()
    assert badges(bar) == [] and bar.toggle(key="causal").value is True


def test_behind_a_few_badges_the_others_are_counted(bar):
    masks = ("causal", "src_padding", "tgt_padding")
    for key in masks:
        bar.toggle(key=key).set_value(False)
    bar.number_input(key="pad_to").set_value(9)
    bar.select_slider(key="step").set_value("1000").run()
    assert len(badges(bar)) == 5
    more = [block.proto.popover.label for block in bar.get("popover")]
    assert f"+{5 - FEW} more" in more
    bar.button(key="badge_pad_to").click().run()
    assert bar.number_input(key="pad_to").value == 0 and len(badges(bar)) == 4


def test_the_output_is_edited_as_the_target(bar):
    written = bar.text_input(key="target").placeholder
    assert written and bar.text_input(key="target").value == ""
    bar.button(key="edit_target").click().run()
    assert bar.text_input(key="target").value == written
    assert badges(bar) == ["badge_target"]
    bar.button(key="badge_target").click().run()
    assert bar.text_input(key="target").value == ""
    assert bar.text_input(key="target").placeholder == written


def test_an_earlier_step_reads_the_final_translation_unless_it_is_let_go(page):
    page.query_params.update(model="uneven", source="the dog")
    page.run()
    final = page.text_input(key="target").placeholder
    assert "hold" not in [toggle.key for toggle in page.toggle]
    page.select_slider(key="step").set_value("10").run()
    assert page.text_input(key="target").placeholder == final
    assert any("final step" in text.value for text in page.markdown)
    page.toggle(key="hold").set_value(False).run()
    assert page.text_input(key="target").placeholder != final
    assert not any("final step" in text.value for text in page.markdown)
