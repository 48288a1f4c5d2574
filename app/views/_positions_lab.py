"""The positions lab: what a positional table contains, and what a model does with another one, or
with two words swapped. The page shows one section at a time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from headlight.app import charts, selection
from headlight.app.components.figure import figure
from headlight.app.results import position_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame
from headlight.app.state import catalog, session, widgets
from headlight.app.state.options import LAB as SECTIONS
from headlight.app.state.settings import SETTINGS
from headlight.app.text import exercises, formats
from headlight.model.analysis import positions
from headlight.model.probing import position_tables
from headlight.model.probing.sites import embeddings_of
from headlight.model.probing.trace import Pass

POSITIONS = {  # kind of positions (model/analysis/positions.py) → what the model gets
    "sinusoidal": "sines and cosines as in the paper, with rows as long as the model's own",
    "learned": "a random table, as a learned one is before training, with rows as long as the "
    "model's own",
    "none": "zeros, so that only the words remain",
    "shifted": "the model's own table, starting at a later row, as if other words came first",
}

SHOWN = 64  # positions of a table that are drawn
MAX_ANSWER_ROWS = 200  # of a table of answers
FEW_ROWS, TABLE_HEIGHT = 10, 400  # rows of a table that is shown whole; pixels of a longer one
MOST_SWAPPED = 64  # tokens that can be chosen and drawn
CONTROL = {"width": 220}
POSITION = "position, from 0"  # as in the paper's formula; tokens count from 1 elsewhere
FORMULA = r"""\begin{aligned}
PE(pos, 2i) &= \sin(pos / 10000^{2i/d}) \\
PE(pos, 2i+1) &= \cos(pos / 10000^{2i/d})
\end{aligned}"""
LINEAR = r"PE(pos + k) = R_k \; PE(pos)"
OF_POSITIONS = r"PE(p)^\top \, W_Q^\top \, W_K \; PE(q)"


@dataclass(frozen=True)
class Lab:
    """The input of a section: what is shown, its trace, and the name of one side. Its controls
    form a line above it."""

    shown: Shown
    trace: Pass
    side: str
    projector: bool
    controls: DeltaGenerator

    @property
    def kind_of_table(self) -> str:
        return position_tables.kind_of_table(embeddings_of(self.shown.view.model)[0].position)

    @property
    def table(self) -> np.ndarray:
        return position_results.positional_table(self.shown.view, self.side)

    def choose(self, key: str, lowest: int, highest: int) -> int:
        """A slider, or the only possible value."""
        if highest <= lowest:
            return lowest
        default = min(max(SETTINGS[key].default, lowest), highest)
        limits = {"least": lowest, "most": highest, "default": default}
        return widgets.draw(key, self.controls, CONTROL, **limits)

    def picture(self, *names: str) -> str:
        """Which of a section's pictures is shown."""
        look = {"label_visibility": "collapsed", "width": "content"}
        return widgets.draw("picture", self.controls, look, options=names, default=names[0])

    def panel(self, title: str, drawn: go.Figure, caption: str, key: str, alt: str) -> None:
        """A figure with its title above it. The explanation goes into the panel."""
        with st.container(gap="small"):
            st.subheader(title)
            figure(drawn, key, alt, self.projector, compact=True)
        frame.explain(caption)

    @property
    def of_text(self) -> bool:
        """Whether the model predicts one class for the whole text."""
        return self.trace.predicted.predicts == "class"

    @property
    def wanted_token(self) -> str:
        """In words, which token the probabilities are about; "" for a model without any."""
        return {"next token": "next token", "masked token": "token at that position"}.get(
            self.trace.predicted.predicts, ""
        )

    @property
    def answers(self) -> bool:
        """Whether the model predicts anything; an embedding model does not."""
        return self.of_text or bool(self.wanted_token)


def wavelengths(lab: Lab) -> None:
    """The wavelength of each pair of dimensions, and how the scale N changes it."""
    table, trace = lab.table, lab.trace
    width, length = table.shape[1], len(trace.texts[lab.side].ids)
    sinusoidal = lab.kind_of_table == "sinusoidal"
    base = widgets.draw("base", lab.controls, CONTROL)
    scaled = positions.sinusoids(SHOWN, width, base)
    turns = {f"the paper's, N = {base:,}": positions.wavelengths(scaled)}
    if sinusoidal:
        turns = {"the model's own": positions.wavelengths(table)} | turns
    picture = lab.picture("Wavelengths", "Waves", "Similarity", "Five bases")
    if picture == "Wavelengths":
        (whose, turn), *_ = turns.items()
        lab.panel(
            "Wavelengths: positions per full turn",
            charts.curves(
                {name: (np.arange(len(turn)), turn) for name, turn in turns.items()},
                "pair of dimensions",
                "positions per turn",
                log=True,
            ),
            "Two neighbouring dimensions form a pair, like a clock hand that turns along the "
            f"sentence. The fastest ({whose}) needs **{turn[0]:,.1f}** positions per turn, the "
            f"slowest **{turn[-1]:,.0f}**. Over your {length} tokens, the slowest turns by "
            f"**{360 * length / turn[-1]:,.2f}°**."
            + ("" if sinusoidal else " This model's own table was learned: it has no waves."),
            key="wavelengths_figure",
            alt="Positions per full turn of each pair, on a logarithmic axis",
        )
    elif picture == "Waves":
        pairs = sorted({round(share * (width // 2 - 1)) for share in (0, 0.25, 0.5, 1)})
        lab.panel(
            f"The waves at N = {base:,}",
            charts.curves(
                {f"dimension {2 * p}": (np.arange(SHOWN), scaled[:, 2 * p]) for p in pairs},
                POSITION,
                "value",
            ),
            "The first dimension of four pairs, from the fastest to the slowest.",
            key="waves_figure",
            alt=f"Four dimensions of the table at N = {base} over {SHOWN} positions",
        )
    elif picture == "Similarity":
        near = {"the model's own": table[:SHOWN], f"the paper's, N = {base:,}": scaled}
        means = {
            name: positions.by_distance(positions.products(t)).mean for name, t in near.items()
        }
        lab.panel(
            f"Similarity of two positions at N = {base:,}",
            charts.curves(
                {name: (np.arange(len(mean)), mean / mean[0]) for name, mean in means.items()},
                "distance",
                "share",
            ),
            "PE(p)·PE(p + k) for each distance k, averaged over p, as a share of PE(p)·PE(p). At "
            "N = 1 it returns to 1 every 2π positions, so distant positions look like neighbours.",
            key="nearness_figure",
            alt=f"Similarity of positions by distance, the model's own and at N = {base}",
        )
    else:
        scales = position_results.positions_by_scale()
        length, width = next(iter(scales.values())).shape
        lab.panel(
            "The table for five bases N",
            charts.tables(
                {f"N = {scale:,}": table for scale, table in scales.items()},
                charts.Axis(POSITION, [str(i) for i in range(length)], every=8),
            ),
            f"{length} positions and {width} dimensions, built as in "
            "mr-raccoon-97/vanilla-transformer: frequencies N^(−2k / d), from k = 1. At N = 1 all "
            "dimensions oscillate together. The larger N is, the more of them are slow and tell "
            "distant positions apart. The paper uses 10,000.",
            key="scales_figure",
            alt="Positional tables for five bases N",
        )


def explain_relative(sinusoidal: bool) -> None:
    """Why attention can depend on relative distance: section 3.5 of the paper."""
    if not sinusoidal:
        frame.explain(
            "In the paper's table, PE(pos + k) is a **linear function** of PE(pos), the same "
            "for every pos (section 3.5), so a head can attend by distance. This model's table "
            "was **learned** and follows no such rule: training has to teach it each distance "
            "at each position."
        )
        return
    frame.explanation().latex(FORMULA)
    frame.explain(
        "Why sines and cosines? Because for any fixed offset k, PE(pos + k) is a **linear "
        "function** of PE(pos) (section 3.5):"
    )
    frame.explanation().latex(LINEAR)
    frame.explain(
        "$R_k$ rotates each pair of sine and cosine by an angle that depends on k, but not on pos. "
        "In a score, the position p of the query and q of the key contribute"
    )
    frame.explanation().latex(OF_POSITIONS)
    frame.explain(
        "If a head learns $W_Q^\\top W_K = R_k$, this is PE(p) · PE(q + k). It is largest where "
        "q = p − k. So the head attends **k tokens to the left, anywhere in the sentence**."
    )


def distance(lab: Lab) -> None:
    """PE·PEᵀ, and whether it depends only on distance."""
    table = lab.table[:SHOWN]
    products = positions.products(table)
    by_distance = positions.by_distance(products)
    alone = by_distance.spread <= 1e-6
    frame.finding(
        "How similar two positions are depends only on the **distance** between them."
        if alone
        else "In this table, distance alone does not decide how similar two positions are."
    )
    explain_relative(lab.kind_of_table == "sinusoidal")
    places = charts.Axis(POSITION, [str(i) for i in range(len(table))], every=8)
    left, right = st.columns(2)
    with left:
        lab.panel(
            "PE · PEᵀ: similarity of two positions",
            charts.matrix(
                products, places, places, "product", (float(products.min()), float(products.max()))
            ),
            f"Dot products of the first {len(table)} rows, every one with every other. Two "
            "pairs of positions at the same distance differ by at most "
            f"**{by_distance.spread:.1e}** of PE(p)·PE(p): "
            + (
                "**only distance counts**, wherever the two are, so every diagonal has a "
                "single colour."
                if alone
                else "**distance alone does not decide**: this table treats each position on "
                "its own."
            ),
            key="products_figure",
            alt="Dot products of all pairs of positions",
        )
    across = np.arange(len(table))
    with right:
        lab.panel(
            "The same by distance",
            charts.curves(
                {
                    "mean": (across, by_distance.mean),
                    "smallest": (across, by_distance.low),
                    "largest": (across, by_distance.high),
                },
                "distance",
                "product",
            ),
            "Over all pairs of positions at each distance: mean, smallest and largest.",
            key="distance_figure",
            alt="Dot product by distance between two positions",
        )


def rotation(lab: Lab) -> None:
    """PE(p + k) is PE(p) turned, for one pair of dimensions."""
    table = lab.table
    pairs = table.shape[1] // 2
    if not pairs or len(table) < 2:
        st.info("This table is too small: it has fewer than two dimensions or positions.")
        return
    pair = lab.choose("pair", 0, pairs - 1)
    k = lab.choose("k", 1, min(SHOWN, len(table)) - 1)
    turn = positions.rotation(table, pair, k)
    fits = turn.error <= 1e-6
    frame.finding(
        f"A pair of dimensions is a clock hand: {k} positions further on, it has **turned by the "
        "same angle**, wherever it started."
        if fits
        else f"No single rotation takes this pair of dimensions {k} positions further everywhere."
    )
    explain_relative(lab.kind_of_table == "sinusoidal")
    step = abs(positions.rotation(table, pair, 1).angle)
    once = 2 * math.pi / max(step, 1e-6) if fits else 24  # one full turn is enough
    length = min(len(table), max(k + 1, min(SHOWN, round(once))))
    left, right = st.columns(2)
    with left:
        lab.panel(
            "Is PE(p + k) a rotation of PE(p)?",
            charts.turn(
                table[:length, 2 * pair : 2 * pair + 2],
                k,
                turn.matrix,
                (f"dimension {2 * pair}", f"dimension {2 * pair + 1}"),
            ),
            f"Numbers {2 * pair} and {2 * pair + 1} of PE(p) as a point in the plane, one for "
            "each position p.",
            key="turn_figure",
            alt=f"Positions in the plane of pair {pair}, each rotated by {k} positions",
        )
    why = "This table was learned"
    if lab.kind_of_table == "sinusoidal":
        why = "These two dimensions are not the sine and the cosine of one wave"
    (a, b), (c, d) = turn.matrix
    with right:
        st.latex(
            rf"PE(p + {k}) {'=' if fits else chr(92) + 'neq'} "
            rf"\begin{{pmatrix}} {a:.6f} & {b:.6f} \\ {c:.6f} & {d:.6f} \end{{pmatrix}} PE(p)"
        )
        st.markdown(
            f"Moving k = {k} positions rotates it by **{math.degrees(turn.angle) % 360:.2f}°** "
            f"clockwise, by the same matrix wherever p is. To attend “{k} to the left”, a head "
            "needs only one matrix."
            if fits
            else f"{why}, and **no rotation fits**; this is the closest one."
        )
        st.markdown(
            f"Largest error over all {len(table) - k:,} positions p: **{turn.error:.1e}** "
            + (
                "(the table is stored as float32, which rounds at 6e-08)."
                if fits
                else f"(the largest number of the pair is "
                f"{np.abs(table[:, 2 * pair : 2 * pair + 2]).max():.2f})."
            )
        )


def others(lab: Lab) -> None:
    """The same sentence under sinusoidal, learned, no and shifted positions."""
    view, trace = lab.shown.view, lab.trace
    before, own_kind = lab.shown.answers, lab.kind_of_table
    longest = max(len(text.ids) for text in trace.texts.values())
    room = view.model.config.max_length - longest
    kinds = [kind for kind in position_tables.POSITION_KINDS if kind != "shifted" or room > 0]
    kind = widgets.draw("instead", lab.controls, {"width": "content"}, options=kinds)
    shift = min(room, session.values().get("shift", SETTINGS["shift"].default))
    if kind == "shifted":
        shift = lab.choose("shift", 1, min(room, 100))
    effect = position_results.effect_of(lab.shown, kind, shift)
    if not lab.answers or lab.picture("Heads", "Predictions") == "Heads":
        which_heads_change(lab, kinds, kind, effect, shift)
        return
    st.subheader("What the model predicts")
    if lab.of_text:
        answers_of_classes(view.classes, {"own positions": before, kind: effect.answers})
        return
    if view.checkpoint.writes and not catalog.random_weights(view.name):
        text = selection.text()
        usual, anew = (
            position_results.written_under(view, text, name, shift) for name in (own_kind, kind)
        )
        st.markdown(
            "The model writes, with its own positions: "
            f"**{formats.escaped(usual) or '(nothing)'}**  \nand with “{kind}”: "
            f"**{formats.escaped(anew) or '(nothing)'}**"
        )
    st.caption(
        f"Probability of the {trace.predicted.title}'s {lab.wanted_token}, and the most "
        f"probable one, with the model's own positions and with “{kind}”."
    )
    answers_table(lab, before, effect.answers, "own positions", kind)


def which_heads_change(
    lab: Lab, kinds: Sequence[str], kind: str, effect: positions.PositionEffect, shift: int
) -> None:
    layers = [
        f"{site.kind} {site.layer + 1}" for part in effect.moved for site in lab.trace.kinds[part]
    ]
    heads = [str(i + 1) for i in range(lab.shown.view.model.config.n_heads)]
    left, right = st.columns(2)
    with left:
        lab.panel(
            f"Which heads change: {kind}",
            charts.matrix(
                np.concatenate(list(effect.moved.values())),
                charts.Axis("layer", layers),
                charts.Axis("head", heads),
                "moved",
                (0, 1),
                ".0%",
            ),
            "Share of each head's weight that moves when the model's own table is replaced.",
            key="moved_figure",
            alt=f"How much of each head's weight moves with {kind} positions",
        )
    with right:
        st.subheader("What changes")
        what_changes(lab, kinds, shift)
        is_own = (
            "its own table, so nothing should change"
            if kind == lab.kind_of_table
            else POSITIONS[kind]
        )
        frame.explain(
            f"This model's own table is {lab.kind_of_table}. “{kind.capitalize()}” means {is_own}. "
            "“Moved” is the share of a row's weight that goes elsewhere than with its own "
            "positions, averaged over rows and heads.",
            exercises.SORTING,
        )


def what_changes(lab: Lab, kinds: Sequence[str], shift: int) -> None:
    """How far each kind of positions moves the heads, and its effect on the predictions."""
    before = lab.shown.answers
    probability_column = f"the {lab.trace.predicted.title}'s tokens"
    rows = []
    for name in kinds:
        effect = position_results.effect_of(lab.shown, name, shift)
        named = f"shifted by {shift}" if name == "shifted" else name
        row = {"positions": f"{name} (the model's own)" if name == lab.kind_of_table else named}
        row |= {f"{part} moved": float(far.mean()) for part, far in effect.moved.items()}
        if lab.wanted_token:
            row[probability_column] = float(np.nanmean(effect.answers.wanted))
        if lab.answers:
            row["predictions that change"] = int((effect.answers.best != before.best).sum())
        rows.append(row)
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="percent")
            for name in rows[0]
            if name.endswith("moved")
        }
        | {
            probability_column: st.column_config.NumberColumn(
                format="percent", help=f"Mean probability of {probability_column}."
            ),
            "predictions that change": st.column_config.NumberColumn(
                help=f"Most probable tokens that have changed, out of {len(before.best)}."
            ),
        },
        key="kinds_table",
        alt="What each type of position changes",
    )


def answers_of_classes(classes: tuple[str, ...], answers: dict[str, positions.Predictions]) -> None:
    st.caption("Probability of each class.")
    table = {"class": classes} | {name: answer.wanted for name, answer in answers.items()}
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(format="percent") for name in answers},
        key="answers_table",
        alt="Probability of each class",
    )


def answers_table(
    lab: Lab, before: positions.Predictions, after: positions.Predictions, first: str, second: str
) -> None:
    """Predictions at each position, before and after."""
    shown, side = min(len(before.best), MAX_ANSWER_ROWS), lab.trace.predicted
    if shown < len(before.best):
        st.info(f"Only the first {shown} of {len(before.best):,} {side.title} positions are shown.")
    read = lab.trace.texts[side.name].tokens[: len(before.best)]
    names = lab.shown.view.checkpoint.outputs
    eos_id = lab.shown.view.model.config.eos_id
    end = names([eos_id])[0] if eos_id >= 0 else ""
    wanted = {"token": read}
    if side.predicts == "next token":
        wanted = {"after": read, f"next in the {side.title}": [*read[1:], end]}
    table = {
        **wanted,
        f"its probability, {first}": before.wanted,
        f"its probability, {second}": after.wanted,
        f"most probable, {first}": names(before.best, before.preceding),
        f"most probable, {second}": names(after.best, after.preceding),
        "changed": after.best != before.best,
    }
    st.dataframe(
        pd.DataFrame(table).head(shown),
        hide_index=True,
        height="content" if shown <= FEW_ROWS else TABLE_HEIGHT,
        column_config={
            name: st.column_config.NumberColumn(format="percent")
            for name in table
            if name.startswith("its probability")
        },
        key="answers_table",
        alt="The model's prediction for each token, before and after",
    )


def swap(lab: Lab) -> None:
    """Two words swapped, with and without positions."""
    trace = lab.trace
    text, side = lab.shown.run.texts[0], next(iter(trace.sides.values()))
    length = len(text.ids)
    if length < 2:
        st.info(f"There is nothing to swap. Type a {side.title} of at least two words.")
        return
    places = list(range(min(length, MOST_SWAPPED)))
    if len(places) < length:
        st.info(f"Only the first {len(places)} of {length:,} tokens can be swapped and are drawn.")
    options = [f"{i} {text.tokens[i]}" for i in places]
    defaults = options[1 if len(places) > 2 else 0], options[-2 if len(places) > 3 else -1]
    first, second = (
        options.index(widgets.draw(key, lab.controls, CONTROL, options=options, default=default))
        for key, default in zip(("first", "second"), defaults, strict=True)
    )
    if text.ids[first] == text.ids[second]:
        st.info("These two tokens are the same. Choose two different ones.")
        return
    swaps = {
        f"with positions ({lab.kind_of_table})": position_results.reordered_of(
            lab.shown, first, second
        ),
        "without positions": position_results.reordered_of(lab.shown, first, second, "none"),
    }
    with_positions, without = swaps.values()
    switches = next(iter(trace.kinds.values()))[0].masks
    causal = (
        " The causal mask also tells positions apart: the first token can attend only to itself."
        if "causal" in switches and trace.masks.causal
        else ""
    )
    rows = slice(int(side.begins), int(side.begins) + len(places))  # <s> keeps its place
    read = trace.texts[side.name].tokens
    new = charts.Axis("row after the swap", [read[i] for i in without.order[rows]])
    old = charts.Axis("row before the swap", read[rows])
    picture = lab.picture("Distances", "How far", *(["Predictions"] if lab.answers else []))
    if picture == "Distances":
        apart = {name: reordered.distances[rows, rows] for name, reordered in swaps.items()}
        largest = max(float(far.max()) for far in apart.values())
        lab.panel(
            "Two words swapped: how far each row is from each row before",
            charts.matrices(apart, new, old, "distance", (0, largest)),
            f"The {side.stack}'s output for the swapped sentence, each token against its original "
            "row. Largest difference of a number with positions: "
            f"**{with_positions.largest:.2g}**, without: **{without.largest:.1e}** "
            + (
                f"(within 1e-5). Without positions the {side.stack} **cannot tell the "
                "difference**: it gives the same rows in the new order."
                if without.largest <= 1e-5
                else "(more than 1e-5)."
            )
            + causal
            + "  \nDistances are in mean row lengths; zero, the darkest colour, means identical "
            "rows. Without positions every row has an identical twin: off the diagonal for the "
            "two swapped tokens, on it for all others. A token that occurs twice has two.",
            key="swap_figure",
            alt=f"Distances of the {side.stack}'s rows after and before the swap, with and without "
            "positions",
        )
    elif picture == "How far":
        far = {name: reordered.moved[rows] for name, reordered in swaps.items()}
        lab.panel(
            "How far each token moved",
            charts.lines(far, new, "moved").update_xaxes(tickangle=-90),
            "How far each token's row is from its original, in mean row lengths.",
            key="followed_figure",
            alt=f"How far the {side.stack}'s row of each token moves",
        )
    else:
        predictions_after_swap(lab, swaps)


def predictions_after_swap(lab: Lab, swaps: Mapping[str, positions.Reordered]) -> None:
    st.subheader("What the model predicts")
    apart = {
        name: float(
            np.nanmax(np.abs(reordered.answers_after.wanted - reordered.answers_before.wanted))
        )
        for name, reordered in swaps.items()
    }
    st.markdown(
        "Largest change of a probability: "
        + ", ".join(f"{name} **{far:.1e}**" for name, far in apart.items())
        + "."
    )
    if lab.of_text:
        answers_of_classes(
            lab.shown.view.classes,
            {
                f"{name}, {when}": answers
                for name, reordered in swaps.items()
                for when, answers in (
                    ("before", reordered.answers_before),
                    ("after", reordered.answers_after),
                )
            },
        )
        return
    st.caption(
        "With the model's own positions"
        + ("; the target is that of the original sentence." if len(lab.trace.sides) > 1 else ".")
    )
    first = next(iter(swaps.values()))
    answers_table(lab, first.answers_before, first.answers_after, "before", "after")


RELATIVE = "Distance", "Rotation"  # sections that explain why attention can depend on distance
DRAW_SECTION = dict(zip(SECTIONS[1:], (wavelengths, distance, rotation, others, swap), strict=True))
OF_ALL_SIDES = "Other encodings", "Swap two words"
