"""The components' scripts as the app sends them: joined, and what there is once on a page."""

import pytest
from playwright.sync_api import expect

from headlight.app.components.html_frame import html_frame
from headlight.app.components.scripts import HERE, script
from headlight.app.components.walk import walk

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("file", [f.relative_to(HERE).as_posix() for f in HERE.rglob("*.js")])
def test_every_script_stands_alone_when_joined(chromium, file):
    """A page without a server: an import that is left, or a name that is missing, is an error."""
    if file == "grid_page/index.js":
        pytest.skip("reads its page as it starts: test_notebook.py opens it")
    page = chromium.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_script_tag(content=f"{script(file)}\nwindow.ran = true;", type="module")
    page.wait_for_function("window.ran")
    page.close()
    assert not errors


def test_a_shared_file_is_joined_once():
    joined = script("grid_page/index.js")
    assert joined.count("export const element") == 0
    assert joined.count("const $shared_dom = ") == joined.count("const element = (tag") == 1
    assert joined.index("const $shared_dom = ") < joined.index("= $shared_dom;")


def test_another_style_of_import_is_refused(tmp_path, monkeypatch):
    from headlight.app.components import scripts

    monkeypatch.setattr(scripts, "HERE", tmp_path)
    for line in ('import * as all from "./b.js";', "export { a };", "export let a = 1;"):
        (tmp_path / "a.js").write_text(f"{line}\n")
        with pytest.raises(ValueError, match="cannot be joined"):
            scripts.script("a.js")


def test_keys_are_heard_once_while_the_walk_is_on_the_page(mounted):
    mounted(walk, 2, 9, lambda at: None)
    mounted.disturb("walk")
    mounted.page.keyboard.press("ArrowRight")
    assert mounted.sent("walk") == [("at", 3)]
    mounted.page.evaluate("mounts.walk.root.host.remove(); mounts.walk.fill(mounts.walk.root)()")
    mounted.page.keyboard.press("ArrowRight")
    assert mounted.sent("walk") == []


def test_a_frame_goes_on_hearing_how_high_its_page_is(mounted):
    said = "<script>onmessage = ({ data }) => parent.postMessage({ height: data }, '*')</script>"
    mounted(html_frame, said, "frame", "A page")
    mounted.disturb("frame")
    frame = mounted.page.locator("iframe")
    frame.content_frame.locator("script").wait_for(state="attached")
    frame.evaluate("(frame) => frame.contentWindow.postMessage(123, '*')")
    expect(frame).to_have_css("height", "123px")
