"""From the paper to Llama: one figure, changed part by part, with what each part changes."""

from collections.abc import Mapping, Sequence

import streamlit as st

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.components.model_map import model_map
from headlight.app.components.swap_line import Stop, swap_line
from headlight.app.results import system_results
from headlight.app.shell import frame
from headlight.app.state import session, widgets
from headlight.app.text import exercises, part_names
from headlight.model.analysis.architecture import Block
from headlight.model.analysis.lineage import (
    LINE,
    N_KEY_HEADS,
    PAPER_MODEL,
    SIZES,
    Swap,
    SwapEffect,
)
from headlight.model.probing.trace import Pass
from headlight.model.rounding import percent

NAMES = {  # swap → Block.part → what the block is called from then on
    "learned positions": {"position": "Learned Positions"},
    "unscaled": {"embedding": "Embedding, unscaled"},
    "GELU": {"feed_forward": "Feed Forward, GELU"},
    "RMSNorm": {"norm": "RMSNorm"},
    "SwiGLU": {"feed_forward": "Feed Forward, SwiGLU"},
    "rotary": {"self_attn": "Masked Attention, rotary"},
    "groups": {"self_attn": "Grouped-Query Attention, rotary"},
}
CHART = 235  # px
REACHED = {"pre-norm": "GPT-2", "groups": "Llama"}  # swap → the system that the model is then


def page() -> None:
    view, run = selection.default_run()
    effects = system_results.lineage_of(view, run)
    with frame.explanation():
        name = widgets.draw("swap")
    line = [PAPER_MODEL, *LINE]
    swap_line(stops(effects), name, on_choose=lambda chosen: session.choose(swap=chosen))
    trace, shown = system_results.lineage_figure(view, run, name)
    changed = []
    if name in LINE:
        before = line[line.index(name) - 1]
        changed = different(
            titled(*system_results.lineage_figure(view, run, before), names(before)),
            titled(trace, shown, names(name)),
        )
    # The same two columns at every stop: the figure is then the same one, and glides.
    left, right = st.columns([1, 1] if name in LINE else [2, 1], gap="medium")
    with left:
        model_map(shown, trace, ("", []), names=names(name), changed=changed)
    with right:
        if name in LINE:
            _draw_effect(LINE[name], effects[name])
        else:
            st.markdown(
                f"{SIZES['n_encoder_layers']} + {SIZES['n_decoder_layers']} layers of "
                f"{SIZES['n_heads']} heads, {SIZES['d_model']} numbers per token, "
                f"{next(iter(effects.values())).parameters[0]:,} parameters. "
                "**Next change** swaps the first of the ten parts."
            )
    if name in LINE:
        frame.finding(in_words(LINE[name]))
    else:
        frame.finding(f"A Llama is the Transformer of 2017 with {len(effects)} parts swapped")
    frame.explain(
        "Each stop replaces one more part of the paper's model. The line says how the number of "
        "parameters changes, and how much attention moved. That is the share of the decoder's "
        "weight that went elsewhere because of this swap, as a mean over layers. All models have "
        f"{SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads and random weights that "
        "are the same every time. Before and after have the same weights, except for the replaced "
        "part. The paper's model reads your sentence as source and target. The last model, with "
        f"{N_KEY_HEADS} key heads, is a Llama.",
        exercises.TWICE,
    )


def _draw_effect(swap: Swap, effect: SwapEffect) -> None:
    curves = effect.curves
    st.markdown(swap.finding.format(**curves.numbers))
    drawn = charts.lines(curves.lines, charts.Axis(curves.across, curves.places), curves.up)
    drawn.update_layout(height=CHART, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    figure(
        drawn,
        key="swap_figure",
        alt=f"{swap.title}: {', '.join(curves.lines)}",
        projector=session.values()["projector"],
    )
    st.caption(f"{swap.title}. {effect_in_words(swap, effect)}")


def names(stop: str) -> dict[str, str]:
    """Block.part → its name at a stop, where it is another than the paper's."""
    line = [PAPER_MODEL, *LINE]
    swaps = line[: line.index(stop) + 1]
    return {part: name for swap in swaps for part, name in NAMES.get(swap, {}).items()}


def titled(
    trace: Pass, shown: Sequence[Block], named: Mapping[str, str]
) -> list[tuple[Block, tuple[str, int]]]:
    """Each block with its name and, in a layer, its parameters: those of an embedding also change
    when another stack no longer shares it."""
    return [
        (
            block,
            (
                named.get(block.part) or part_names.block_name(trace, block),
                0 if block.layer is None else block.parameters,
            ),
        )
        for block in shown
    ]


def different(
    before: Sequence[tuple[Block, tuple[str, int]]], after: Sequence[tuple[Block, tuple[str, int]]]
) -> list[Block]:
    """The blocks that are new, or of which something else is said."""

    def place(block: Block) -> tuple:
        return block.stack, block.layer, block.sublayer, block.part

    said = {place(block): words for block, words in before}
    return [block for block, words in after if said.get(place(block)) != words]


def in_words(step: Swap) -> str:
    """What is swapped."""
    return f"**{step.year}: {step.becomes}**, replacing {step.was}"


def effect_in_words(step: Swap, measured: SwapEffect) -> str:
    """The numbers that all swaps share, and who introduced this one."""
    counted = {"parameters": measured.parameters}
    if len({*measured.cached}) > 1:
        counted["bytes of keys and values per token"] = measured.cached
    numbers = "; ".join(f"{name} {a:,} → {b:,}" for name, (a, b) in counted.items())
    first, *_, last = measured.moved
    return (
        f"{numbers.capitalize()}. Attention moved: {percent(first, 1)} in layer 1, "
        f"{percent(last, 1)} in layer {len(measured.moved)}. {step.source} · `{step.part}`"
    )


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "−") if number else "0"


def stops(effects: Mapping[str, SwapEffect]) -> list[Stop]:
    """The line: the paper, then all swaps (model/analysis/lineage.py)."""
    moved = {name: sum(effect.moved) / len(effect.moved) for name, effect in effects.items()}
    first = next(iter(effects.values()))
    paper = Stop(PAPER_MODEL, "2017", "the paper", f"{first.parameters[0]:,}", "", 0.0)
    return [paper] + [
        Stop(
            name,
            str(LINE[name].year),
            f"{name}: {REACHED[name]}" if name in REACHED else name,
            _signed(effect.parameters[1] - effect.parameters[0]),
            percent(moved[name], 1),
            moved[name] / max(moved.values()),
        )
        for name, effect in effects.items()
    ]
