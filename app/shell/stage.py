"""The stage on the screen: what it hears, and what it is told. Nothing else clears it, so every run
of the script ends with exactly one look, which names the run that may be seen, or none."""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import streamlit as st

from headlight.app import selection, theme
from headlight.app.components.packing import covered, id_of
from headlight.app.components.stage import (
    stage,
    stage_answers,
    stage_look,
    stage_run,
    stage_said,
)
from headlight.app.lessons.question import DO, Veil
from headlight.app.results import (
    head_results,
    layer_results,
    memoize,
    path_results,
    system_results,
    word_results,
    writing,
)
from headlight.app.results.habits import head_habits
from headlight.app.results.shown import Shown
from headlight.app.server.garbage import collect_garbage
from headlight.app.shell import (
    class_remote,
    edits,
    frame,
    grid_display,
    lesson,
    palette,
    room_acts,
    running_lesson,
    sweeps,
)
from headlight.app.shell.acts import acts
from headlight.app.state import catalog, session
from headlight.app.state.messages import NothingToShow
from headlight.app.state.options import OTHER
from headlight.app.state.pages import CHECK, GROUPS, OF_HEAD, Page
from headlight.app.state.settings import SETTINGS
from headlight.app.text import block_texts, formats, head_card, part_names
from headlight.model.analysis.alignment import aligning_kind
from headlight.model.analysis.decomposition import BIASES, HEAD, POSITION, Term
from headlight.model.analysis.head_metrics import HABITS
from headlight.model.analysis.paths import LOGITS
from headlight.model.analysis.streams import WordOrigin
from headlight.model.analysis.why import MEETING, NAMED, PLACE, Why
from headlight.model.decoding.generate import no_text
from headlight.model.probing.changes import CannotChange, Scope, written
from headlight.model.probing.head_steps import HeadSteps
from headlight.model.probing.sites import Place, Site, predicted_side
from headlight.model.probing.sweeps import Sweep
from headlight.model.probing.trace import CannotRead, Pass, vocabulary_of

MISSING = {"isMissing": True}
WHY_NAMES = {POSITION: "position", BIASES: "constant"}
MOST_ROWS = 200  # of predictions, after each layer
MOST_QUESTIONS = 8  # that a browser may ask at once
MOST_CELLS = 1_000_000  # of the scores of a head that are sent at once: 4 MB


def mount() -> None:
    """The stage in its place: before all else, and in every run, so that it stays the same one."""
    with st.container(key="stage_place", gap=None):
        stage(_act, _choose)


def draw(shown: Shown, former: Shown | None) -> None:
    """Send a run, and what of it may be seen; `former` is the one before a change."""
    packed = [head_results.packed_of(each) for each in (shown, former) if each]
    if veil := _veil(shown):
        packed = [covered(each, veil) for each in packed]
    sent = b"".join(packed)
    name = id_of(sent)
    look = _shown(shown) | {"run": name}
    stage_run(sent)  # right before its look: without one it is covered
    _look(look)
    answers(session.memo().page)
    told = frame.effect()
    if not running_lesson.veils():
        # What the model writes now stands in the texts.
        said = list(told.rest if told.now else told.said)
        stage_said({"run": name, "said": said, "now": list(told.now)})


def draw_header(page: Page) -> None:
    """On another page: depths, texts and a finding, without a picture; nothing, where the page says
    why it shows nothing."""
    look: dict[str, Any] = {"run": None, "covered": False}
    with suppress(CannotRead, CannotChange, NothingToShow):
        if page.run:
            shown = selection.shown() if page.changes else selection.unchanged()
            sent = head_results.packed_of(shown)
            if veil := _veil(shown):
                sent = covered(sent, veil)
            look = _shown(shown) | {"run": id_of(sent), "cards": None, "write": None}
            look["done"] = _done(page.changes)
            stage_run(sent)
        _look(look | {"page": _header(page)})


def _header(page: Page) -> dict[str, Any]:
    title = page.view if page.group == CHECK else page.title
    views = _views(page)
    return {"path": page.path, "title": title, "views": views, "ofHead": page.group == OF_HEAD}


def _views(page: Page) -> list[tuple[str, str, str | None, bool]]:
    """Those of its group: name, path, what the setting “picture” is there, whether it is shown."""
    shown = session.values().get("picture")
    views: list[tuple[str, str, str | None, bool]] = []
    for each in GROUPS.get(page.group, ()):
        if not each.pictures:
            views.append((each.view, each.path, None, each == page))
        for number, name in enumerate(each.pictures):
            is_shown = each == page and shown in ((name,) if number else (name, "", None))
            views.append((name, each.path, name if number else "", is_shown))
    return views if len(views) > 1 or page.group in (OF_HEAD, CHECK) else []


def say(page: Page, places: frame.Frame) -> None:
    """What another page has found, below what was changed did."""
    said = [found for text in places.said for found in formats.paragraphs(text)]
    if page.run and page.changes and session.context().structure and not running_lesson.veils():
        said = [*filter(None, [places.effect().said]), *said]
    stage_said({"page": page.path, "finding": said})


def begin() -> None:
    """A run of the script begins on the stage's page."""
    session.memo().is_looked = False


def cover(page: Page) -> None:
    """Show nothing, where this run of the script has not drawn the stage: what stands there is of a
    run before. A text that cannot be read can be typed anew; why, the page says."""
    if not session.memo().is_looked:
        types = page.run and not running_lesson.covers(page.key)
        header = {} if page.stage else {"page": _header(page)}
        _look({"run": None, "covered": True, "types": types} | header)


def _look(look: Mapping[str, Any]) -> None:
    notes, chosen = session.memo(), session.values()
    notes.looks += 1
    notes.is_looked = True
    stage_look(
        {
            "session": notes.session,
            "number": notes.looks,
            "palette": session.palette(),
            "projector": chosen["projector"],
            "line": chosen["line"],
            "drawer": notes.drawer == notes.page,
            "place": notes.place,
            "lesson": lesson.place(),
            "slide": _slide(),
            **look,
        }
    )


def _slide() -> dict[str, Any] | None:
    """What a lesson or a class says in the place of the finding."""
    session.memo().room_said = asked = room_acts.finding()
    said = lesson.finding() or class_remote.finding() or asked
    return said and said | {"paragraphs": formats.paragraphs(said["text"])}


def _shown(shown: Shown) -> dict[str, Any]:
    """How a run is shown, and what is done and selected."""
    chosen, veils, run = session.values(), running_lesson.veils(), shown.run
    now = running_lesson.running()
    return {
        "covered": False,
        "model": chosen["model"],
        "models": list(catalog.models()),
        "lacks": bool(shown.view.checkpoint.lacks),
        **_figure(shown),
        "focus": session.focus()._asdict(),
        "cell": session.chosen_cell(),
        "off": grid_display.off_tiles(run),
        "hidden": grid_display.hidden(run),
        "veil": _veil(shown),
        "points_at": grid_display.points_at() if veils or now else {},
        "reads": now is not None and now.step.labels_read,
        "cards": palette.cards() if now is None or now.step.kind == DO else None,
        "done": _done(),
        "compared": _compared(),
        "write": None if veils else _decoding(shown),
        "best": _best(shown),
        "twin": None if shown.view.checkpoint.lacks else bool(shown.view.twin),
        "differences": theme.DIFFERENCES,
    }


def _veil(shown: Shown) -> list[dict[str, Any]]:
    return covers((*running_lesson.veils(), *running_lesson.veils_ahead()), shown.trace.kinds)


def covers(veils: Sequence[Veil], kinds: Mapping[str, Sequence[Site]]) -> list[dict[str, Any]]:
    """What the stage covers under some veils: a mask, or what words need or are aligned with, with
    all heads that would show it."""
    found = []
    for veil in veils:
        found.append(vars(veil))
        aligns = veil.what in ("lines", "needed words")
        if aligns or veil.what == "masks":
            found += [
                vars(Veil("column", kind, layer, head, 0))
                for kind, sites in kinds.items()
                if veil.kind in (None, kind)
                for layer, site in enumerate(sites)
                if not (aligns and site.query_side == site.key_side)
                for head in range(site.n_heads)
            ]
    return found


def _figure(shown: Shown) -> dict[str, Any]:
    """The model as the paper draws one; empty for one that is known by its weights alone."""
    if shown.view.checkpoint.lacks:
        return {}
    view = shown.view
    name = "towers", view.name, view.stamp
    towers = memoize.memoize(name, lambda: block_texts.towers(view.model))
    return {"towers": towers, "notes": layer_results.notes_of(shown)}


def _compared() -> str:
    """The sentence that the run is compared with; "" for none."""
    chosen = session.values()
    return chosen["other"].strip() if session.context().has_other else ""


def _decoding(shown: Shown) -> dict[str, Any] | None:
    """How a model writes; None for one that writes nothing."""
    if shown.view.checkpoint.lacks or no_text(predicted_side(shown.view.model)):
        return None
    return _decodes_with()


def _decodes_with() -> dict[str, Any]:
    keys = running_lesson.DECODED_WITH
    return {key: session.values().get(key, SETTINGS[key].default) for key in keys}


def _best(shown: Shown) -> dict[str, Any] | None:
    """The heads that together align words best, by the model's card; None where it knows none."""
    known = shown.view.checkpoint.alignment
    kind = aligning_kind(shown.trace.sites, shown.trace.sides.values())
    return {"kind": kind, "heads": [*map(list, known.heads)]} if known and kind else None


def _done(changes_too: bool = True) -> list[dict[str, Any]]:
    """What differs from the model as trained, each with what undoes it."""
    done = [{"text": label, "undo": {"reset": key}} for key, label in session.badges()]
    with suppress(CannotChange):
        changes = selection.changes() if changes_too else ()
        for name, group in acts(changes, formats.escaped):
            rest = [other for other in changes if other not in group]
            done.append({"text": name, "undo": {"changes": written(rest)}})
    return done


def take(selected: Mapping[str, Any] | None) -> None:
    """Make the browser's selection that of the settings."""
    if selected:
        names = "kind", "layer", "head", "query", "key"
        session.focus_on(**{name: selected[name] for name in names})


def _act(what: Mapping[str, Any]) -> None:
    act = {**what}
    take(act.pop("selection", None))
    if act.get("what") == "answer":
        running_lesson.answer(act["value"])
        return
    if act.get("reset") in SETTINGS:
        session.reset(act["reset"])
    elif "changes" in act:
        session.choose(changes=str(act["changes"]))
    elif act.get("what"):
        edits.edit(**act)


def _choose(wanted: Mapping[str, Any]) -> None:
    take(wanted.get("selection"))
    if "line" in wanted:
        session.read_line(str(wanted["line"]))
    if "other" in wanted:
        session.choose(other=str(wanted["other"]), shows=OTHER)
    if wanted.get("model") in catalog.models():
        session.choose(model=wanted["model"])
    for key in running_lesson.DECODED_WITH:
        if key in wanted and SETTINGS[key].could_be(wanted[key]):
            session.choose(**{key: wanted[key]})
    if "projector" in wanted:
        session.choose(projector=bool(wanted["projector"]))
    if "drawer" in wanted:
        session.memo().drawer = session.memo().page if wanted["drawer"] else ""


def close_drawer() -> None:
    """A callback."""
    session.memo().drawer = ""


@st.fragment(key="stage_answers")
def answers(page_key: str) -> None:
    """A region of its own, so that a question about one head takes no run of the whole script."""
    alone, notes = not session.is_running(), session.memo()
    with session.running(page_key) if alone else nullcontext():
        asked, notes.asked = notes.asked, []
        stage_answers(notes.session, [(each, _answer(each)) for each in asked], _ask)
        is_behind = alone and not session.shows_all_but(())
    if alone:
        collect_garbage()
    if is_behind:  # of a question and an act in one message Streamlit (1.67) runs this region alone
        notes.asked = asked  # what it has sent is overwritten before the browser has seen it
        st.rerun()


def _ask(asked: Sequence[Mapping[str, Any]]) -> None:
    session.memo().asked = [dict(each) for each in islice(asked, MOST_QUESTIONS)]


def _answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    with suppress(CannotRead, CannotChange, NothingToShow, LookupError, TypeError, ValueError):
        if asked["what"] == "preview":
            found = palette.previews([asked["act"]])
            return found[0] if found else MISSING
        if running_lesson.veils() or running_lesson.veils_ahead():
            return MISSING
        return ANSWERS[asked["what"]](asked) or MISSING
    return MISSING


def _habits(_asked: Mapping[str, Any]) -> dict[str, Any]:
    """What each head does, over many sentences where a survey tells, else in this one: `heads`,
    those first without which the model loses most; and the groups that they form."""
    shown = selection.shown()
    survey, *_ = head_results.survey_of(shown.view)
    measured = (
        head_results.surveyed_of(shown, survey) if survey else head_results.measured_of(shown)
    )
    heads = head_habits(measured, shown.trace, survey)
    habits = dict.fromkeys(head.habit for head in heads)
    return {
        "heads": [*map(vars, heads)],
        "groups": [
            [habit, head_card.HABIT_TITLES[habit][0]] for habit in (*HABITS, "") if habit in habits
        ],
        "sentences": survey.card["sentences"] if survey else 0,
    }


def _effects(_asked: Mapping[str, Any]) -> dict[str, Any]:
    """`effects`: what this sentence's log-probability loses with each head off by itself, kind →
    (layers, heads), None where that is not known; `needed`: the head that a survey's sentences need
    most, [kind, number of its layer, head], if they need any; `sentences`: how many they are."""
    shown = selection.shown()
    found = sweeps.by_head(shown, "heads", sweeps.score(shown))
    survey, *_ = head_results.survey_of(shown.view)
    return {
        "effects": {
            kind: [
                [None if np.isnan(effect) else float(effect) for effect in layer]
                for layer in effects
            ]
            for kind, effects in found.items()
        },
        "needed": head_card.most_needed(survey) if survey else None,
        "sentences": survey.card["sentences"] if survey else 0,
    }


def _steps(asked: Mapping[str, Any]) -> HeadSteps | None:
    """A head step by step; None where that cannot be had, or is too much to send."""
    site = session.site_of(asked["kind"], asked["layer"])
    shown = selection.shown()
    if site is None or asked["head"] >= site.n_heads or shown.view.checkpoint.lacks:
        return None
    steps = head_results.head_steps_of(shown, site, asked["head"])
    return steps if steps.scores.size <= MOST_CELLS else None


def _scores(asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a head's rows are computed from: scores, mask and weights, (query, key), and values,
    (key, d_head)."""
    steps = _steps(asked)
    return steps and {
        "scores": steps.scores,
        "mask": steps.mask,
        "weights": steps.weights,
        "v": steps.v,
    }


def _vectors(asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The queries, (query, d_head), and keys, (key, d_head), that a head's scores compare."""
    steps = _steps(asked)
    return steps and dict(zip("qk", steps.compared, strict=True))


def _why(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The reasons of a weight, see Why: `pairs` of what moves the score most, and of the rest of
    each side; `rows` and `columns`, each with its name, its sum and the weight without it; the
    `leading` pair, if one leads; `meeting`, the largest pairs, and `pulls`, what has most of the
    pull."""
    if session.site_of(asked["kind"], asked["layer"]) is None:
        return MISSING
    places = (int(asked[name]) + 1 for name in ("layer", "head", "query", "key"))
    cell = "{}.{}.{}={}>{}".format(asked["kind"], *places)
    try:
        found = word_results.why_of(selection.shown(), cell)
    except CannotRead as error:
        said = str(error).removeprefix(f"“{cell}”: ")
        return {"cannot": said[:1].upper() + said[1:]}
    chosen, pairs = found.most(word_results.WORDS_OF_WHY), found.pairs
    for axis, kept in enumerate(chosen):
        rest = np.delete(pairs, kept, axis).sum(axis, keepdims=True)
        pairs = np.concatenate([np.take(pairs, kept, axis), rest], axis)
    sides = []
    for origins, kept, axis in ((found.asks, chosen[0], 1), (found.offers, chosen[1], 0)):
        sums = pairs.sum(axis).tolist()
        sides.append(
            [_side_of_why(found, origins[i], total) for i, total in zip(kept, sums, strict=False)]
            + [{"name": "the rest", "sum": sums[-1], "without": None}]
        )
    leads = found.kind in (MEETING, PLACE)
    first, *_ = np.argwhere(pairs[:-1, :-1] == pairs[:-1, :-1].max()).tolist()
    return {
        "kind": found.kind,
        "meeting": [
            [_origin(found, ask), _origin(found, offer), value / found.margin]
            for ask, offer, value in found.largest(2)
            if value >= NAMED * found.margin
        ],
        "pulls": [_origin(found, found.offers[found.pull.argmax()]), found.pull.sum()],
        "pairs": pairs.tolist(),
        "rows": sides[0],
        "columns": sides[1],
        "leading": first if leads else None,
        "margin": found.margin,
        "weight": found.weight,
    }


def _side_of_why(found: Why, origin: WordOrigin | Term, total: float) -> dict[str, Any]:
    tested, side = None, ""
    if isinstance(origin, WordOrigin) and origin.token is not None:
        tested, side = found.beside[origin.side, origin.token].weight, origin.side
    return {"name": _origin(found, origin), "sum": total, "without": tested, "side": side}


def _origin(found: Why, origin: WordOrigin | Term) -> str:
    if isinstance(origin, WordOrigin) and origin.token is not None:
        return found.texts[origin.side].tokens[origin.token]
    return WHY_NAMES[origin.what]


def _pytorch(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """A head in torch.nn.Transformer, see beside_reference."""
    place = Place(*(asked[name] for name in ("kind", "layer", "head")))
    try:
        return system_results.beside_reference(selection.shown(), place)
    except (CannotRead, CannotChange) as error:
        return {"cannot": str(error)}


def _after(_asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the model would write if it stopped after each layer: the likeliest `answers` and their
    `probability`, (depth, row), and the depth from which on each row's stays, `settled`."""
    shown = selection.shown()
    lens = layer_results.lens_of(shown, slice(MOST_ROWS))
    outputs = shown.view.checkpoint.outputs
    return {
        "answers": [outputs(best, shown.trace.preceding) for best in lens.best.tolist()],
        "probability": lens.probability.tolist(),
        "settled": lens.settled.tolist(),
    }


def _needs(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the likeliest answer in a row of the logits needs, see Needs."""
    found = word_results.needs_of(selection.shown(), int(asked["row"]))
    numbers = {name: getattr(found, name).tolist() for name in ("attention", "probability")}
    return vars(found) | numbers


def _paths(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The paths that carry the difference to another sentence: `lines`, each between two places of
    the figure with its effect; or, while they are being measured, how many are `measured` and
    `missing`. A question for more than it has got is another one, so that nothing waits for it."""
    base = selection.run(changed=False if session.values()["shows"] == OTHER else None)
    run = replace(base, other=selection.other_run())
    try:
        found = path_results.paths_of(selection.shown(run), bool(asked["measured"]))
    except (CannotRead, CannotChange) as error:
        said = str(error).rpartition("”: ")[-1]
        return {"cannot": said[:1].upper() + said[1:]}
    if isinstance(found, Sweep):
        return {"measured": len(found.changes), "missing": found.missing}
    shown, lines = selection.shown(base), {}
    for path, effect in zip(found.paths, found.effects.tolist(), strict=True):
        ends = path.sender, path.scope
        lines[ends] = lines.get(ends, 0) + effect  # a query, a key and a value are one line
    return {
        "lines": [
            [*(_place_of(end, shown) for end in ends), effect] for ends, effect in lines.items()
        ],
        "said": re.split("[“”]", found.text),  # every second one is a token
    }


def _place_of(scope: Scope, shown: Shown) -> dict[str, Any]:
    """Where a path begins or ends: a head as the browser selects one; the `side` of a feed-forward,
    with its layer from 0, or of a text; nothing for the prediction."""
    if scope.head is not None and scope.layer is not None:
        return _head_at(scope.kind, scope.layer, scope.head, shown.trace)
    stacks = {f"{s.stack}_feed_forward": s.title for s in shown.view.model.sides()}
    if scope == LOGITS:
        return {}
    return {"side": stacks.get(scope.kind, scope.kind), "layer": scope.layer}


def _positions(asked: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What the places of a text bring into layer 1, from one place on, see places_of."""
    return layer_results.places_of(selection.shown(), asked["side"], int(asked["from"]))


def _adds(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The likeliest answer's logit in a row of the logits: `terms`, what adds up to it, each with
    its name, its value, its layer from 0 or None, and its head, as the browser selects one, or
    None; its `probability`, of all `count` answers."""
    shown, row = selection.shown(), int(asked["row"])
    trace = shown.trace
    best, shares = (found[row, 0] for found in trace.most_probable(1))
    try:
        found = word_results.decomposition_of(shown, row, int(best))
    except CannotRead as error:
        return {"cannot": str(error)}
    return {
        "terms": [
            {
                "name": part_names.term_name(term),
                "value": value,
                "layer": term.layer,
                "head": _head_of(term, trace),
            }
            for term, value in zip(found.terms, found.values.tolist(), strict=True)
        ],
        "logit": found.logit,
        "probability": float(shares),
        "count": vocabulary_of(shown.view.model, trace.predicted),
    }


def _head_of(term: Term, trace: Pass) -> dict[str, Any] | None:
    if term.head is None or term.layer is None:
        return None
    return _head_at(term.kind, term.layer, term.head, trace)


def _head_at(kind: str, layer: int, head: int, trace: Pass) -> dict[str, Any]:
    rows = [site.layer for site in trace.kinds[kind]]
    return {"kind": kind, "layer": rows.index(layer), "head": head}


def _carries(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What each key of a head brings to the logit of the likeliest answer in a row of the logits,
    `values`, (key,)."""
    shown, row = selection.shown(), int(asked["row"])
    site = session.site_of(asked["kind"], asked["layer"])
    if site is None:
        return MISSING
    best = int(shown.trace.most_probable(1)[0][row, 0])
    term = Term(HEAD, site.kind, site.layer, asked["head"])
    return {"values": word_results.carried_of(shown, row, best, term).values[None].astype("f4")}


def _write(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the model writes, in the view `how` of PLACES["write"]."""
    shown, chosen = selection.shown(), _decodes_with()
    try:
        if asked["how"] == "one":
            return writing.one_by_one(shown, chosen["beginning"])
        if asked["how"] == "beams":
            return writing.beams(shown, chosen["width"])
        return writing.sampled(shown, chosen["temperature"], chosen["seed"])
    except CannotRead as error:
        return {"cannot": str(error)}


def _about(_asked: Mapping[str, Any]) -> dict[str, Any]:
    return layer_results.about_of(selection.shown())


ANSWERS = {
    "about": _about,
    "habit": _habits,
    "effect": _effects,
    "scores": _scores,
    "vectors": _vectors,
    "why": _why,
    "pytorch": _pytorch,
    "after": _after,
    "needs": _needs,
    "paths": _paths,
    "positions": _positions,
    "adds": _adds,
    "carries": _carries,
    "write": _write,
}


def former(shown: Shown) -> Shown | None:
    """The run before the change that is shown; None where nothing is changed, a lesson asks
    something, or the text is long."""
    before = replace(shown, run=replace(shown.as_trained.run, other=None))
    is_free = not running_lesson.veils() and memoize.token_count(shown.run) < memoize.SHORT
    return before if before != shown and is_free else None
