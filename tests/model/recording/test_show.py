"""Figures of recordings in a notebook."""

import pytest

from headlight.app.export.notebook import show
from tests.model.recording.models import TOKENS, inputs_of, model_of, some


def test_show_takes_what_record_takes():
    shown = show(some(), TOKENS, kind="encoder", layer=2, head=3)
    assert len(shown.page) > 10_000
    shown = show(model_of("bert"), inputs=inputs_of("bert"))
    assert len(shown.page) > 10_000
    with pytest.raises(ValueError, match="There is no"):
        show(some(), TOKENS, kind="cross")


def test_a_figure_is_html_alone():
    """Beside a widget's type no other is shown: a notebook opened again without its kernel would
    say “model not found” in place of the picture."""
    shown = show(some(), TOKENS)
    assert "<iframe" in shown._repr_html_() and not hasattr(shown, "_repr_mimebundle_")


def test_a_widget_knows_what_is_selected():
    pytest.importorskip("anywidget")
    widget = show(some(), TOKENS, kind="encoder", layer=2, head=3).widget
    assert widget.head == ("encoder", 2, 3) and widget.cell == (0, 0)
