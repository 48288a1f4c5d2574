"""How the output comes about, token by token."""

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st

from app import compute, labels, session
from app.components.generation import Rows, Step, generation
from app.settings import BEAM, SAMPLING
from model.analysis.residual import Lens
from model.checkpoint import Checkpoint
from model.decoding.generate import Beam, Generation, Greedy, How, Sampling, no_text
from model.probing.long_trace import Weights
from model.probing.run import Run
from model.probing.sites import predicted_side
from model.probing.trace import CannotRead, Pass

SHOWN = 10  # most probable tokens
MOST_BRANCHES = 12  # each is written anew
OPTIONS = {BEAM: ("width", "alpha"), SAMPLING: ("temperature", "top_k", "top_p", "seed")}


def decoding() -> How:
    how = session.draw("how")
    chosen = [session.draw(key, look={"width": 120}) for key in OPTIONS.get(how, ())]
    return {BEAM: Beam, SAMPLING: Sampling}.get(how, Greedy)(*chosen)


def ids_of(beginning: str, vocabulary: int) -> tuple[int, ...]:
    """Raises CannotRead."""
    ids = tuple(map(int, re.findall(r"\d{1,7}", beginning)))
    if re.fullmatch(r"[\d -]*", beginning) and all(i < vocabulary for i in ids):
        return ids
    raise CannotRead(f"“{beginning[:80]}” are no token ids of this model, as in “12-45”.")


def written(ids) -> str:
    return "-".join(map(str, ids))


def branches() -> list[str]:
    """All beginnings that were chosen, that of now among them; "" is where nothing was."""
    chosen = session.values()
    some = [one.strip() for one in chosen["branches"].split(";")]
    return [*dict.fromkeys(["", *some, chosen["beginning"].strip()])]


def choose(ids: tuple[int, ...], step: int, token: int) -> None:
    """Go on with another token at a step of what was written."""
    beginning = written((*ids[:step], token))
    known = [*branches(), beginning]
    session.choose(beginning=beginning, branches="; ".join(dict.fromkeys(filter(None, known))))


def choose_head(layers: list[int], layer: int, head: int) -> None:
    """`layers` are what the shown layers are called."""
    session.choose(layer=layers[layer], head=head + 1)


def to_branch(beginning: str, prune: bool) -> None:
    if prune:
        kept = [one for one in branches() if one and one != beginning]
        session.choose(branches="; ".join(kept))
    else:
        session.choose(beginning=beginning, branches="; ".join(filter(None, branches())))


def steps_of(found: Generation, lens: Lens, checkpoint: Checkpoint) -> list[Step]:
    """What the component draws of each step; `lens` is of their rows."""
    steps = []
    for i, (shares, drawn) in enumerate(zip(found.probabilities, found.drawn, strict=True)):
        token = found.path[i]
        best = [*dict.fromkeys([*np.argsort(-shares, kind="stable")[:SHOWN].tolist(), token])]
        names = checkpoint.outputs(best)
        rows = [
            (id, name, float(shares[id]), float(drawn[id]))
            for id, name in zip(best, names, strict=True)
        ]
        answers = checkpoint.outputs(lens.best[:, i].tolist())
        said = list(zip(answers, lens.probability[:, i].tolist(), strict=True))
        steps.append(Step(rows, max(0.0, 1 - sum(row[2] for row in rows)), token, said))
    return steps


def rows_of(trace: Pass, kind: str, layers: Weights, first: int, count: int) -> Rows:
    (query, key), keys = trace.sides_of(kind), trace.texts_of(kind)[1].tokens
    numbers = [site.layer + 1 for site in trace.kinds[kind]]
    steps = slice(first, first + count)
    if query == trace.predicted:  # of each layer the rows alone: of a long text it is made anew
        weights = np.stack([layer[:, steps].copy() for layer in layers]).transpose(2, 0, 1, 3)
    else:
        sites = trace.kinds[kind]
        weights = np.zeros((0, len(sites), sites[0].n_heads, len(keys)), np.float32)
    places = list(range(len(keys)))
    if key == trace.predicted:
        alone = len(trace.sides) == 1
        places = [i if alone and i <= first else first - i or None for i in places]
    return Rows(labels.kind_name(trace, kind), numbers, keys, places, weights)


def tree(found: Generation, write: Callable[[str], Generation]) -> list[dict]:
    """Every branch as its words, and how many of them it has in common with the one shown."""
    rows, beginning = [], session.values()["beginning"].strip()
    for name in dict.fromkeys([*branches()[: MOST_BRANCHES - 1], beginning]):
        other = found if name == beginning else write(name)
        common = next(
            (i for i, (a, b) in enumerate(zip(other.ids, found.ids, strict=False)) if a != b),
            min(len(other.ids), len(found.ids)),
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


def beams_of(found: Generation, checkpoint: Checkpoint) -> list[list[dict]]:
    """The candidates of a beam search, each with the text it had grown to."""
    paths, steps, best = {0: ()}, [], max(
        (one.score for step in found.beams for one in step if one.ended), default=None
    )  # fmt: skip
    for step in found.beams:
        following, cells = {}, []
        for one in step:
            path = (*paths[one.parent], one.token)
            if one.row is not None:
                following[one.row] = path
            fate = "ended" if one.ended else "left-out" if one.row is None else "grew"
            cells.append(
                {
                    "label": checkpoint.outputs([one.token])[0],
                    "score": one.score,
                    "fate": fate,
                    "path": checkpoint.tokenizer.target.decode(path),
                    "winner": one.ended and one.score == best,
                }
            )
        steps.append(cells)
        paths = following
    return steps


def parting(found: Generation, other: Generation) -> str:
    """Where two texts part."""
    pairs = zip((*found.tokens, "</s>"), (*other.tokens, "</s>"), strict=False)
    for i, (now, before) in enumerate(pairs):
        if now != before:
            both = " and ".join(f"“{labels.escaped(one)}”" for one in (now, before))
            return f"they part at token {i + 1}, {both}"
    return "the same tokens"


def page() -> None:
    """A function: what a page computes at its top level, its callbacks would keep."""
    run = session.run()
    view = session.view(run)
    if why := no_text(predicted_side(view.model)):
        st.info(why)
        raise session.NothingToShow
    chosen, checkpoint = session.values(), view.checkpoint
    with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
        how = decoding()
        if chosen["target"].strip():
            st.caption(
                "The typed target is not read here: the model writes its own.", width="content"
            )
        with st.popover("Branches", icon=":material/account_tree:", key="branches_box"):
            session.draw("beginning")
            session.draw("branches")

        def write(beginning: str, run: Run = run) -> Generation:
            ids = ids_of(beginning, len(view.tokenizer))
            return compute.generation_of(session.view(run), run, how, ids)

        shown = write(chosen["beginning"])
        if run.changes or session.context().has_other:
            plain = session.other_run() or session.run(changed=False)
            other = write(chosen["beginning"], plain)
            whose = "Other run" if session.context().has_other else "Without the changes"
            text = labels.escaped(view.tokenizer.target.decode(other.ids))
            st.markdown(f"**{whose}**: {text} ({parting(shown, other)})")
    if (count := len(branches())) > MOST_BRANCHES:
        st.info(f"Of {count:,} branches {MOST_BRANCHES} are written, the selected one among them.")
    trace = compute.trace_of(view, shown.run, written=True)
    rows = slice(shown.first, shown.first + len(shown.path))
    lens = compute.lens_of(view, shown.run, written=True, rows=rows)
    focus = session.focus()
    kind = focus.kind
    text = next(iter(trace.texts.values())).tokens
    generation(
        title=next(iter(trace.sides.values())).title.capitalize(),
        text=text[: shown.first + 1] if len(trace.sides) == 1 else text,
        written=(*shown.tokens, *checkpoint.outputs(shown.path[len(shown.tokens) :])),
        steps=steps_of(shown, lens, checkpoint),
        rows=rows_of(
            trace,
            kind,
            compute.attention_of(view, shown.run, written=True)[kind],
            shown.first,
            len(shown.path),
        ),
        focus=vars(focus),
        branches=tree(shown, write),
        beams=beams_of(shown, checkpoint),
        on_choose=partial(choose, tuple(shown.ids)),
        on_focus=partial(choose_head, [site.layer + 1 for site in trace.kinds[kind]]),
        on_branch=to_branch,
    )


page()
