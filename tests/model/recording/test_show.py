"""Figures of recordings in a notebook."""

import pytest

from headlight.app.export.notebook import show
from tests.model.recording.models import TOKENS, inputs_of, model_of, some


def test_show_takes_what_record_takes():
    """As HTML alone: beside a widget's type no other is shown, and a notebook opened again without
    its kernel would say “model not found” in place of the picture."""
    with pytest.raises(ValueError, match="There is no"):
        show(some(), TOKENS, kind="cross")
    shown = show(model_of("bert"), inputs=inputs_of("bert"))
    assert len(shown.page) > 10_000
    assert "<iframe" in shown._repr_html_() and not hasattr(shown, "_repr_mimebundle_")
