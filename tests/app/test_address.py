"""What two addresses say differently, and where those of former pages lead."""

import re

import pytest
from streamlit.util import calc_hash

from headlight.app.state import address
from headlight.app.state.pages import ALIASES, FORMER_PLACES, PAGES
from tests.app.common import components


@pytest.mark.parametrize(
    ("before", "now", "keys"),
    [
        ("", "", set()),
        ("model=a", "model=a", set()),
        ("model=a&layer=1", "layer=1&model=a", set()),
        ("model=a", "model=b", {"model"}),
        ("model=a", "", {"model"}),
        ("leave_out=1&leave_out=2", "leave_out=1", {"leave_out"}),
        ("target=", "", {"target"}),
        ("source=a%20dog", "source=a+dog", set()),
    ],
)
def test_keys_with_other_texts(before, now, keys):
    assert address.differences(before, now) == address.differences(now, before) == keys


def test_every_path_that_a_page_ever_had_leads_somewhere():
    then = (
        "", "learn", "attention", "lines", "alignment", "heads", "generate", "row", "inside",
        "lookup", "ablation", "attribution", "residual", "model", "tokenizer", "positions",
        "lineage", "compare", "bertviz", "take-away",
    )  # fmt: skip
    assert {*then} <= {page.path for page in PAGES.values()} | {*ALIASES}


@pytest.mark.parametrize(("path", "picture"), FORMER_PLACES)
def test_a_former_page_opens_its_place_of_the_stage(page, path, picture):
    kept = {"model": "uneven", "source": "the dog", "causal": "false", "follow": "2 dog"}
    gone = {"shows": "Difference", "zoom": "true", "first_query": "9"}
    page.query_params.update(kept | gone | ({"picture": picture} if picture else {}))
    page._page_hash = calc_hash(path)
    page.run()
    assert components(page, "stage_look") and not page.exception
    place = FORMER_PLACES[path, picture]
    assert (kept | place).items() <= page.query_params.items()
    assert all(re.fullmatch(address.PLACE[name], where) for name, where in place.items())
