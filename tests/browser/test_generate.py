"""Walking through a generation by mouse and keys, branching, pruning, and its beams; then in the
app."""

import numpy as np
import pytest
from playwright.sync_api import expect

from headlight.app.components.controls import player
from headlight.app.components.generation import GenerationStep, Rows, generation
from headlight.app.theme import INKED
from tests.browser.conftest import filled

pytestmark = pytest.mark.browser
PAUSE = 1100  # ms, for a look at each step
WRITTEN = ["Ein", "Hund", "rennt", "am", "Strand", ".", "</s>"]
TEXT = ["A", "<b>dog</b>", "&", "“cat”", "</s>"]
FOCUS = dict(kind="cross", layer=0, head=1)


class Walk:
    """A generation in the words of these tests; steps count from 0."""

    def __init__(self, page):
        self.page = page
        self.frame = page.get_by_role("application", name="The output token by token")

    @property
    def written(self) -> list[str]:
        return self.page.locator(".written span").all_inner_texts()

    def press(self, *keys: str) -> None:
        self.frame.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def expect_step(self, step: int) -> None:
        expect(self.frame.get_by_role("status")).to_contain_text(f"Token {step + 1} of ")
        expect(self.page.locator(".written .now")).to_have_attribute("data-step", str(step))


class MountedWalk(Walk):
    """Random probabilities of 12 tokens and weights of 4 layers with 4 heads."""

    def __init__(self, mounted):
        super().__init__(mounted.page)
        self.mounted, random = mounted, np.random.default_rng(0)
        self.shares = random.dirichlet(np.full(12, 0.5), size=len(WRITTEN))
        self.weights = random.dirichlet(np.full(len(TEXT), 0.3), size=(len(WRITTEN), 4, 4))
        self.show()

    def show(self, **other) -> "MountedWalk":
        given = dict(
            writer="own",
            given=0,
            title="Source",
            text=TEXT,
            written=WRITTEN,
            steps=[self.step(shares) for shares in self.shares],
            rows=Rows("Cross-attention", [1, 2, 3, 4], TEXT, range(len(TEXT)), self.weights),
            focus=FOCUS,
            palette=INKED,
            branches=[],
            beams=[],
        )
        hears = dict.fromkeys(("on_choose", "on_focus", "on_branch"))
        self.mounted(generation, **(given | hears | other))
        return self

    def step(self, shares) -> GenerationStep:
        best = np.argsort(-shares)[:10].tolist()
        rows = [(i, f"word {i}", float(shares[i]), float(shares[i])) for i in best]
        return GenerationStep(
            rows, 1 - sum(row[2] for row in rows), best[0], [("the", 0.25), ("Hund", 0.5)]
        )

    def sent(self) -> list:
        return self.mounted.sent("generation")


@pytest.fixture
def walk(mounted):
    return MountedWalk(mounted)


def test_heads_are_numbered_above_their_strips(walk):
    numbers = walk.page.locator(".numbers b")
    expect(numbers).to_have_text(["1", "2", "3", "4"])
    strips = walk.page.locator(".layer").nth(1).locator(".strip")
    for head in range(4):
        above, below = numbers.nth(head).bounding_box(), strips.nth(head).bounding_box()
        assert abs(above["x"] + above["width"] / 2 - below["x"] - below["width"] / 2) <= 2


def test_one_walks_by_keys_and_sees_the_probabilities_of_each_step(walk):
    assert walk.written == WRITTEN
    walk.expect_step(0)
    walk.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    walk.expect_step(2)
    shares = walk.shares[2]
    best = np.argsort(-shares)[:10]
    bars = walk.page.locator(".bars .bar").all_inner_texts()
    shown = [f"word {i}\n{100 * shares[i]:.{1 if shares[i] < 0.1 else 0}f}%" for i in best.tolist()]
    assert bars[:10] == shown and bars[10].startswith("all others\n")
    expect(walk.page.locator(".bars h3")).to_have_text("Next token: “rennt”")
    expect(walk.page.locator(".lens .bar")).to_have_text(["embeddingthe 25%", "layer 1Hund 50%"])
    walk.press("End")
    walk.expect_step(len(WRITTEN) - 1)
    walk.press("ArrowRight", "Home")
    walk.expect_step(0)
    walk.page.locator(".written span").nth(4).click()
    walk.expect_step(4)


def test_the_finding_follows_the_step_and_says_who_wrote_it(walk):
    finding = walk.page.locator(".finding")
    ordered = -np.sort(-walk.shares, axis=1)
    least = int(ordered[:, 0].argmin())
    for step in (0, least):
        walk.page.locator(".written span").nth(step).click()
        expect(finding).to_contain_text(
            f"Token {step + 1} of 7: model own writes “{WRITTEN[step]}”."
        )
        best, other = (f"{100 * share:.0f}%" for share in ordered[step, :2])
        expect(finding).to_contain_text(f"Its probability is {best}; the best alternative, ")
        expect(finding).to_contain_text(f"{other}. The model is least certain")
    expect(finding).to_contain_text("least certain of this one.")
    walk.show(given=2)
    walk.press("Home")
    expect(finding).to_contain_text(f"you chose “{WRITTEN[0]}”.")


def test_it_plays_pauses_and_plays_on_when_other_data_come(walk):
    clock = walk.page.clock
    walk.press(" ")
    clock.run_for(2 * PAUSE)
    walk.expect_step(2)
    walk.press(" ")
    clock.run_for(2 * PAUSE)
    walk.expect_step(2)
    walk.page.get_by_role("button", name="Play", exact=True).click()
    walk.show(focus=FOCUS | {"layer": 1})
    clock.run_for(PAUSE)
    walk.expect_step(3)
    walk.page.get_by_role("button", name="Pause", exact=True).click()
    expect(walk.page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    walk.press("End", " ")  # from the end it begins anew
    walk.expect_step(0)
    clock.run_for(10 * PAUSE)
    walk.expect_step(len(WRITTEN) - 1)
    walk.show(text=["another", "text"], rows=Rows("", [], [], [], np.zeros((0, 1, 1, 0))))
    walk.expect_step(0)


def test_the_heads_rows_are_those_of_the_step_and_a_click_selects_one(walk):
    walk.press("ArrowRight")
    strips = walk.page.locator(".strip")
    expect(strips).to_have_count(16)
    titles = strips.nth(6).locator("i").evaluate_all("all => all.map((cell) => cell.title)")
    row = walk.weights[1, 1, 2]
    shares = [int(title.rpartition(" ")[2].replace("<1", "0").strip("%")) for title in titles]
    assert np.abs(np.array(shares) - 100 * row).max() <= 0.5
    assert [title.rpartition(" ")[0] for title in titles] == TEXT
    strips.nth(6).click()
    assert walk.sent() == [("focus", [1, 2])]
    walk.show(focus=FOCUS | {"layer": 1, "head": 2})
    walk.expect_step(1)
    expect(walk.page.locator(".strip.chosen")).to_have_attribute("title", "layer 2 head 3")
    shades = filled(walk.page.locator(".source span"))
    assert np.abs(shades - np.where(row < 0.005, -1, 100 * row)).max() <= 1
    titles = walk.page.locator(".source span").evaluate_all("all => all.map((span) => span.title)")
    said = [title.removeprefix("The selected head attends to it: ") for title in titles]
    assert [int(share.replace("<1", "0").strip("%")) for share in said] == shares
    alone = Rows("Encoder self-attention", [1], TEXT, range(len(TEXT)), np.zeros((0, 1, 1, 5)))
    walk.show(rows=alone)
    expect(walk.page.locator(".heads")).to_contain_text("it is the same at every step")


def test_what_is_written_is_shaded_where_it_is_a_key(walk):
    """Places from −1 down: the first key is the beginning, which is not written."""
    weights = np.zeros((len(WRITTEN), 1, 1, 3))
    weights[:, 0, 0] = [0.5, 0.2, 0.3]
    keys = Rows("Decoder self-attention", [1], ["<s>", "Ein", "Hund"], [None, -1, -2], weights)
    walk.show(rows=keys, focus=dict(kind="decoder", layer=0, head=0))
    shades = filled(walk.page.locator(".written span"))
    assert shades[:2] == pytest.approx([20, 30], abs=1) and set(shades[2:]) == {-1}


def test_another_token_and_a_branch_are_chosen_and_pruned(walk):
    other = walk.page.locator(".bars button.bar:not(.chosen)").first
    other.click()
    second = int(np.argsort(-walk.shares[0])[1])
    assert walk.sent() == [("choose", [0, second])]
    branches = [
        dict(name="", words=WRITTEN, common=1, current=False),
        dict(name="4-2", words=["Ein", "Mann"], common=2, current=True),
        dict(name="7", words=["Zwei"], common=0, current=False),
    ]
    walk.show(branches=branches)
    shown = walk.page.locator(".branch")
    expect(shown).to_have_count(3)
    expect(shown.first.locator(".common")).to_have_text(["Ein"])
    assert "chosen" in shown.nth(1).get_attribute("class")
    shown.first.click()
    # Neither the one without a beginning nor the one that is shown can be taken away.
    walk.page.get_by_role("button", name="Remove the branch").click()
    assert walk.sent() == [("branch", ["", False]), ("branch", ["7", True])]


# The candidates at the ends of each line.
TIES = """() => {
  const query = (selector) => [...mounts.generation.root.querySelectorAll(selector)];
  const cells = query(".column span");
  const at = (x, y) => cells.find((cell) => {
    const box = cell.getBoundingClientRect();
    return x >= box.left - 1 && x <= box.right + 1 && y >= box.top && y <= box.bottom;
  })?.firstChild.textContent.trim();
  return query(".ties path").map((path) => {
    const { left, top } = path.ownerSVGElement.getBoundingClientRect();
    const [first, last] = [0, path.getTotalLength()].map((far) => path.getPointAtLength(far));
    return { from: at(left + first.x, top + first.y), to: at(left + last.x, top + last.y),
      winner: path.classList.contains("winner") };
  });
}"""


def test_beams_that_lived_and_died_are_drawn(walk):
    def cell(label, fate, parent=None, winner=False):
        return dict(label=label, score=-0.5, fate=fate, path=label, parent=parent, winner=winner)

    beams = [
        [cell("Zwei", "grew"), cell("Ein", "grew"), cell("Der", "left-out")],
        [cell("</s>", "ended", 1, winner=True), cell(".", "left-out", 0), cell("Hund", "grew", 1)],
    ]
    many = [
        [cell("Wort", "grew", place if step else None) for place in range(40)] for step in range(14)
    ]
    walk.show(beams=many)
    search = walk.page.get_by_role("region", name="Beams")
    box = search.bounding_box()  # its bars to scroll by are in view
    assert box["y"] + box["height"] <= walk.page.viewport_size["height"]
    reach = "(box) => [box.scrollWidth > box.clientWidth, box.scrollHeight > box.clientHeight]"
    assert search.evaluate(reach) == [True, True]
    walk.show(beams=beams)
    assert search.evaluate(reach) == [False, False]
    expect(walk.page.locator(".beams .column")).to_have_count(2)
    expect(walk.page.locator(".column .ended")).to_have_count(1)
    expect(walk.page.locator(".column .winner")).to_have_text(["Ein −0.50", "</s> −0.50"])
    assert walk.page.locator(".column .left-out").first.get_attribute("title") == (
        "Der: score −0.50, dropped"
    )
    expect(walk.page.locator(".ties path")).to_have_count(3)
    ends = walk.page.evaluate(TIES)
    assert [(tie["from"], tie["to"]) for tie in ends] == [
        ("Ein", "</s>"),
        ("Zwei", "."),
        ("Ein", "Hund"),
    ]
    assert [tie["winner"] for tie in ends] == [True, False, False]


# In the app


def test_the_list_of_training_steps_opens_while_they_play(mounted):
    def show(step):
        mounted(player, ["16", "256", "final"], step, on_step=None)

    page = mounted.page
    show("16")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p class=st-key-step>16</p>')")
    page.get_by_role("button", name="Play the training steps").click()
    assert mounted.sent("player") == [("step", "256")]
    show("256")
    page.locator(".st-key-step").click()
    expect(page.get_by_role("button", name="Play the training steps")).to_be_visible()
    page.clock.run_for(5 * PAUSE)
    assert mounted.sent("player") == []  # a run would close the list
