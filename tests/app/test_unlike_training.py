"""The notice on a sentence that is unlike what the model was trained on."""

CAPTION = "A little girl in a red dress is playing with her dog on the beach."
NEWS = "The opposition accused the minister of misleading parliament about the contract."


def notices(page) -> list[str]:
    assert not page.exception
    return [info.value for info in page.info if "was trained on" in info.value]


def test_a_foreign_sentence_is_answered_in_the_card_s_words(page):
    page.query_params["source"] = NEWS
    page.run()
    assert notices(page) == [
        "This model was trained on everyday sentences and image captions. This text looks "
        "different, so its French may be poor."
    ]
    page.text_area(key="source").set_value(CAPTION).run()
    assert notices(page) == []


def test_it_is_about_the_sentence_and_not_about_what_was_changed(page):
    chosen = {"target": "Quark Quark Quark", "causal": "false", "pad_to": "40", "step": "16"}
    page.query_params.update(source=CAPTION, **chosen)
    assert notices(page.run()) == []
    assert len(notices(page.text_area(key="source").set_value(NEWS).run())) == 1


def test_a_sentence_kept_for_a_letters_model_is_answered(page):
    page.query_params["source"] = "The boy throws the ball."
    assert notices(page.run()) == []
    page.selectbox(key="model").set_value("sort").run()
    assert page.text_area(key="source").value == "The boy throws the ball."
    assert ["lower\\-case letters" in one for one in notices(page)] == [True]
    assert notices(page.text_area(key="source").set_value("d a c").run()) == []
