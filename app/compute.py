"""What is computed of a run, each once: functions of their arguments and nothing else.

Each takes a view of a model (with its device) and the Run; its result is cached under both and
the name of what was computed.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np
import streamlit as st
import torch
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import catalog, labels
from app.cache import ByteBoundedCache
from app.catalog import ModelView
from app.progress import told
from app.turns import Turns
from model.analysis import (
    alignment,
    architecture,
    family,
    finite,
    head_metrics,
    leak,
    lineage,
    positions,
    residual,
)
from model.analysis.alignment import HeadAlignment, WordWeights
from model.analysis.attribution import Attribution, attribution
from model.analysis.decomposition import Decomposition, decomposition
from model.analysis.domain import SPLIT, SURPRISE, Domain, split_share, surprise
from model.analysis.reading import LabelledWeights, Reading
from model.checkpoint import SHIPPED, Checkpoint, parameters_sha256
from model.corpus.clearest import Habit, Shown, clearest
from model.corpus.head_counts import RARE, Counts, frequencies, head_counts
from model.corpus.importance import Example
from model.corpus.survey import FILE, Survey
from model.decoding.generate import Generation, How
from model.families.rotary import angles
from model.masks import Masks
from model.pause import pause, pausing
from model.presets import GENERATOR
from model.pretrained.weights import CannotLoad
from model.probing import long_trace
from model.probing.head_steps import HeadSteps, compared, head_steps
from model.probing.long_trace import LongTrace, Weights
from model.probing.position_tables import full_table
from model.probing.reference import Reference, ReferenceTrace
from model.probing.run import FINAL, Run
from model.probing.sites import embedding_of, embeddings_of, sides_of
from model.probing.sweeps import Score, Sweep, changes_of
from model.probing.trace import (
    CannotRead,
    TooLarge,
    Trace,
    bytes_of_weights,
    ids_of,
    read_of,
    trace,
)
from model.tokenizer import Encoding
from model.transformer import Site
from model.variants import PositionsFromOne

CORES = torch.get_num_threads()
SHORT = 400  # tokens; longer texts are quicker on all cores, and take much memory
CACHE_BYTES = 512 * 2**20  # of results: the traces of a few long texts
MOST_RESULTS = 256  # of eighty short ones
NO_TEXT = Encoding((), (), ())
LARGEST_TRACE = 2**30  # bytes of weights; of a longer text they are reduced as the pass comes by
# Of a sweep: tokens, some ten seconds for a small model on two cores; and tokens × parameters, some
# minute, and what nobody would notice.
MOST_TOKENS, MOST_WORK, LITTLE_WORK = 500_000, 2 * 10**12, 5 * 10**10
FEW = 10_000  # bytes: about what numbers a head come to
REMOVALS = "Without one source token at a time"


TURNS = Turns(CORES)  # more sessions at once would only share the cores
FILES = Lock()  # held by the one whose file is made
LOOK = 0.2  # seconds between two looks whether who waits for it has left


@contextmanager
def threads(model: torch.nn.Module, tokens: int, cores: int | None = None) -> Iterator[None]:
    """This session's turn with a model, on one core for a short text. More would wait for each
    other at every small product, and for long where the browser, on the same machine, is drawing.

    Between the steps of what takes long others have their turns. A run that was stopped, by hand or
    by a broken connection, ends at the next step. The run after it has the same model, and waits:
    hooks of one would fire in the other.
    """
    if TURNS.is_mine:
        yield
        return
    is_large = tokens >= SHORT
    taken = partial(_take_cores, cores or (CORES if is_large else 1))
    with ExitStack() as notice:

        def waits(ahead: int) -> None:
            notice.close()
            notice.enter_context(st.spinner(labels.ahead(ahead)))

        with TURNS.turn(model, waits, large=is_large, taken=taken):
            notice.close()
            try:
                with pausing(_give_way):
                    yield
            finally:  # not what it was before: that may be the one core of another session
                torch.set_num_threads(CORES)


def _take_cores(count: int) -> None:
    torch.get_num_threads()  # a thread asks for the process's number once, and would forget its own
    torch.set_num_threads(count)


def _give_way(done: int, total: int) -> None:
    """Between two steps: ends the work of those who have left, and lets others compute."""
    _end_if_left()
    TURNS.pause(lambda ahead: _end_if_left())


def _end_if_left() -> None:
    """Ends a run of the script whose browser is gone, or has asked for another."""
    if context := get_script_run_ctx(suppress_warning=True):
        context.yield_check()


class AskerLeft(Exception):
    """Nobody waits any more for what is computed."""


def made(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """`make` for a file that this session may ask for, outside of its runs: one at a time, as each
    takes a core, and memory. Where the session is gone it ends at the next pause."""
    session = get_script_run_ctx().session_id

    def end_if_left(done: int = 0, total: int = 0) -> None:
        if runtime.exists() and not runtime.get_instance().is_active_session(session):
            raise AskerLeft

    def once() -> bytes:
        with suppress(AskerLeft):
            while not FILES.acquire(timeout=LOOK):
                end_if_left()
            try:
                with pausing(end_if_left):
                    pause()
                    return make()
            finally:
                FILES.release()
        return b""

    return once


def is_out_of_memory(error: Exception) -> bool:
    """Of the CPU PyTorch has no error of its own: it is known by its words alone."""
    ours = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    return ours or "can't allocate memory" in str(error)


def _length(run: Run) -> int:
    """In tokens, all its texts together."""
    return sum(len(text.ids) for text in run.texts)


def is_quick(view: ModelView, run: Run) -> bool:
    """Whether a sweep over all heads takes no time that one would notice. Raises CannotRead."""
    work = tokens_of_sweep(view, run, "heads") * view.parameters
    return _length(run) < SHORT and work <= LITTLE_WORK


@st.cache_resource(show_spinner=False)
def _results() -> ByteBoundedCache:
    return ByteBoundedCache(CACHE_BYTES, MOST_RESULTS)


def _kept(key: tuple, make: Callable, size: Callable):
    """The result of `make` for a key, computed once; `size` of it in bytes."""
    # Who has a turn does not wait for one who may be waiting for a turn.
    return _results().get(key, make, size, waits=not TURNS.is_mine)


def drawn(view: ModelView, run: Run, name, make: Callable, size: Callable):
    """As `_kept`, for a run and `name`: what is drawn of results, and computes nothing."""
    return _kept((name, view.device, view.stamp, run), make, size)


def cached(
    view: ModelView, run: Run, name, make: Callable, size: Callable, cores: int | None = None
):
    """As `drawn`, of what is computed: when this session has its turn; on so many `cores`, or as
    the length of its texts asks for."""

    def once():
        with threads(view.model, _length(run), cores):
            return make()

    return drawn(view, run, name, once, size)


def _arrays(by_kind: dict[str, np.ndarray]) -> int:
    return sum(array.nbytes for array in by_kind.values())


def donor_of(view: ModelView, run: Run) -> Checkpoint | None:
    """The model of the run that patches are taken from, in modules of its own; None where it is
    that of the run itself."""
    other = run.other
    if other is None or (other.checkpoint, other.step) == (view.name, view.step):
        return None
    return catalog.view_of(other.checkpoint, other.step, view.device).checkpoint


def trace_of(view: ModelView, run: Run, written: bool = False) -> Trace | LongTrace:
    """One pass; over a target that was `written` in this run, see Checkpoint.given. Of a text whose
    weights would fill the memory a long trace, for which `attention_of` has them. Raises CannotRead
    and CannotChange."""

    def make():
        if is_whole(view, run):
            with suppress(TooLarge):
                return _trace(view, run, written)
        with told("Running the model on a long text"):
            return view.checkpoint.long_trace_run(run, donor_of(view, run), written)

    return cached(view, run, ("trace", written), make, lambda result: result.nbytes)


def _trace(view: ModelView, run: Run, written: bool) -> Trace:
    with told("Running the model"):
        return view.checkpoint.trace_run(run, donor_of(view, run), written)


def is_whole(view: ModelView, run: Run) -> bool:
    """Whether the weights of a run are few enough to keep all of them. Raises CannotRead."""
    weights = bytes_of_weights(view.model.sites(), read_of(view.model, run))
    return weights <= LARGEST_TRACE


def whole_trace_of(view: ModelView, run: Run, written: bool = False) -> Trace:
    """As trace_of, with the weights of all heads at once; raises TooLarge where they do not fit."""
    if is_whole(view, run):
        traced = trace_of(view, run, written)
        if isinstance(traced, Trace):
            return traced
    name, make = ("whole trace", written), partial(_trace, view, run, written)
    return cached(view, run, name, make, lambda result: result.nbytes)


def attention_of(view: ModelView, run: Run, written: bool = False) -> Mapping[str, Weights]:
    """Kind → the weights of all its heads, (layers, heads, query, key); of a long text each layer
    is computed when it is asked for."""
    return long_trace.attention_of(view.model, trace_of(view, run, written))


def head_of(view: ModelView, run: Run, kind: str, layer: int, head: int) -> np.ndarray:
    """The weights of one head, (query, key)."""
    traced = trace_of(view, run)
    if isinstance(traced, Trace):
        return traced.attention[kind][layer, head]

    def make():
        return attention_of(view, run)[kind][layer][head].copy()  # without the others

    return cached(view, run, ("head", kind, layer, head), make, lambda result: result.nbytes)


def picture_of(
    view: ModelView, run: Run, kind: str, layer: int, head: int, reading: Reading
) -> LabelledWeights:
    """One head, or the mean over some, as `reading` says."""
    traced = trace_of(view, run)

    def make():
        weights = attention_of(view, run)[kind]
        return reading.apply(weights, layer, head, *traced.texts_of(kind))

    if isinstance(traced, Trace):
        return make()
    name = "picture", kind, layer, head, reading
    return cached(view, run, name, make, lambda result: result.weights.nbytes)


def card_of(view: ModelView, run: Run, kind: str, layer: int, head: int) -> str:
    """One head in words, see labels.card."""

    def make():
        return labels.card(trace_of(view, run), kind, head_of(view, run, kind, layer, head))

    return cached(view, run, ("card", kind, layer, head), make, len)


def target_of(
    view: ModelView,
    text: str,
    masks: Masks = Masks(),
    pad_to: int = 0,
    changes: str = "",
    other: Run | None = None,
) -> Encoding:
    """What the model writes for a text, with patches from another run. Raises CannotRead and
    CannotChange."""

    def make():
        donor = donor_of(view, Run((), other=other))
        tokens = len(view.tokenizer.encode(text).ids)
        with threads(view.model, tokens), told("Writing the target"):
            return view.checkpoint.translate(text, masks, pad_to, changes, other, donor)

    weights = view.name, view.step, view.device, view.stamp
    key = "target", *weights, text, masks, pad_to, changes, other
    return _kept(key, make, lambda result: FEW)


def generation_of(view: ModelView, run: Run, how: How, beginning: Sequence[int] = ()) -> Generation:
    """What the model writes for the first text of a run. Raises CannotRead and CannotChange."""
    run = replace(run, texts=(run.texts[0], *(NO_TEXT for _ in run.texts[1:])))

    def make():
        with told("Writing"):
            return view.checkpoint.generate(run, how, beginning, donor=donor_of(view, run))

    key = "generated", how, tuple(beginning)
    return cached(view, run, key, make, lambda result: result.nbytes)


def as_trained(run: Run) -> Run:
    """The same with all masks as they were in training, and nothing changed."""
    return replace(run, masks=Masks(), changes=())


def log_probability(view: ModelView, run: Run) -> float:
    """Of the tokens that are predicted in a run, all together, natural logarithm."""
    return float(np.nansum(np.log(answers_of(view, run).wanted)))


def is_unlike(domain: Domain, view: ModelView, run: Run) -> bool:
    """Whether the first text of a run is unlike what the model was trained on."""
    traced = trace_of(view, run)

    def make():
        text = view.tokenizer.decode(run.texts[0].ids)
        measures = {SPLIT: split_share(view.tokenizer, text)}
        if SURPRISE in domain.ranges:
            measures[SURPRISE] = surprise(traced)
        return domain.excludes(measures)

    return cached(view, run, "unlike", make, lambda result: FEW)


def measured_of(view: ModelView, run: Run) -> dict[str, head_metrics.Measured]:
    """Numbers of all heads."""

    traced = trace_of(view, run)

    def make():
        with told("Measuring the heads"):
            return head_metrics.measured(traced, attention_of(view, run))

    return cached(view, run, "measured", make, lambda result: FEW)


def measured_over(view: ModelView, runs: Sequence[Run]) -> dict[str, head_metrics.Measured]:
    """Numbers of all heads, over several runs of one model."""

    def make():
        longest = max(map(_length, runs), default=0)
        with (
            threads(view.model, longest),
            told("Measuring the heads on the example sentences"),
        ):
            each = []
            for run in runs:
                pause(len(each), len(runs))
                each.append(head_metrics.measured(trace(view.model, run)))
            return {
                kind: head_metrics.over_sentences([measured[kind] for measured in each])
                for kind in (each[0] if each else ())
            }

    key = "measured over", view.device, view.stamp, tuple(runs)
    return _kept(key, make, lambda result: FEW)


def survey_of(view: ModelView) -> tuple[Survey | None, str, bool]:
    """The survey in the folder of a model, or None; then why there is none, as Markdown, and
    whether that is a file's fault."""
    folder = catalog.folders().get(view.name)
    if folder is None:
        return None, "Its weights are random: there is no survey of what it would learn.", False
    if view.step != FINAL:
        return None, f"A survey is of the final weights, not of training step {view.step}.", False
    try:
        changed = (folder / FILE).stat().st_mtime_ns
    except OSError:  # no file, or none that one may read: the next function tells
        changed = 0
    return _survey(view, view.name, folder, changed)


@st.cache_resource(max_entries=16, show_spinner=False)
def _survey(_view: ModelView, name: str, folder, changed: int) -> tuple[Survey | None, str, bool]:
    """As survey_of, of a file as it was at the time `changed`."""
    again = f"`python -m model survey {name if folder.parent == SHIPPED else folder}`"
    try:
        survey = Survey.load(folder)
    except CannotLoad as error:
        return None, f"{labels.escaped(str(error))} {again} makes another one.", True
    except Exception as error:  # anyone may have written the file
        why = labels.escaped(" ".join(str(error).split())[:300] or type(error).__name__)
        where = labels.escaped(str(folder / FILE))
        return None, f"{where} cannot be read: {why}. {again} makes another one.", True
    if survey is None:
        return None, (
            f"There is no survey of this model yet. {again} makes one over the validation data "
            "of its task, or with `--file sentences.tsv` over your own: a line holds a source, "
            "or source and target with a tab between."
        ), False  # fmt: skip
    same = survey.card["parameters"] == parameters_sha256(_view.model)
    if same and survey.covers(_view.model.sites()):
        return survey, "", False
    of = "other heads" if same else "other weights"
    return None, f"The survey in the folder of this model is of {of}. {again} anew.", True


def surveyed_of(view: ModelView, run: Run, survey: Survey) -> dict[str, head_metrics.Measured]:
    """Numbers of all heads, over the sentences of a survey."""

    def make():
        return survey.measured(trace_of(view, run).sites)

    return cached(view, run, ("surveyed", survey), make, lambda result: FEW)


def clearest_in(
    view: ModelView, runs: Sequence[Run], habit: Habit, kind: str, layer: int, head: int
) -> list[Shown]:
    """Which of several runs of a model show best what a head is named for, the clearest first;
    layer and head of a trace's arrays. Raises CannotRead."""
    texts = [[list(text.ids) for text in read_of(view.model, run).values()] for run in runs]
    examples = [Example(i, "", tuple(ids), None, None) for i, ids in enumerate(texts, start=1)]
    frequency = frequencies(examples)

    def counts(run: Run, example: Example) -> Counts:
        def make():
            aligned = example.number if habit.needs_alignment else 0  # it takes a pass a token
            (found,) = head_counts(view.checkpoint, [example], frequency, aligned)
            return found

        # How rare a token is depends on the others.
        key = "counts", habit.needs_alignment, habit.number == RARE and tuple(runs)
        return cached(view, run, key, make, lambda result: FEW)

    with told("Measuring the heads on each sentence"):
        each = [counts(*both) for both in zip(runs, examples, strict=True)]
    return clearest(each, habit, kind, layer, head)


def not_finite_of(view: ModelView, run: Run) -> tuple[str, list[str]]:
    """Where NaN or infinite numbers begin in a run, in words, "" for nowhere; and the names of the
    parameters that hold some. Raises CannotRead and CannotChange."""
    traced = trace_of(view, run)
    of_model = Run((), checkpoint=run.checkpoint, step=run.step)
    name, spoilt = "not finite", partial(finite.parameters_not_finite, view.model)
    return (
        cached(view, run, name, lambda: finite.begins(traced), lambda result: FEW),
        cached(view, of_model, name, spoilt, lambda result: FEW),
    )


def change_of(view: ModelView, run: Run) -> dict[str, np.ndarray]:
    """How much each head is changed by masks and changes, (layers, heads): the share of a row's
    weight that lies elsewhere than as the model was trained, mean over rows."""

    now, before = (attention_of(view, one) for one in (run, as_trained(run)))

    def make():
        changed = {kind: [] for kind in now}
        for kind, layers in changed.items():
            for both in zip(now[kind], before[kind], strict=True):
                pause()
                layers.append(head_metrics.total_variation(*both))
        return {kind: np.stack(layers) for kind, layers in changed.items()}

    return cached(view, run, "change", make, _arrays)


def sweep_of(
    view: ModelView, run: Run, name: str, score: Score = Score(), further: bool = False
) -> Sweep:
    """What is known of what each of the changes of a sweep (see SWEEPS in model/probing/sweeps.py)
    does to a score of the run: after one pass at least, or, `further`, after one more. Raises
    CannotChange."""
    key = ("sweep", name, score), view.device, view.stamp, run
    known = _results().known(key)
    if known is None or (further and known.missing):
        # Its batches keep all cores at work.
        with threads(view.model, _length(run), CORES), told("One change at a time"):
            donor = donor_of(view, run)
            known = next(view.checkpoint.sweeping(run, name, score, donor, known))
        _results().put(key, known, FEW + known.nbytes)
    return known


def most_tokens(view: ModelView) -> int:
    """That are let through a model for one sweep."""
    return min(MOST_TOKENS, MOST_WORK // view.parameters)


def tokens_of_sweep(view: ModelView, run: Run, name: str) -> int:
    """How many tokens go through the model for a sweep. Raises CannotRead."""
    each = sum(len(text.ids) for text in read_of(view.model, run).values())
    return each * len(changes_of(view.model, run, name))


def word_weights_of(view: ModelView, run: Run) -> WordWeights:
    """Attention between the words of both texts, see model/analysis/alignment.py."""
    traced = whole_trace_of(view, run)
    key = "word weights"
    return cached(view, run, key, lambda: alignment.of_trace(traced), lambda r: r.weights.nbytes)


def _check_removals(view: ModelView, run: Run) -> None:
    """Raises CannotRead where a text is too long to leave out one token after the other."""
    lengths = [len(text.ids) for text in read_of(view.model, run).values()]
    tokens, most = lengths[0] * sum(lengths), MOST_WORK // view.parameters
    if tokens > most:
        raise CannotRead(labels.too_many_removals(tokens, most))


def influence_of(view: ModelView, run: Run) -> WordWeights:
    """What each target word loses without each source word. Raises CannotRead and CannotChange."""
    _check_removals(view, run)

    def make():
        with told(REMOVALS):
            given = view.checkpoint.given(run, donor_of(view, run))
            return alignment.of_influence(view.model, run, given)

    def size(result):
        return FEW + result.weights.nbytes

    return cached(view, run, "influence", make, size, CORES)


def alignment_of(view: ModelView, run: Run) -> HeadAlignment | None:
    """Which heads align words: as the card says, else measured on this run; None where it has no
    words."""
    if (known := view.checkpoint.alignment) and view.step == FINAL:
        return known
    both = [word_weights_of(view, run)], [influence_of(view, run)]
    return cached(view, run, "alignment", lambda: alignment.measured(*both), lambda result: FEW)


def decomposition_of(view: ModelView, run: Run, score: Score) -> Decomposition:
    """What adds up to a logit, see model/analysis/decomposition.py. Raises CannotRead and
    CannotChange."""

    def make():
        given = view.checkpoint.given(run, donor_of(view, run))
        return decomposition(view.model, run, score.position, score.wanted, score.against, given)

    return cached(view, run, ("decomposition", score), make, lambda result: FEW)


def attribution_of(
    view: ModelView, run: Run, score: Score, head: tuple[int, int] | None
) -> Attribution:
    """Which source words a token comes from, see model/analysis/attribution.py. Raises CannotRead
    and CannotChange."""
    _check_removals(view, run)

    def make():
        given = view.checkpoint.given(run, donor_of(view, run))
        with told(REMOVALS):
            return attribution(
                view.model, run, score.position, score.wanted, head, score.against, given
            )

    return cached(view, run, ("attribution", score, head), make, lambda result: FEW, CORES)


def leaks_of(view: ModelView, run: Run) -> list[leak.Leak]:
    """What goes where the masks of training would not let it."""
    traced = trace_of(view, run)
    return cached(
        view, run, "leaks", lambda: leak.leaks(traced, attention_of(view, run)), lambda result: FEW
    )


def moved_of(view: ModelView, run: Run) -> np.ndarray:
    """By how much the changes of a run move the log-probability of each token that is predicted,
    (row,)."""
    now, before = (answers_of(view, one).wanted for one in (run, replace(run, changes=())))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(now) - np.log(before)


def head_steps_of(
    view: ModelView, run: Run, site: Site, head: int, ablated: Sequence[str] = ()
) -> HeadSteps:
    """One head, step by step, with steps ablated."""
    ablated = tuple(ablated)

    def make():
        given = view.checkpoint.given(run, donor_of(view, run))
        return head_steps(view.model, run, site, head, ablated, given)

    return cached(view, run, ("inside", site, head, ablated), make, lambda result: result.nbytes)


def compared_of(view: ModelView, run: Run, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a kind as its scores compare them. Raises CannotChange."""

    def make():
        given = view.checkpoint.given(run, donor_of(view, run))
        return compared(view.model, run, kind, given)

    return cached(view, run, ("compared", kind), make, lambda pair: sum(a.nbytes for a in pair))


def blocks_of(view: ModelView, run: Run) -> list[architecture.Block]:
    """The model as blocks, with their shapes for these texts."""
    texts = trace_of(view, run).texts
    return architecture.blocks(view.model, {side: len(text.ids) for side, text in texts.items()})


def positional_table(view: ModelView, side: str) -> np.ndarray:
    """All rows of the model's own table of a side, (position, d_model)."""
    embedding = embedding_of(view.model, sides_of(view.model)[side])
    table = full_table(embedding.position, view.model.config.max_length)
    return table.float().cpu().numpy()


def rotation_of(view: ModelView, run: Run) -> np.ndarray:
    """By how much rotary positions turn each pair of numbers, in radians, (position, pair)."""
    config, traced = view.model.config, trace_of(view, run)
    length = len(traced.texts[traced.predicted.name].ids)
    return angles(config.rotary, config.d_head, length, torch.float32).numpy()


@st.cache_resource(show_spinner=False)
def positions_by_scale(length: int = 64, d_model: int = 128) -> dict[int, np.ndarray]:
    """Scale N → the positional table of mr-raccoon-97/vanilla-transformer, (length, d_model)."""
    scales = (1, 10, 100, 1000, 10000)
    return {scale: PositionsFromOne(length, d_model, scale).table.numpy() for scale in scales}


def answers_of(view: ModelView, run: Run) -> positions.Answers:
    """What the model answers as it is."""
    return positions.answers(trace_of(view, run))


def effect_of(view: ModelView, run: Run, kind: str, shift: int) -> positions.Effect:
    """What positions of another kind (see model/analysis/positions.py) change."""
    shift, before = shift if kind == "shifted" else 0, whole_trace_of(view, run)

    def make():
        with told("Running the model under other positions"):
            return positions.effect(view.model, before, kind, shift)

    return cached(
        view, run, ("positions", kind, shift), make, lambda result: FEW + _arrays(result.moved)
    )


def written_under(view: ModelView, text: str, kind: str, shift: int) -> str:
    """What the model itself writes for a text under positions of another kind."""
    shift = shift if kind == "shifted" else 0

    def make():
        changes = positions.with_positions(Run(()), kind, shift).changes
        tokens = len(view.tokenizer.encode(text).ids)
        with threads(view.model, tokens), told("Writing the target"):
            target = view.checkpoint.translate(text, changes=changes)
            return view.tokenizer.target.decode(target.ids)

    key = ("written", view.name, view.step, view.device, view.stamp, text, kind, shift)
    return _kept(key, make, len)


def reordered_of(
    view: ModelView, run: Run, first: int, second: int, kind: str = ""
) -> positions.Reordered:
    """Two tokens of the first text in each other's place, with the model's own positions or those
    of a `kind`."""
    order = positions.swap(len(run.texts[0].ids), first, second)

    def make():
        with told("Running the model on both orders"):
            return positions.reordered(view.model, run, order, kind)

    return cached(
        view, run, ("reordered", order, kind), make, lambda result: FEW + 2 * result.before.nbytes
    )


def lens_of(
    view: ModelView, run: Run, written: bool = False, rows: slice = residual.ALL
) -> residual.Lens:
    """What the model would answer if it stopped at each layer, in some rows of the logits;
    `written` as in trace_of."""

    traced = trace_of(view, run, written)

    def make():
        with told("Reading the residual stream"):
            return residual.lens(view.model, traced, rows)

    return cached(view, run, ("lens", written, str(rows)), make, lambda result: result.nbytes)


def vectors_of(view: ModelView, run: Run) -> np.ndarray:
    """The rows of the model's embedding for the tokens of its first text, (length, d_model)."""
    weight = embeddings_of(view.model)[0].token.weight
    text, *_ = trace_of(view, run).texts.values()
    return weight[torch.tensor(text.ids, device=weight.device)].float().cpu().numpy()


@st.cache_resource(max_entries=2, show_spinner="Building one model of every system …")
def _members(vocab_size: int, max_length: int) -> dict[str, torch.nn.Module]:
    with GENERATOR:
        return family.members(vocab_size, max_length)


def family_of(view: ModelView, run: Run) -> dict:
    """What the presets do differently, measured on the texts of a run (see
    model/analysis/family.py); with the number of `tokens`. Raises CannotRead."""
    config = view.model.config

    def make():
        src, tgt = ids_of(view.model, read_of(view.model, run))
        models = _members(len(view.tokenizer), config.max_length)
        with told("Measuring the differences"), torch.no_grad():
            return family.measure(models, src, tgt) | {"tokens": src.shape[1]}

    return cached(view, run, "family", make, lambda result: 10 * FEW)


@st.cache_resource(max_entries=2, show_spinner="Building the models between the paper and Llama …")
def _lineage(vocab_size: int, max_length: int) -> dict[str, torch.nn.Module]:
    with GENERATOR:
        return lineage.members(vocab_size, max_length)


def lineage_of(view: ModelView, run: Run) -> dict[str, lineage.Effect]:
    """What each part that came after the paper changes on the first text of a run (see
    model/analysis/lineage.py). Raises CannotRead."""

    def make():
        text, *_ = read_of(view.model, run).values()
        models = _lineage(len(view.tokenizer), view.model.config.max_length)
        with told("Measuring the differences"):
            return lineage.effects(models, torch.tensor([text.ids]), text.tokens)

    def size(effects):
        return sum(effect.nbytes for effect in effects.values())

    return cached(view, run, "lineage", make, size)


@st.cache_resource(show_spinner=False)
def three_words() -> family.ThreeWords:
    """Van Dijck's first example."""
    with GENERATOR:
        return family.three_words()


@dataclass(frozen=True)
class Timing:
    """Median seconds of a forward pass without hooks."""

    ours: float
    theirs: float


def reference_of(view: ModelView, run: Run) -> tuple[ReferenceTrace, Timing] | None:
    """The same pass in torch.nn.Transformer; None where it has no such model."""
    if view.twin is None:
        return None

    def make():
        reference = view.reference
        reference_trace = reference.trace(view.model, run, view.checkpoint.means)
        return reference_trace, _time(view, reference, run)

    return cached(view, run, "reference", make, lambda result: result[0].nbytes)


@torch.no_grad()
def _time(view: ModelView, reference: Reference, run: Run, rounds: int = 5) -> Timing:
    ids = ids_of(view.model, read_of(view.model, run))
    masks = run.masks.build(view.model, *ids)
    passes = (lambda: view.model(*ids, *masks), lambda: reference(*ids, run.masks))
    seconds = [[], []]
    for _ in range(rounds):
        for forward, measured in zip(passes, seconds, strict=True):
            start = time.perf_counter()
            forward().sum().item()  # waits for a GPU
            measured.append(time.perf_counter() - start)
    return Timing(*map(statistics.median, seconds))
