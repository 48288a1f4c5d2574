"""The page Check › Yours with a whole model: its trials, their picture, and what mends it."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from headlight.app.server.checked_file import YOURS_PATH
from tests.conftest import ROOT, serve

pytestmark = pytest.mark.browser
START = 60_000  # milliseconds
MODEL = """
import torch
from torch import nn


class Small(nn.Module):
    \"\"\"A language model.\"\"\"

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(40, 32), nn.Embedding(64, 32)
        self.norm, self.last = nn.LayerNorm(32), nn.LayerNorm(32)
        self.attn = nn.MultiheadAttention(32, 4, batch_first=True)
        self.out = nn.Linear(32, 40)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(n))
        later = torch.ones(n, n).triu({first}).bool()
        h = self.norm(x)
        x = x + self.attn(h, h, h, attn_mask=later, need_weights=False)[0]
        return self.out(self.last(x))


torch.manual_seed(0)
model = Small()
"""
RED = """(numbers) => [...document.querySelectorAll(".st-key-yours_matrices *")]
  .flatMap((node) => [...(node.shadowRoot?.querySelectorAll("canvas") ?? [node])])
  .filter(({ matrix }) => matrix)
  .map(({ matrix }) => matrix.cells.filter((value) => value < 0).length).join() === numbers"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("yours") / "gpt.py"
    file.write_text(MODEL.format(first=2), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def address(file):
    with serve(ROOT, arguments=["--check", f"{file}:model"]) as address:
        yield f"{address}/{YOURS_PATH}"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_fault_is_seen_mended_and_gone_after_a_save(chromium, address, file, width, scheme):
    file.write_text(MODEL.format(first=2), encoding="utf-8")
    with chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        page.goto(address)
        verdict = page.locator(".st-key-verdict")
        expect(verdict).to_contain_text("The future: wrong.", timeout=START)
        page.wait_for_function(RED, arg="6,0")
        page.get_by_text("Mend it", exact=True).click()
        page.wait_for_function(RED, arg="0,0")
        expect(verdict).to_contain_text("right once mended")
        trials = page.locator(".st-key-trials").get_by_role("radio")
        trials.first.focus()
        page.keyboard.press("ArrowDown")
        expect(verdict).not_to_contain_text("The future")
        page.keyboard.press("ArrowUp")
        expect(verdict).to_contain_text("The future")
        page.evaluate(AXE_SCRIPT)
        found = page.evaluate("axe.run('.st-key-yours').then(({ violations }) => violations)")
        assert not [(each["id"], each["nodes"]) for each in found]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        file.write_text("import torch\n1 / 0", encoding="utf-8")
        expect(verdict).to_contain_text("Line 2: ZeroDivisionError: division by zero.")
        file.write_text(MODEL.format(first=1), encoding="utf-8")
        expect(verdict).to_contain_text("Nothing wrong: all ")
        page.wait_for_function(RED, arg="0,0")
