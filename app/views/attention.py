"""The home page: what every head attends to, the selected head in full, and the predictions."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from headlight.app import charts, selection, theme
from headlight.app.components.figure import figure
from headlight.app.components.head_grid import head_grid
from headlight.app.results import head_results
from headlight.app.shell import edits, frame, palette, regions, running_lesson, stage
from headlight.app.shell.grid_display import grid_options
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import AFTER
from headlight.app.text import findings, head_card, notices, output_texts, part_names
from headlight.app.text.axis import Axis
from headlight.app.text.formats import escaped
from headlight.model.analysis.domain import Domain
from headlight.model.analysis.reading import as_table

LONGEST_NAME = 300  # characters shown of a text in a model's card
LANGUAGES = {
    "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "hu": "Hungarian", "is": "Icelandic", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "nb": "Norwegian Bokmål", "nl": "Dutch",
    "nn": "Norwegian Nynorsk", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip

LEAST = 0.1  # of a prediction whose sign is explained
MAX_TABLE_ROWS = 20_000  # of the table
WINDOW = 512  # tokens along a side of the figure: 1.4 MB
SMALL_MAPS = (
    "Each small map is one head; the large one is the framed head. "  # in Present there is none
)
EXPLAINED = (
    "A **row** is a query, a **column** is a key. Each row adds up to 100%. "
    "Framed: the selected head and word. Hatched: masked, hidden or off. The framed word, or the "
    "one you point at, attends to the filled words; the underlined ones attend to it."
)
MOVED_EXPLAINED = " A bar below a word: the change made it less (red) or more (blue) probable."
DIFFERENCE_EXPLAINED = (
    "In the picture, a **row** is a query and a **column** is a key. A cell is the change in a "
    "weight: red lost, blue gained. Framed: the selected head and word. Hover over a word to see "
    "which weights changed most."
)


def windows(*axes: Axis) -> list[slice]:
    """For each axis the range of tokens that is shown; the user chooses its start if not all
    fit."""
    ranges = []
    with st.container(horizontal=True):
        for name, axis in zip(("query", "key"), axes, strict=True):
            over = len(axis.labels) - WINDOW
            first = widgets.draw(f"first_{name}", most=over + 1) - 1 if over > 0 else 0
            ranges.append(slice(first, first + WINDOW))
    return ranges


def page() -> None:
    """The grid of all heads, and what does not depend on the selected one."""
    shown = selection.shown()
    subtracted = selection.subtracted()
    # The scale of a difference needs its maximum over all weights.
    trace = shown.whole if subtracted else shown.trace
    chosen, reading = session.values(), session.reading()
    for side, typed in zip(trace.sides.values(), selection.typed_texts(), strict=False):
        for sentence in notices.notices(side.title, typed, trace.texts[side.name]):
            frame.notices().info(sentence)

    if chosen["order"] == "change" and not any(
        shares.any() for shares in head_results.change_of(shown).values()
    ):
        frame.notices().caption(
            "Nothing changes the heads yet, so they cannot be ordered by change. Make a change "
            "first; for example, switch a mask off."
        )

    predicted = head_results.predictions_of(shown)
    packed = head_results.packed_of(shown, reading, subtracted)
    if chosen["shows"] == AFTER and (former := stage.former(shown)):
        packed += head_results.packed_of(former, reading)
    options = grid_options(shown)
    head_grid(
        packed,
        options,
        on_focus=regions.select_head,
        on_cell=regions.select_cell,
        on_act=edits.edit_at,
        fresh=session.is_new_to_browser("grid", hash(packed)),
    )
    palette.draw_previews()
    maps = "" if chosen["projector"] else SMALL_MAPS
    bars = MOVED_EXPLAINED if options.acts and any(map(any, options.moved.values())) else ""
    tokens = [token for text in trace.texts.values() for token in text.tokens]
    if predicted:
        tokens += [label for row in predicted.rows for label, share in row if share >= LEAST]
    signs = notices.pieces(tokens)
    frame.explain(maps + (DIFFERENCE_EXPLAINED if subtracted else EXPLAINED) + bars + signs)
    # It may take another pass; the grid need not wait for it.
    card = shown.view.checkpoint.card
    domain = Domain.of_card(card)
    if domain and selection.plain_run().is_unlike(domain):
        frame.notices().info(unlike_training(domain, card))
    if running_lesson.veils():
        raise messages.NothingToShow  # what follows are the numbers that a lesson asks for
    frame.of_selected_head(selected_head)


def selected_head() -> None:
    """What is said of the selected head beside its picture."""
    shown = selection.shown()
    trace, model = shown.trace, shown.view
    chosen, head, reading = session.values(), session.focus(), session.reading()
    picture = shown.picture(head, reading)
    query, key = part_names.axes(trace, head, reading)
    name = part_names.picture_name(trace, head, reading.average)
    if picture.notes:
        frame.notices().caption(" ".join(picture.notes))
    numbered = head._replace(layer=chosen["layer"] - 1)  # as the model counts layers
    gone = head_card.is_pruned(model.checkpoint.card, numbered)
    if not gone and (
        message := notices.empty_rows(shown.head(head), part_names.axes(trace, head)[0])
    ):
        frame.notices().warning(message)
    if frame.shows_numbers() and not reading.average:
        predicts = trace.predicted.predicts not in ("", output_texts.EMBEDDING)
        lines = ["**Numbers**"]
        as_trained = shown.as_trained
        if shown != as_trained and not model.checkpoint.classes and predicts:
            now, before = shown.log_probability, as_trained.log_probability
            lines.append(findings.probability(trace.predicted.title, now, before))
        lines += [notices.leak(trace, leak) for leak in shown.leaks]
        lines.append(head_card.PRUNED if gone else head_results.card_of(shown, head))
        survey, *_ = head_results.survey_of(model)
        if survey:
            lines.append(head_card.in_all_sentences(survey, numbered))
        frame.numbers().markdown("\n\n".join(lines))
    table = widgets.draw("numbers")
    if table.open:
        columns, n_omitted = as_table(picture.weights, query.labels, key.labels, MAX_TABLE_ROWS)
        if n_omitted:
            table.caption(
                f"The {MAX_TABLE_ROWS:,} largest weights. {n_omitted:,} smaller ones are left out."
            )
        table.dataframe(pd.DataFrame(columns), hide_index=True, alt=f"Weights of {name}")
    zoom = widgets.draw("zoom")
    if zoom.open:
        with zoom:
            rows, columns = windows(query, key)
            figure(
                charts.attention(
                    picture.weights[rows, columns],
                    replace(query, labels=query.labels[rows], hover=query.hover[rows]),
                    replace(key, labels=key.labels[columns]),
                    theme.stops_of(session.palette()),
                ),
                key="head_figure",
                alt=name,
                projector=chosen["projector"],
            )


def unlike_training(domain: Domain, card: Mapping) -> str:
    """A notice about a text that is unlike the training text."""
    language = LANGUAGES.get((card.get("direction") or [""])[-1])
    doubtful = (
        f"its {language} may be poor"
        if language
        else "the class may be wrong"
        if card.get("classes")
        else "the answer may be poor"
    )
    return (
        f"This model was trained on {escaped(domain.text[:LONGEST_NAME])}. This text looks "
        f"different, so {doubtful}."
    )
