"""The browser's Back, also after a restart; links that anybody may type are opened in
test_anything_typed.py."""

from streamlit.runtime.scriptrunner import get_script_run_ctx

from headlight.app.state import session
from tests.app.test_anything_typed import well


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
    assert page.toggle(key="causal").value
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
