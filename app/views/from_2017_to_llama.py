"""From the paper to Llama: what each later part changes for this sentence."""

from collections.abc import Mapping

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.results import system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises
from headlight.app.text.formats import table
from headlight.model.analysis.lineage import LINE, N_KEY_HEADS, SIZES, Swap, SwapEffect
from headlight.model.rounding import percent

ALL_PARTS, PART = PICTURES = "One part after another", "One part"


def page() -> None:
    projector = session.values()["projector"]
    effects = system_results.lineage_of(*selection.default_run())
    with frame.controls():
        picture = widgets.draw("picture", options=PICTURES, default=ALL_PARTS)
        name = widgets.draw("swap") if picture == PART else ""
    if picture == PART:
        swap, effect = LINE[name], effects[name]
        curves = effect.curves
        frame.finding(f"{swap.title}, before and after the swap")
        frame.explain(in_words(swap))
        frame.explain(effect_in_words(swap, effect))
        frame.explain(
            "Both models read your sentence with the same weights, except for the replaced part.",
            exercises.TWICE,
        )
        figure(
            charts.lines(curves.lines, charts.Axis(curves.across, curves.places), curves.up),
            key="swap_figure",
            alt=f"{swap.title}: {', '.join(curves.lines)}",
            projector=projector,
            compact=True,
        )
    else:
        frame.finding(f"A Llama is the Transformer of 2017 with {len(effects)} parts swapped")
        with st.container(key="swaps"):
            st.markdown(lineage(effects))
        frame.explain(
            "The paper's model has every part under “Before”. Each row replaces one more part. "
            "**One part** shows what that changes on your sentence. "
            f"All have {SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads, "
            f"{SIZES['d_model']} numbers per token, and random weights that are the same every "
            "time. After “norm before each sublayer” it is a GPT-2. After the last row, with "
            f"{N_KEY_HEADS} key heads, it is a Llama. Attention moved: the share of the decoder's "
            "weight that went elsewhere because of this swap, as a mean over layers. The paper's "
            "model reads your sentence as source and target."
        )


def in_words(step: Swap) -> str:
    """What is swapped, who introduced it, and its class here."""
    return f"**{step.year}: {step.becomes}**, replacing {step.was}  \n{step.source} · `{step.part}`"


def effect_in_words(step: Swap, measured: SwapEffect) -> str:
    """The effect of a swap: its finding, and the numbers that all swaps share."""
    counted = {"parameters": measured.parameters}
    if len({*measured.cached}) > 1:
        counted["bytes of keys and values per token"] = measured.cached
    rows = [(name, *(f"{number:,}" for number in pair)) for name, pair in counted.items()]
    first, *_, last = measured.moved
    return (
        f"{step.finding.format(**measured.curves.numbers)}\n\n"
        f"{table(('', 'before', 'after'), rows)}\n\nDecoder attention weight that moved: "
        f"{percent(first, 1)} in layer 1, {percent(last, 1)} in layer {len(measured.moved)}."
    )


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "−") if number else "0"


def lineage(effects: Mapping[str, SwapEffect]) -> str:
    """A Markdown table of all swaps (model/analysis/lineage.py), one row each."""
    rows = [
        (
            str(LINE[name].year),
            LINE[name].was,
            f"**{LINE[name].becomes}**",
            _signed(measured.parameters[1] - measured.parameters[0]),
            percent(sum(measured.moved) / len(measured.moved), 1),
        )
        for name, measured in effects.items()
    ]
    return table(("Year", "Before", "Since then", "Parameters", "Attention moved"), rows)
