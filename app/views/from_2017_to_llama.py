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
LEAST = 150  # px; a chart is higher where the figure beside it is
REACHED = {"pre-norm": "GPT-2", "groups": "Llama"}  # swap → the system that the model is then
NOTES = {
    "Attention moved": "how much of a decoder row's attention weight the swap moves to other "
    "tokens, as a mean over rows, heads and layers. 0% is none of it, 100% all.",
    "Random weights": "no model here is trained, but each keeps the weights of the one before it "
    "in all other parts. So the new part alone makes the difference. Whether it is an improvement "
    "shows only after training.",
}


def page() -> None:
    default = selection.default_run()
    effects = system_results.lineage_of(default)
    with frame.explanation():
        name = widgets.draw("swap")
    swap_line(stops(effects), name, NOTES, on_choose=lambda chosen: session.choose(swap=chosen))
    trace, shown = system_results.lineage_figure(default, name)
    was, gone = {}, []
    if name in LINE:
        swap, before = LINE[name], [PAPER_MODEL, *LINE][[*LINE].index(name)]
        old_trace, old = system_results.lineage_figure(default, before)
        was, gone = compared(trace, (old, names(before)), (shown, names(name)))
        if gone:
            trace, shown = old_trace, merged(old, shown)
        frame.finding(f"{in_words(swap)}. {swap.why}")
    else:
        frame.finding(f"A Llama is the Transformer of 2017 with {len(effects)} parts swapped")
    # The same two columns at every stop: the figure is then the same one, and glides.
    left, right = st.columns([3, 2], gap="medium")
    with left:
        model_map(shown, trace, names=names(name), was=was, gone=gone)
    with right.container(key="swap_effect", height="stretch"):
        if name in LINE:
            _draw_effect(LINE[name], effects[name])
        else:
            st.markdown(
                f"{SIZES['n_encoder_layers']} + {SIZES['n_decoder_layers']} layers of "
                f"{SIZES['n_heads']} heads, {SIZES['d_model']} numbers per token. "
                "**Next change** swaps the first of the ten parts."
            )
            st.markdown("\n".join(f"- {swap.year}: {swap.becomes}" for swap in LINE.values()))
    frame.explain(
        "Each stop replaces one more part of the paper's model. What is new is framed; the dashed "
        "block beside it is the part that it replaces, and what is pale is gone. All models have "
        f"{SIZES['n_decoder_layers']} layers of {SIZES['n_heads']} heads and random weights that "
        "are the same every time. The paper's model reads your sentence as source and target. The "
        f"last model, with {N_KEY_HEADS} key heads, is a Llama.",
        exercises.TWICE,
    )


def _draw_effect(swap: Swap, effect: SwapEffect) -> None:
    curves = effect.curves
    st.markdown(f"{swap.finding.format(**curves.numbers)}\n\n**{swap.title}**")
    drawn = charts.lines(curves.lines, charts.Axis(curves.across, curves.places), curves.up)
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    drawn.update_layout(legend=legend, height=LEAST)
    # Turned only where they would overlap.
    drawn.update_xaxes(tickangle=None, tickfont={"size": 13}, title={"standoff": 6})
    with st.container(key="swap_box", height="stretch"):
        figure(
            drawn,
            key="swap_figure",
            alt=f"{swap.title}: {', '.join(curves.lines)}",
            projector=session.values()["projector"],
        )
    st.caption(effect_in_words(swap, effect))


def names(stop: str) -> dict[str, str]:
    """Block.part → its name at a stop, where it is another than the paper's."""
    line = [PAPER_MODEL, *LINE]
    swaps = line[: line.index(stop) + 1]
    return {part: name for swap in swaps for part, name in NAMES.get(swap, {}).items()}


Named = tuple[Sequence[Block], Mapping[str, str]]  # a model's blocks, and `names`


def compared(
    trace: Pass, before: Named, after: Named
) -> tuple[dict[Block, tuple[Block, str] | None], list[Block]]:
    """Each new block with the one that it replaces and the name of that, None where there was none;
    and the blocks that are gone. A block is new if its name changes or, in a layer, its parameters:
    those of an embedding also change when another stack no longer shares it."""

    def title(block: Block, named: Mapping[str, str]) -> str:
        return named.get(block.part) or part_names.block_name(trace, block)

    (old, old_names), (shown, new_names) = before, after
    known = {_role(block): block for block in old}
    was = {}
    for block in shown:
        earlier = known.pop(_role(block), None)
        if earlier is None:
            was[block] = None
        elif (name := title(earlier, old_names)) != title(block, new_names) or (
            block.layer is not None and block.parameters != earlier.parameters
        ):
            was[block] = earlier, name
    return was, list(known.values())


def merged(before: Sequence[Block], after: Sequence[Block]) -> list[Block]:
    """The blocks of a model with those that are gone, each behind the one that it stood behind."""
    shown, roles = [*after], [_role(block) for block in after]
    for at, block in enumerate(before):
        if (role := _role(block)) not in roles:
            index = roles.index(_role(before[at - 1])) + 1 if at else 0
            shown.insert(index, block)
            roles.insert(index, role)
    return shown


def _role(block: Block) -> tuple:
    """What a block is in any of the models: a norm is the same before a sublayer and after it."""
    return block.stack, block.layer, block.sublayer, block.part.removeprefix("add_")


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
