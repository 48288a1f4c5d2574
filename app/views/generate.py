"""Generation, token by token."""

import re
from collections.abc import Callable
from functools import cache, partial
from itertools import repeat

import numpy as np
import streamlit as st

from headlight.app import selection
from headlight.app.components.colour_key import PRIMARY_COLOUR, Swatch, colour_key, weight_scale
from headlight.app.components.generation import GenerationStep, Rows, generation
from headlight.app.results import layer_results
from headlight.app.results.shown import Shown
from headlight.app.shell import frame
from headlight.app.shell.layout import menu
from headlight.app.state import messages, session, widgets
from headlight.app.state.options import BEAM, SAMPLING
from headlight.app.text import exercises, formats, notices, part_names
from headlight.app.text.exercises import Exercise
from headlight.app.theme import FOCUS
from headlight.model.analysis.residual import Lens
from headlight.model.checkpoint import Checkpoint
from headlight.model.decoding.generate import Beam, Generation, Greedy, How, Sampling, no_text
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.trace import CannotRead, Pass

SHOWN = 10  # most probable tokens
MOST_BRANCHES = 12  # branches; each is generated again
EXPLAINED = (
    "The model writes one token at a time and reads it before it writes the next. Each "
    "**strip** is one head, in the row of its layer. Each cell of a strip is a token that "
    "the head can attend to, in the order of the text. The stronger the colour, the larger "
    "the weight. Click a strip to show its weights in the texts. Click another token under "
    "**Next token** to continue from it, and the first one to go back. **Prediction after "
    "each layer**: what the model would write if it stopped there."
)
BEAMS_EXPLAINED = (
    "Beam search continues several texts at once. Each column is a step, with its **candidates** "
    "from best to worst. A line leads from each candidate to the text that it continues. The path "
    "of the winner is marked."
)
WITHOUT_CAUSAL = (
    "Without the causal mask, the strips and the predictions after each layer come from a pass "
    "over the complete text, so they see later tokens. The bars see only what was written before."
)
OPTIONS = {BEAM: ("width", "alpha"), SAMPLING: ("temperature", "top_k", "top_p", "seed")}


def decoding() -> How:
    with frame.controls():
        how = widgets.draw("how")
    with frame.explanation():
        chosen = [widgets.draw(key) for key in OPTIONS.get(how, ())]
    return {BEAM: Beam, SAMPLING: Sampling}.get(how, Greedy)(*chosen)


def ids_of(beginning: str, vocabulary: int) -> tuple[int, ...]:
    """Raises CannotRead."""
    ids = tuple(map(int, re.findall(r"\d{1,7}", beginning)))
    if re.fullmatch(r"[\d -]*", beginning) and all(i < vocabulary for i in ids):
        return ids
    raise CannotRead(
        f"“{beginning[:80]}” is not a list of this model's token ids. Write them like “12-45”."
    )


def written(ids) -> str:
    return "-".join(map(str, ids))


def branches() -> list[str]:
    """All chosen prefixes, the current one included; "" is the empty prefix."""
    chosen = session.values()
    some = [branch.strip() for branch in chosen["branches"].split(";")]
    return [*dict.fromkeys(["", *some, chosen["beginning"].strip()])]


def choose(ids: tuple[int, ...], step: int, token: int) -> None:
    """Continue with another token at a step."""
    beginning = written((*ids[:step], token))
    known = [*branches(), beginning]
    session.choose(beginning=beginning, branches="; ".join(dict.fromkeys(filter(None, known))))


def choose_head(layers: list[int], layer: int, head: int) -> None:
    """`layers`: the numbers of the displayed layers."""
    session.choose(layer=layers[layer], head=head + 1)


def to_branch(beginning: str, prune: bool) -> None:
    if prune:
        remaining = [branch for branch in branches() if branch and branch != beginning]
        session.choose(branches="; ".join(remaining))
    else:
        session.choose(beginning=beginning, branches="; ".join(filter(None, branches())))


def steps_of(
    generation: Generation, trace: Pass, lens: Lens, checkpoint: Checkpoint
) -> list[GenerationStep]:
    """What the component draws of each step of what was written; `trace` is of its run, `lens` of
    the steps' rows."""
    steps = []
    for i, (shares, sampling_shares) in enumerate(
        zip(generation.probabilities, generation.drawn, strict=True)
    ):
        token = generation.path[i]
        best = [*dict.fromkeys([*np.argsort(-shares, kind="stable")[:SHOWN].tolist(), token])]
        preceding = repeat(trace.preceding[generation.first + i])
        names = checkpoint.outputs(best, preceding)
        rows = [
            (id, name, float(shares[id]), float(sampling_shares[id]))
            for id, name in zip(best, names, strict=True)
        ]
        answers = checkpoint.outputs(lens.best[:, i].tolist(), preceding)
        predictions = list(zip(answers, lens.probability[:, i].tolist(), strict=True))
        steps.append(
            GenerationStep(rows, max(0.0, 1 - sum(row[2] for row in rows)), token, predictions)
        )
    return steps


def rows_of(trace: Pass, kind: str, first: int, weights_of: Callable[[str], np.ndarray]) -> Rows:
    """What the heads of a kind attend to from row `first` of the output on."""
    (query, key), keys = trace.sides_of(kind), trace.texts_of(kind)[1].tokens
    sites = trace.kinds[kind]
    numbers = [site.layer + 1 for site in sites]
    if query == trace.predicted:
        weights = weights_of(kind)
    else:
        weights = np.zeros((0, len(sites), sites[0].n_heads, len(keys)), np.float32)
    places = list(range(len(keys)))
    if key == trace.predicted:
        alone = len(trace.sides) == 1
        places = [i if alone and i <= first else first - i or None for i in places]
    return Rows(part_names.kind_name(trace, kind), numbers, keys, places, weights)


def tree(generation: Generation, write: Callable[[str], Generation]) -> list[dict]:
    """Each branch as words, and how many of them it shares with the displayed one."""
    rows, beginning = [], session.values()["beginning"].strip()
    for name in dict.fromkeys([*branches()[: MOST_BRANCHES - 1], beginning]):
        other = generation if name == beginning else write(name)
        common = next(
            (i for i, (a, b) in enumerate(zip(other.ids, generation.ids, strict=False)) if a != b),
            min(len(other.ids), len(generation.ids)),
        )
        rows.append(
            {
                "name": name,
                "words": other.tokens,
                "common": common,
                "current": name == beginning,
            }
        )
    return rows


def beams_of(
    generation: Generation, preceding: int | None, checkpoint: Checkpoint
) -> list[list[dict]]:
    """The candidates of a beam search, each with its text so far and, as `parent`, the place of the
    one that it continues among the candidates of the step before. `preceding`: the token before
    the first ones."""
    beams, steps, best = {0: (None, ())}, [], max(
        (one.score for step in generation.beams for one in step if one.ended), default=None
    )  # fmt: skip
    for step in generation.beams:
        following, cells = {}, []
        for place, one in enumerate(step):
            parent, path = beams[one.parent]
            before = path[-1] if path else preceding
            path = (*path, one.token)
            if one.row is not None:
                following[one.row] = place, path
            fate = "ended" if one.ended else "left-out" if one.row is None else "grew"
            cells.append(
                {
                    "label": checkpoint.outputs([one.token], [before])[0],
                    "score": one.score,
                    "fate": fate,
                    "path": checkpoint.tokenizer.target.decode(path),
                    "parent": parent,
                    "winner": one.ended and one.score == best,
                }
            )
        steps.append(cells)
        beams = following
    return steps


def parting(generation: Generation, other: Generation) -> str:
    """The length of the common prefix."""
    pairs = zip((*generation.tokens, "</s>"), (*other.tokens, "</s>"), strict=False)
    for i, (now, before) in enumerate(pairs):
        if now != before:
            both = " and ".join(f"“{formats.escaped(text)}”" for text in (now, before))
            return f"they diverge at token {i + 1}: {both}"
    return "the same tokens"


def page() -> None:
    """A function, because callbacks would keep alive whatever a page computes at its top level."""
    run = selection.run()
    view = selection.view(run)
    if why := no_text(predicted_side(view.model)):
        st.info(why)
        raise messages.NothingToShow
    chosen, checkpoint = session.values(), view.checkpoint
    if chosen["target"].strip():
        frame.notices().caption("Generate ignores the typed target: the model writes its own.")
    how = decoding()
    with frame.controls(), menu("Branches", "branches_box", icon=":material/account_tree:"):
        widgets.draw("beginning")
        widgets.draw("branches")

    def write(beginning: str, run: Run = run) -> Generation:
        ids = ids_of(beginning, len(view.tokenizer))
        return selection.shown(run).generation(how, ids)

    shown = write(chosen["beginning"])
    if run.changes or session.context().has_other:
        plain = selection.other_run() or selection.run(changed=False)
        other = write(chosen["beginning"], plain)
        whose = "Comparison" if session.context().has_other else "Before the changes"
        text = formats.escaped(view.tokenizer.target.decode(other.ids))
        frame.finding(f"**{whose}**: “{text}” ({parting(shown, other)})")
    if (count := len(branches())) > MOST_BRANCHES:
        frame.notices().info(
            f"Only {MOST_BRANCHES} of {count:,} branches are shown, including the selected one."
        )
    written = Shown(view, shown.run, written=True)
    trace = written.trace
    rows = slice(shown.first, shown.first + len(shown.path))
    lens = layer_results.lens_of(written, rows)
    focus = session.focus()
    kind = focus.kind
    weights_of = cache(partial(written.rows, rows=rows))
    text = next(iter(trace.texts.values())).tokens
    bars = [Swatch("probability", f"color-mix(in srgb, {PRIMARY_COLOUR} 45%, transparent)")]
    if isinstance(how, Sampling):
        bars.append(Swatch("as sampled", PRIMARY_COLOUR))
    colour_key(
        weight_scale(session.palette()),
        Swatch("the selected head", FOCUS),
        Swatch("being written", PRIMARY_COLOUR, "solid"),
        Swatch("written later", "gray", "dashed"),
        *bars,
    )
    given = len(ids_of(chosen["beginning"], len(view.tokenizer)))
    generation(
        writer=view.name,
        given=given,
        title=next(iter(trace.sides.values())).title.capitalize(),
        text=text[: shown.first + 1] if len(trace.sides) == 1 else text,
        written=(*shown.tokens, *checkpoint.outputs(shown.path[len(shown.tokens) :])),
        steps=steps_of(shown, trace, lens, checkpoint),
        rows=rows_of(trace, kind, shown.first, weights_of),
        focus=focus._asdict(),
        palette=session.palette(),
        branches=tree(shown, write),
        beams=beams_of(shown, trace.preceding[shown.first + given], checkpoint),
        on_choose=partial(choose, tuple(shown.ids)),
        on_focus=partial(choose_head, [site.layer + 1 for site in trace.kinds[kind]]),
        on_branch=to_branch,
    )
    if not run.masks.causal:
        frame.explain(WITHOUT_CAUSAL)
    signs = notices.pieces([*text, *shown.tokens])
    if shown.beams:
        frame.explain(BEAMS_EXPLAINED + signs, exercises.BEAMS)
    else:
        cross = weights_of("cross") if "cross" in trace.kinds else None
        exercise = exercise_of_generation(shown, trace, cross, checkpoint)
        frame.explain(EXPLAINED + signs, exercise)


def exercise_of_generation(
    generation: Generation, trace: Pass, cross: np.ndarray | None, checkpoint: Checkpoint
) -> Exercise | None:
    """On the head whose largest weight moves most evenly through the source, by `cross`: the
    weights of cross-attention, (step, layer, head, key). Without any, or for a short text, on the
    least certain token."""
    along: dict[tuple[int, int], float] = {}
    largest = np.zeros((0, 0, 0), int) if cross is None else cross.argmax(axis=-1)
    if len(largest) > 2:
        for layer, head in np.ndindex(largest.shape[1:]):
            places = largest[:, layer, head]
            if np.ptp(places):
                steps = np.arange(len(places))
                along[layer, head] = float(np.corrcoef(places, steps)[0, 1])
    best = max(along, key=along.__getitem__, default=None)
    if best and along[best] > 0:
        number, head = best
        places = largest[:, number, head]
        keys = trace.texts_of("cross")[1].tokens
        name = f"head {trace.kinds['cross'][number].layer + 1}.{head + 1} of cross-attention"
        return exercises.along_the_source(name, keys[places[0]], keys[places[-1]])
    if not generation.path:
        return None
    chosen = [
        shares[id] for shares, id in zip(generation.probabilities, generation.path, strict=True)
    ]
    at = int(np.argmin(chosen))
    preceding = trace.preceding[generation.first + at]
    (token,) = checkpoint.outputs([generation.path[at]], [preceding])
    return exercises.least_certain(at + 1, token, float(chosen[at]))
