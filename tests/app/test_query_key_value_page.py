"""The page Query–key–value: what its picture is given."""

import pytest

from headlight.app.views.query_key_value import KEYS, QUERY, VALUES
from tests.app.common import components


def test_the_dictionary_is_the_texts_and_its_scaling_a_switch(new_page):
    page = new_page()
    page.switch_page("lookup").run()
    (data,) = components(page, "plane")
    assert [tuple(v["at"]) for v in data["vectors"]] == [QUERY, *KEYS.values()]
    assert [v["name"] for v in data["vectors"]] == ["rollercoaster", *KEYS]
    assert data["values"] == list(VALUES.values()) == [10, 9, -3]
    assert data["divisor"] == pytest.approx(2**0.5)
    page.toggle(key="scaled").set_value(False).run()
    assert components(page, "plane")[0]["divisor"] == 1
