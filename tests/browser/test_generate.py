"""Walking through a generation by mouse and keys, branching, pruning, and its beams."""

import numpy as np
import pytest
from playwright.sync_api import expect

from model import Beam, Sampling, load

pytestmark = pytest.mark.browser
SENTENCE = "A dog runs on the beach."
HERE = f"generate?source={SENTENCE.replace(' ', '+')}&kind=cross&layer=1&head=2"


@pytest.fixture
def walk(visit):
    visit.page.set_viewport_size({"width": 1280, "height": 720})
    return Walk(visit.open(HERE))


class Walk:
    """The page Generate in the words of these tests; steps count from 0."""

    def __init__(self, visit):
        self.visit, self.page = visit, visit.page
        self.frame = self.page.get_by_role("application", name="The text token by token")

    @property
    def written(self) -> list[str]:
        return self.page.locator(".written span").all_inner_texts()

    @property
    def bars(self) -> list[tuple[str, str]]:
        texts = self.page.locator(".bars .bar").all_inner_texts()
        return [tuple(text.split("\n")) for text in texts]

    def press(self, *keys: str) -> None:
        self.frame.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def expect_step(self, step: int) -> None:
        expect(self.frame.get_by_role("status")).to_contain_text(f"token {step + 1} of ")
        expect(self.page.locator(".written .now")).to_have_attribute("data-step", str(step))


def test_one_walks_by_keys_and_sees_the_probabilities_of_each_step(walk):
    found = load("en-fr").generate(SENTENCE)
    assert walk.written == [*found.tokens, "</s>"]
    walk.expect_step(0)
    walk.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    walk.expect_step(2)
    en_fr, shares = load("en-fr"), found.probabilities[2]
    best = np.argsort(-shares)[:10]
    shown = [(label, f"{100 * p:.1f} %" if p < 0.1 else f"{100 * p:.0f} %")
             for label, p in zip(en_fr.outputs(best), shares[best], strict=True)]  # fmt: skip
    assert walk.bars[:10] == shown and walk.bars[10][0] == "all others"
    walk.press("End")
    walk.expect_step(len(found.tokens))
    walk.press("ArrowRight", "Home")
    walk.expect_step(0)
    walk.page.locator(".written span").nth(4).click()
    walk.expect_step(4)


def test_it_plays_and_pauses(walk):
    walk.press(" ")
    walk.expect_step(2)
    walk.press(" ")
    step = walk.page.locator(".written .now").get_attribute("data-step")
    walk.page.wait_for_timeout(1500)
    walk.expect_step(int(step))


def test_the_heads_rows_are_those_of_the_step_and_a_click_selects_one(walk):
    en_fr = load("en-fr")
    trace = en_fr.trace(SENTENCE)
    walk.press("ArrowRight")
    strips = walk.page.locator(".strip")
    expect(strips).to_have_count(16)
    titles = strips.nth(5).locator("i").evaluate_all("all => all.map((cell) => cell.title)")
    row = trace.attention["cross"][1, 1, 1]
    shares = [int(title.rpartition(" ")[0].rpartition(" ")[2]) for title in titles]
    assert np.abs(np.array(shares) - 100 * row).max() <= 0.75  # rounded twice
    assert [title.rpartition(f" {n} ")[0] for title, n in zip(titles, shares, strict=True)] == list(
        trace.src.tokens
    )
    strips.nth(5).click()
    walk.visit.idle()
    assert "layer=2" in walk.page.url and "head=2" in walk.page.url
    walk.expect_step(1)
    shade = walk.page.locator(".source span").nth(int(row.argmax()))
    attends = shade.evaluate("node => node.style.getPropertyValue('--attends')")
    assert float(attends.rstrip("%")) == pytest.approx(100 * row.max(), abs=1)
    walk.visit.choose("kind", "encoder")
    expect(walk.page.locator(".heads")).to_contain_text("it is the same at every step")


def test_another_token_makes_a_branch_that_one_walks_and_prunes(walk):
    en_fr = load("en-fr")
    first = en_fr.generate(SENTENCE)
    walk.page.locator(".bars button.bar:not(.chosen)").first.click()
    walk.visit.idle()
    second = int(np.argsort(-first.probabilities[0])[1])
    expected = en_fr.generate(SENTENCE, beginning=(second,))
    expect(walk.page.locator(".written span").first).to_have_text(expected.tokens[0])
    assert walk.written[: len(expected.tokens)] == list(expected.tokens)
    branches = walk.page.locator(".branch")
    expect(branches).to_have_count(2)
    link = walk.page.url
    branches.first.click()
    walk.visit.idle()
    assert walk.written[: len(first.tokens)] == list(first.tokens)
    walk.page.get_by_role("button", name="Remove the branch").click()
    walk.visit.idle()
    expect(branches).to_have_count(0)
    walk.visit.open(link.split("/", 3)[3])
    assert walk.written[: len(expected.tokens)] == list(expected.tokens)
    expect(walk.page.locator(".branch")).to_have_count(2)


def test_beams_that_lived_and_died_are_drawn(walk):
    walk.visit.choose("how", "Beam search")
    found = load("en-fr").generate(SENTENCE, Beam())
    columns = walk.page.locator(".beams .column")
    expect(columns).to_have_count(len(found.beams))
    ended = sum(one.ended for step in found.beams for one in step)
    expect(walk.page.locator(".beams .ended")).to_have_count(ended)
    expect(walk.page.locator(".beams .winner")).to_have_count(1)
    assert walk.written[: len(found.tokens)] == list(found.tokens)


def test_sampling_draws_by_its_seed(walk):
    walk.visit.choose("how", "Sampling")
    walk.visit.type("2", "Temperature").type("5", "Seed")
    found = load("en-fr").generate(SENTENCE, Sampling(temperature=2.0, seed=5))
    assert walk.written[: len(found.tokens)] == list(found.tokens)


def test_text_of_tokens_is_never_read_as_markup(visit):
    visit.open("generate?source=%3Cb%3EA%3C%2Fb%3E+dog+%26+%22cat%22")
    tokens = visit.page.locator(".source span").all_inner_texts()
    assert "<b>A</b>" in "".join(tokens)


def test_it_plays_on_when_other_data_come(walk):
    walk.page.get_by_role("button", name="Play", exact=True).click()
    walk.expect_step(1)
    walk.visit.choose("kind", "decoder")
    walk.expect_step(3)
    walk.page.get_by_role("button", name="Pause", exact=True).click()
    expect(walk.page.get_by_role("button", name="Play", exact=True)).to_be_visible()
