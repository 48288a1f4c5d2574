"""BertViz's three views of the selected attention."""

import streamlit as st

from headlight.app import selection, theme
from headlight.app.components.controls import html_frame
from headlight.app.export import bertviz_html
from headlight.app.results import head_results
from headlight.app.shell import frame
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import DRAWN_AT_ONCE
from headlight.app.state.settings import SETTINGS
from headlight.app.text import exercises, notices, part_names

MANY = 100_000  # lines and boxes; more take a browser seconds
MOST = 1_000_000  # lines and boxes; more take too long to wait for
A_SECOND = 40_000  # per second, by Chromium on one busy core
ABOUT = {
    "head": "Each colour is a head. Click a coloured square to switch its head off or on; "
    "double-click to show only that head, or all. Hover over a token to see only its "
    "lines.",
    "model": "Every head of every layer. Click a tile to enlarge it, and again to close it.",
    "neuron": "Hover over a token on the left to see its query times every key, number by "
    "number, and the sum q ∙ k / √d_head before the softmax. Blue is positive, "
    "orange negative.",
}


def page() -> None:
    page_shown = selection.shown()
    trace = page_shown.whole
    focus = session.focus()
    numbers = [site.layer + 1 for site in trace.kinds[focus.kind]]
    short = max(len(text.ids) for text in trace.texts_of(focus.kind)) <= DRAWN_AT_ONCE

    with frame.controls():
        view = widgets.draw("bertviz", widget_options={"label_visibility": "collapsed"})
        excluded = widgets.draw(
            "leave_out",
            widget_options={
                "label_visibility": "collapsed",
                "placeholder": SETTINGS["leave_out"].label,
                "width": 190,
            },
            options=numbers,
        )
        asked = short or widgets.draw("draw")

    layers = [layer for layer, number in enumerate(numbers) if number not in excluded]
    if not layers:
        st.info("All layers are left out. Keep at least one.")
        raise messages.NothingToShow

    size = bertviz_html.size(trace, view, focus.kind, layers)
    cost = (
        f"{size.shapes:,} lines and boxes to draw and {size.bytes / 1e6:,.1f} MB to send: about "
        f"{size.shapes / A_SECOND:,.0f} seconds."
    )
    lighter = "Shorten the text, or use Attention."
    if view == "model":
        lighter = f"Use fewer layers above. {lighter}"
    if size.shapes > MOST:
        st.warning(f"{cost} That is too much for a browser. {lighter}")
        raise messages.NothingToShow
    if size.shapes > MANY:
        st.warning(f"{cost} {lighter}")
        asked = asked and st.button("Draw anyway", key="draw_all_the_same")
    if not asked:
        raise messages.NothingToShow

    shown = focus.layer if focus.layer in layers else layers[0]
    query, key = trace.sides_of(focus.kind)
    try:
        page = bertviz_html.page(
            trace,
            view,
            focus.kind,
            layers,
            shown,
            focus.head,
            st.context.theme.type or "light",
            theme.PROJECTOR if session.values()["projector"] else 1.0,
            head_results.compared_of(page_shown, focus.kind) if view == "neuron" else None,
        )
    except bertviz_html.CannotDraw as error:
        messages.show_message(error)
        raise messages.NothingToShow from error
    name = part_names.head_name(trace, focus._replace(layer=shown))
    more = notices.compared(trace, focus.kind) if view == "neuron" else ""
    html_frame(page, key="bertviz_frame", alt=f"BertViz, {view} view: {name}")
    frame.explain(
        f"Left: query ({query.title}). Right: key ({key.title}). It opens on layer "
        f"{numbers[shown]}, head {focus.head + 1}. {ABOUT[view]}{more}"
    )
    frame.finding("A line leads from a query to a key: the stronger, the larger the weight.")
    frame.explain(
        "[BertViz](https://github.com/jessevig/bertviz) for this model and sentence.",
        exercises.NEURONS,
    )
