"""What a view is called in files, and its settings."""

import json
from dataclasses import replace

from headlight.app.export.view import settings_json, stem


def test_settings_and_names(view):
    assert json.loads(settings_json(view)) == view.settings
    assert stem(view) == "en-de-cross-layer-3-head-2"
    early = replace(view, settings=view.settings | {"model": "paper, untrained", "step": "10"})
    assert stem(early, "all-heads") == "paper-untrained-step-10-all-heads"
    climbing = replace(view, settings=view.settings | {"model": "../../etc"})
    assert stem(climbing).startswith("etc-cross")
