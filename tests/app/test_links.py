"""Links with numbers at their limits, and Back after a restart; those that anybody may type are
opened in test_anything_typed.py."""

import random

import pytest
from streamlit.runtime.scriptrunner import get_script_run_ctx

from headlight.app.state import session
from headlight.app.state.pages import PAGES
from headlight.app.state.settings import SETTINGS
from tests.app.test_anything_typed import well

NUMBERS = {key: s for key, s in SETTINGS.items() if type(s.default) in (int, float)}
BEYOND = ["inf", "-inf", "1e400", "Infinity", "nan", "9" * 400, "-" + "9" * 400, "1e308", "5e-324",
          "-0", "0x10", "٣", "1_0", "2.5", "1e0", " 3", ""]  # fmt: skip


@pytest.mark.parametrize("number", [9, pytest.param(2000, marks=pytest.mark.long)])
def test_numbers_at_their_limits_and_beyond_open_a_page(new_page, number):
    chance, keys = random.Random(number), [*PAGES]
    for turn in range(number):
        values = {
            key: [s.least, s.most, s.least - 1, s.most + 1, *BEYOND] for key, s in NUMBERS.items()
        }
        link = {key: str(chance.choice(some)) for key, some in values.items()}
        if turn < len(BEYOND):  # each everywhere
            link = dict.fromkeys(NUMBERS, BEYOND[turn])
        link |= {"lesson": "1-shares"} if turn % 3 == 0 else {"model": "uneven", "source": "a dog"}
        key = "inside" if turn % 3 == 1 else chance.choice(keys)
        page = new_page()
        page.query_params.update(link)
        try:
            well(page.switch_page(key).run())
        except BaseException:
            print(key, link)
            raise


class Back:
    """Of a run that the browser's Back asks for."""

    is_history_navigation = True

    def __getattr__(self, name):
        return getattr(get_script_run_ctx(), name)


def test_what_widgets_had_before_back_is_passed_over_until_the_browser_has_drawn_it(
    page, monkeypatch
):
    page.query_params.update(model="uneven", source="the dog", layer="2")
    well(page.run())
    page.toggle(key="causal").set_value(False).run()
    assert page.query_params.get("causal") in ("false", ["false"])
    del page.query_params["causal"]
    with monkeypatch.context() as patched:
        patched.setattr(session, "get_script_run_ctx", Back)
        well(page.run())
    assert page.settings["causal"]  # the drawer, whose links lead elsewhere, is closed
    well(page.run())
    # A picture reports something before the browser has drawn that run.
    page.toggle(key="causal").set_value(False)
    page.text_input(key=session.OPENED).set_value("0")
    page.toggle(key="src_padding").set_value(False).run()
    assert page.toggle(key="causal").value and not page.toggle(key="src_padding").value
    page.run()
    page.toggle(key="causal").set_value(False).run()  # by the user
    assert not page.toggle(key="causal").value
    assert page.query_params.get("causal") in ("false", ["false"]) and page.settings["layer"] == 2


def test_back_as_the_first_run_of_a_session(page, monkeypatch):
    """After a restart of the server; it used to raise."""
    monkeypatch.setattr(session, "get_script_run_ctx", Back)
    page.query_params.update(model="uneven", source="the dog", layer="2")
    well(page.run())
    assert page.session_state["layer"] == 2
