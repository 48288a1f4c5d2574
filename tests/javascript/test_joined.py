"""Scripts of components joined with what they import, as the app sends them."""

from base64 import b64encode

import pytest

from headlight.app.components.scripts import HERE, script

# They draw as they start; test_notebook.py and test_architecture_page.py of tests/browser do it.
DRAWING = ["stage_page/index.js", "model_map/index.js"]
FILES = {file.relative_to(HERE).as_posix() for file in HERE.rglob("*.js")}
START = "(text) => import(`data:text/javascript;base64,${text}`).then((all) => Object.keys(all))"


@pytest.mark.parametrize("file", sorted(FILES.difference(DRAWING)))
def test_every_script_stands_alone_when_joined(node, file):
    """An import that is left, or a name that is missing, is an error."""
    names = node.scope()(START, b64encode(script(file).encode()).decode())
    is_mounted = file.endswith("index.js") or file.startswith(("browser/", "controls/"))
    assert "default" in names or not is_mounted


def test_a_shared_file_is_joined_once():
    joined = script("stage_page/index.js")
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
