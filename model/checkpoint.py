"""A checkpoint is a folder: config.json, tokenizer.json, model.safetensors, README.md, and, once it
has been measured (training/describe.py), means.safetensors. Or it is somebody else's, in Hugging
Face's layout (pretrained/folder.py)."""

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from headlight.model import presets
from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import HeadAlignment, WordWeights
from headlight.model.analysis.attribution import Attribution
from headlight.model.analysis.attribution import attribution as attributed
from headlight.model.analysis.baselines import Baselines
from headlight.model.analysis.decomposition import Carried, Decomposition, Term, carried
from headlight.model.analysis.decomposition import decomposition as decomposed
from headlight.model.analysis.paths import KEEP, Circuits, Paths, carrying
from headlight.model.analysis.why import Why, why
from headlight.model.arguments import kind_of, number, whole
from headlight.model.card import markdown, parameter_count
from headlight.model.checking.in_model import with_student_parts
from headlight.model.checks import check_card, check_means, check_sizes
from headlight.model.decoding.generate import Generation, Greedy, How, generated
from headlight.model.decoding.search import first_token, greedy_decode
from headlight.model.files import replace_file
from headlight.model.masks import Masks
from headlight.model.messages import reason, short
from headlight.model.pretrained.contents import check_memory
from headlight.model.pretrained.folder import config_of, is_ours, layout_of, note, read
from headlight.model.pretrained.tokenizers import check_vocabulary
from headlight.model.pretrained.weights import CannotLoad, Progress
from headlight.model.probing import sweeps
from headlight.model.probing.applying import PatchInputs, applied
from headlight.model.probing.changes import CannotChange, Change, Pathed, look_ahead, parsed
from headlight.model.probing.long_trace import LongTrace, long_trace
from headlight.model.probing.patching import check_fits, read_by_path, recorded
from headlight.model.probing.run import FINAL, Run
from headlight.model.probing.sites import Part, attention_at, parts_of
from headlight.model.probing.sweeps import Score, Sweep
from headlight.model.probing.trace import Trace, check_length, ids_of, read_of, trace
from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import (
    CannotRead,
    Encoding,
    Tokenizer,
    name_after,
)
from headlight.model.variants import PrunedSoftmax

if TYPE_CHECKING:
    import pandas

MEANS = "means.safetensors"
SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "checkpoints"


def save(folder: Path, model: ProbedModel, preset: str, tokenizer: Tokenizer, card: dict) -> None:
    """Write a folder that `load` reads; weights in float16, each shared one once."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().cpu().half().contiguous() for name, p in model.named_parameters()}
    replace_file(folder / "tokenizer.json", tokenizer.to_json())
    replace_file(folder / "model.safetensors", to_bytes(weights))
    _write_config(folder, model, preset, card)


def _write_config(folder: Path, model: ProbedModel, preset: str, card: dict) -> None:
    config = {"preset": preset, "sizes": dataclasses.asdict(model.config), "card": card}
    text = json.dumps(config, indent=2, ensure_ascii=False)
    replace_file(folder / "README.md", markdown(card, model, preset, folder.name))
    replace_file(folder / "config.json", text + "\n")


def folder_of(name: str | Path) -> Path:
    """The folder of a shipped checkpoint by name, or the folder itself; of somebody else's model
    in one file that file."""
    shipped = SHIPPED / name  # an absolute path replaces SHIPPED
    try:
        folder = shipped if (shipped / "config.json").is_file() else Path(name)
        if folder.exists() and layout_of(folder):
            return folder
        why = f"{short(folder / 'config.json')} does not exist"
    except OSError as error:
        why = reason(error)
    typed = str(name).lower()[:80]
    closest = sorted(
        (each.name for each in SHIPPED.iterdir()),
        key=lambda known: (-SequenceMatcher(None, typed, known).ratio(), known),
    )
    raise FileNotFoundError(
        f"There is no checkpoint {short(name)}: {why}. Shipped models, the closest name "
        f"first: {', '.join(closest)}."
    )


def is_shipped(name: str | Path) -> bool:
    """Whether a model came with Headlight. Raises FileNotFoundError where there is none."""
    return Path(os.path.realpath(folder_of(name))).is_relative_to(os.path.realpath(SHIPPED))


def keep_shipped(name: str | Path, is_meant: bool, instead: str = "") -> None:
    """Raises FileExistsError, in a sentence, for a model that came with Headlight, unless its user
    means to change it. `instead`: what else could be done, as a command would be given."""
    if is_shipped(name) and not is_meant:
        raise FileExistsError(
            f"{short(name)} came with Headlight. Give {instead}--change-shipped to write into its "
            "folder, or copy the folder."
        )


def write_card(name: str | Path, card: dict) -> None:
    """Give a checkpoint another card, in config.json and README.md."""
    folder = folder_of(name)
    preset = json.loads((folder / "config.json").read_text(encoding="utf-8"))["preset"]
    _write_config(folder, load(folder).model, preset, card)


def add_to_card(name: str | Path, found: dict) -> None:
    """Keep with a checkpoint what was measured of it: in its card, or of somebody else's model in a
    file of ours beside its own. Raises CannotLoad and OSError."""
    folder = folder_of(name)
    if is_ours(folder):
        write_card(folder, config_of(folder)["card"] | found)
    else:
        note(folder, found)


def write_means(name: str | Path, means: Mapping[str, torch.Tensor]) -> None:
    """Keep outputs of a checkpoint's heads over many texts with it, as PatchInputs has them."""
    tensors = {name: tensor.cpu().contiguous() for name, tensor in means.items()}
    replace_file(folder_of(name) / MEANS, to_bytes(tensors))


def usable(device: str | torch.device) -> torch.device:
    """Raises CannotLoad, with a sentence, for a device that is not here or holds no numbers."""
    try:
        named = torch.device(device)
        if named.type != "meta":
            return torch.zeros(0).to(named).device
        why = "its tensors hold no numbers"
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = reason(error)
        if why.startswith("Expected one of"):  # followed by all that PyTorch has ever known
            why = "write cpu, cuda, cuda:1 or mps"
    raise CannotLoad(f"Device {short(device)} cannot be used: {why}.")


Changes = str | Sequence[str | Change]


@dataclass(frozen=True, repr=False)
class Checkpoint:
    """A model ready to use: weights, tokenizer and card. The model is in eval mode."""

    model: ProbedModel
    tokenizer: Tokenizer
    card: dict
    preset: str
    means: Mapping[str, torch.Tensor] = field(default_factory=dict)  # see PatchInputs
    # What is not known of a model that is not of our classes, as a sentence; "" where all is.
    lacks: ClassVar[str] = ""

    def __repr__(self) -> str:
        title = short(self.card.get("title", self.preset))
        return f"<Checkpoint “{title}”: {self.preset}, {parameter_count(self.model):,} parameters>"

    def to(self, device: str | torch.device) -> "Checkpoint":
        """The checkpoint itself, moved to a device: cpu, cuda, cuda:1 or mps. Raises CannotLoad for
        one that is not here."""
        self.model.to(usable(device))
        return self

    def with_parts(self, **parts: Callable[..., Any]) -> "Checkpoint":
        """The checkpoint with functions of yours in place of ours, by the names that `check` gives
        parts (checking/in_model.py), such as `attention=mine`; this one stays as it is. Raises
        ValueError and TypeError; what uses it raises CannotRead, with your line, where a part
        fails. It decodes without a cache where a part could notice."""
        return replace(self, model=with_student_parts(self.model, parts))

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of a classifier; empty for other models."""
        return tuple(self.card.get("classes", ()))

    @property
    def writes(self) -> bool:
        """Whether the model writes a target."""
        return any(side.writes for side in self.model.sides())

    def parts(self) -> list[Part]:
        """What changes can be made to."""
        return parts_of(self.model.sites(), self.model.sides())

    def outputs(
        self, ids: Iterable[int], preceding: Iterable[int | None] = repeat(None)
    ) -> list[str]:
        """Labels for columns of the logits: classes, or tokens, each after the one that precedes
        it."""
        if self.classes:
            return [self.classes[i] for i in ids]
        tokenizer = self.tokenizer.target
        return [name_after(tokenizer, *pair) for pair in zip(ids, preceding, strict=False)]

    def encode(self, text: str, side: int = 0) -> Encoding:
        """Encode a text for a side of the model, without special tokens but those that are typed in
        it. Raises TooLong for a text that cannot fit, and CannotRead for typed padding."""
        kind_of("text", text, str, "one str")
        whole("side", side, 0, len(self.model.sides()) - 1)
        tokenizer = self.tokenizer.target if side else self.tokenizer
        of_side, config = self.model.sides()[side], self.model.config
        check_length(tokenizer, of_side, text, config.max_length)
        encoding = replace(tokenizer.encode(text), text=text)
        pad = config.special_ids(of_side.name)[0]
        if pad >= 0 and pad in encoding.ids:  # which the masks would hide
            raise CannotRead(
                f"The {of_side.title} contains {tokenizer.token(pad)}, this model's token for "
                "padding, which cannot be typed."
            )
        return encoding

    def classify(self, text: str) -> dict[str, float]:
        """Class → its probability for `text`; for classifiers only."""
        logits = torch.tensor(self.trace(text).logits[0])
        return dict(zip(self.classes, logits.softmax(dim=-1).tolist(), strict=True))

    def decode(self, written: Encoding) -> str:
        """The text of tokens that the model wrote, without special tokens."""
        return self.tokenizer.target.decode(written.ids)

    def translate(
        self,
        text: str,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
        other: Run | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Encoding:
        """The model's own target for `text`, by greedy decoding; empty for a model that writes
        none. Its `text` is what it spells.

        `pad_to` pads the source, so that padding masks have an effect. `changes` apply while the
        model writes, as text or as values (probing/changes.py); `other` is the run that patches are
        taken from. Raises CannotRead: TooLong, or a model that has no token that a target begins
        with; and CannotChange.
        """
        nothing = Encoding((), (), ())
        if not self.writes:
            return nothing
        first_token(self.model.config)  # raises if there is no token to start from
        changes, read = parsed(changes), self.encode(text)
        run = Run((read, nothing), masks, pad_to, "", FINAL, changes, other)
        src = ids_of(self.model, read_of(self.model, run))[0]
        # A key-value cache implies the causal mask.
        use_cache = masks.causal and not look_ahead(changes, self.model.sites())
        with applied(self.model, changes, self.given(run, donor, written=True)):
            targets = greedy_decode(self.model, src, masks=masks, use_cache=use_cache)
        written = self.tokenizer.target.encoding_with_special(targets[0])
        return replace(written, text=self.decode(written))

    def generate(
        self,
        text: str | Run,
        how: How = Greedy(),
        beginning: str | Sequence[int] = (),
        max_tokens: int | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Generation:
        """Generate for a text, or under the masks, padding and changes of a run, and keep the
        probabilities of every next token: greedy, Beam(width, alpha) or Sampling(temperature,
        top_k, top_p, seed), from a `beginning` on, as text or as ids. `trace_run(generation.run)`
        is the pass over it. A decoder alone goes on from the text. Raises CannotRead for a model
        that writes nothing, and CannotChange."""
        if isinstance(text, Run):
            run = text
        else:
            nothing = Encoding((), (), ())
            run = Run((self.encode(text), *(nothing for _ in self.model.sides()[1:])))
        if isinstance(beginning, str):
            beginning = self.tokenizer.target.encode(beginning).ids
        given = self.given(run, donor, written=True)
        return generated(self.model, self.tokenizer, run, how, beginning, max_tokens, given)

    def trace(
        self,
        text: str,
        target: str | None = None,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
        other: Run | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Trace:
        """A pass over `text` and `target`, with `changes` as a line or as values, patches from the
        run `other` of the model `donor` or of this one; without a target, over the model's own,
        which it writes unchanged.

        Raises CannotRead, TooLong where either is longer than the model reads, CannotChange, and
        ValueError for a target of a model that reads one text.
        """
        return self.trace_run(self.run(text, target, masks, pad_to, changes, other), donor)

    def trace_run(
        self, run: Run, donor: "Checkpoint | None" = None, written: bool = False
    ) -> Trace:
        """`trace` for a run given as a value; `written` as in `given`."""
        traced = trace(self.model, run, self.given(run, donor, written))
        return replace(traced, shifts=self.shifts(), origin=str(self.card.get("title", "")))

    def long_trace_run(
        self, run: Run, donor: "Checkpoint | None" = None, written: bool = False
    ) -> Trace | LongTrace:
        """`trace_run` for a text whose weights do not fit into memory; of a model that `lacks`
        what this takes, `trace_run` itself."""
        if self.lacks:
            return self.trace_run(run, donor, written)
        traced = long_trace(self.model, run, self.given(run, donor, written))
        return replace(traced, shifts=self.shifts(), origin=str(self.card.get("title", "")))

    def shifts(self) -> dict[str, np.ndarray]:
        """`Pass.shifts`, from the card. Measured with the final weights, they label the rows at
        earlier training steps too: over the same text a row keeps its name."""
        kind = alignment.aligning_kind(self.model.sites(), self.model.sides())
        known = self.alignment
        return {kind: known.shifts} if kind and known else {}

    @property
    def alignment(self) -> HeadAlignment | None:
        """The heads that align words, from the card; None if it has no valid entry for this
        model."""
        measured, sites = HeadAlignment.of_card(self.card), self.model.sites()
        kind = alignment.aligning_kind(sites, self.model.sides())
        of_kind = [site for site in sites if site.kind == kind]
        fits = measured and of_kind and measured.sizes == (len(of_kind), of_kind[0].n_heads)
        return measured if fits else None

    def align(self, text: str, target: str | None = None) -> WordWeights:
        """How much each word of a target, or of the model's own, has to do with each word of the
        text, (target word, source word); `links()` of it are the aligned pairs. By the heads that
        the card names, else, with a warning, by the model's influence (see analysis/alignment.py).
        Raises as `trace` does, and ValueError for a model without cross-attention."""
        if self.lacks:
            raise CannotRead(f"{self.lacks} Aligning words takes more.")
        run = self.run(text, target)
        attention = alignment.of_trace(self.trace_run(run))
        if self.alignment:
            return self.alignment.of(attention)
        warnings.warn(alignment.NO_HEADS, stacklevel=2)
        return alignment.of_influence(self.model, run)

    def sweep(
        self,
        run: Run,
        what: str = "heads",
        score: Score = Score(),
        donor: "Checkpoint | None" = None,
    ) -> "pandas.DataFrame":
        """What each "heads" off, each of the "tokens" hidden, each of the "sublayers" skipped, or
        each of the "patches" from `run.other` (of the model `donor`, or of this one) does to a
        score, one row each; see SWEEPS in probing/sweeps.py for all of them."""
        return self.swept(run, what, score, donor).to_dataframe()

    def swept(
        self,
        run: Run,
        what: str = "heads",
        score: Score = Score(),
        donor: "Checkpoint | None" = None,
    ) -> Sweep:
        """`sweep` with its result as arrays. Raises CannotRead and CannotChange."""
        *_, swept = self.sweeping(run, what, score, donor)
        return swept

    def sweeping(
        self,
        run: Run,
        what: str = "heads",
        score: Score = Score(),
        donor: "Checkpoint | None" = None,
        known: Sweep | None = None,
    ) -> Iterator[Sweep]:
        """`swept` in parts, see sweeping in probing/sweeps.py."""
        changes = sweeps.changes_of(self.model, run, what)
        given = self.given(run, donor, also=tuple(chain.from_iterable(changes)))
        return sweeps.sweeping(self.model, run, changes, score, given, known)

    def baselines(self, run: Run, score: Score = Score()) -> Baselines:
        """What each head is needed for in a run: its effect off, at its mean, and at its output in
        other texts, beside a random control (analysis/baselines). Raises CannotRead, and
        CannotChange where the model's mean outputs are not known.

        >>> copy = load("copy")
        >>> found = copy.baselines(copy.run("a b c"))
        >>> bool(found.needed[found.effects["zero"][:, 0].argmin()])
        True
        """
        return Baselines.of(self.swept(run, "baselines", score))

    def decomposition(
        self,
        run: Run,
        row: int,
        token: int,
        against: int | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Decomposition:
        """The logit of a token in a row of the logits, from 0, or its difference to another's, as a
        sum of what the embedding, every head and every feed-forward wrote (analysis/decomposition).
        Raises CannotRead and CannotChange."""
        return decomposed(self.model, run, row, token, against, self.given(run, donor))

    def carried(
        self,
        run: Run,
        row: int,
        token: int,
        term: Term,
        against: int | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Carried:
        """What a head, a term of such a sum, adds to it key by key. Raises CannotRead and
        CannotChange.

        >>> copy = load("copy")
        >>> run = copy.run("a b c")
        >>> head, value = copy.decomposition(run, 0, 5).largest(1)[0]
        >>> bool(abs(copy.carried(run, 0, 5, head).values.sum() - value) < 1e-3)
        True
        """
        return carried(self.model, run, row, token, term, against, self.given(run, donor))

    def why(self, run: Run, cell: str, by: str = "words", donor: "Checkpoint | None" = None) -> Why:
        """Why a head's query attends to a key, by the "words" that both go back to, or the "parts"
        of the model that wrote them; “cross.3.3=9>6” is query 9 and key 6 of layer 3, head 3
        (analysis/why). Raises CannotRead and CannotChange.

        >>> copy = load("copy")
        >>> copy.why(copy.run("a b c"), "cross.2.1=2>2").kind
        'meeting'
        """
        return why(self.model, run, cell, self.given(run, donor), by)

    def compared(self, text: str, other: str) -> Run:
        """The run over a text that is compared with one over another, with the same target, the
        model's own."""
        run = self.run(text)
        return replace(run, other=replace(run, texts=(self.encode(other), *run.texts[1:])))

    def paths(
        self,
        pairs: Sequence[tuple[str, str]],
        keep: float = KEEP,
        held_out: Sequence[tuple[str, str]] = (),
    ) -> Paths:
        """The fewest paths between the model's parts that carry the difference between the two
        texts of each pair, and the share that they carry of pairs on which they were not chosen
        (analysis/paths). Raises CannotRead, also where the texts of a pair have not equally many
        tokens or the model expects the same in both.

        >>> copy = load("copy")
        >>> found = copy.paths([("a b c", "d b c")], held_out=[("c a b", "b a b")])
        >>> found.share >= found.keep and len(found.paths) < found.count
        True
        """
        number("keep", keep, 0, 1)
        for name, given in (("pairs", pairs), ("held_out", held_out)):
            if not isinstance(given, list | tuple) or not all(
                isinstance(pair, list | tuple) and len(pair) == 2 for pair in given
            ):
                raise ValueError(f"{name} must be a list of pairs of texts, not {short(given)}.")
        if not pairs:
            raise ValueError("pairs is empty; give at least one pair of texts.")
        circuits = [Circuits(self.model, self.compared(*pair)) for pair in (*pairs, *held_out)]
        chosen, held = circuits[: len(pairs)], circuits[len(pairs) :]
        swept = [self.swept(one.run, "paths", one.score) for one in chosen]
        return carrying(chosen, swept, held, self.outputs(chosen[0].tokens), keep)

    def attribution(
        self,
        run: Run,
        row: int,
        token: int,
        head: tuple[int, int] | None = None,
        against: int | None = None,
        donor: "Checkpoint | None" = None,
    ) -> Attribution:
        """Which source words a predicted token comes from, by attention, gradient and removal
        (analysis/attribution). Raises CannotRead and CannotChange."""
        return attributed(self.model, run, row, token, head, against, self.given(run, donor))

    def given(
        self,
        run: Run,
        donor: "Checkpoint | None" = None,
        written: bool = False,
        also: Iterable[Change] = (),
    ) -> PatchInputs:
        """The inputs that a run's changes, and others that may be made in it, take from elsewhere.
        The model of the comparison is `donor`, or this one. Where the target is `written` in the
        run it may have another length: tokens after the comparison's last are not patched. Raises
        CannotRead, also where the model `lacks` what whoever asks for them goes on with, and
        CannotChange."""
        if self.lacks:
            raise CannotRead(self.lacks)
        if run.other is None:
            return PatchInputs(self.means)
        donor, paths = donor or self, [c for c in (*run.changes, *also) if isinstance(c, Pathed)]
        if written and paths:
            raise CannotChange(f"“{paths[0]}”: a path needs a target that is already written.")
        texts, others = read_of(self.model, run), read_of(donor.model, run.other)
        if written:
            texts = {s.name: texts[s.name] for s in self.model.sides() if not s.writes}
        check_fits(self.model, donor.model, (*run.changes, *also), texts, others)
        other = recorded(donor.model, run.other, PatchInputs(donor.means))
        if paths:
            senders = list(dict.fromkeys(path.sender for path in paths))
            other |= read_by_path(self.model, run, senders, PatchInputs(self.means, other))
        return PatchInputs(self.means, other)

    def run(
        self,
        text: str,
        target: str | None = None,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
        other: Run | None = None,
    ) -> Run:
        """The run that `trace` traces."""
        kind_of("masks", masks, Masks, "Masks(…)")
        texts = [self.encode(text)]
        if len(self.model.sides()) == 1:
            if target is not None:
                raise ValueError("This model reads one text and no target.")
        elif target is None:
            texts.append(self.translate(text))
            masks = masks.over(texts[1].ids, self.model.config.pad_id)
        else:
            texts.append(self.encode(target, 1))
        return Run(tuple(texts), masks, pad_to, changes=parsed(changes), other=other)


def load(
    name: str | Path,
    progress: Progress = lambda count, total: None,
    device: str | torch.device = "cpu",
) -> Checkpoint:
    """A shipped checkpoint by name, or any checkpoint by its folder; in float32, on a device as
    `to` takes it. For a foreign model, `progress` is called while it is read. Raises
    FileNotFoundError where there is none, and CannotLoad, with a sentence, for one that is broken:
    what it says of itself is compared with the shapes of its weights before anything is built."""
    folder = folder_of(name)
    ours = is_ours(folder)
    checkpoint = None if ours else Checkpoint(**vars(read(folder, progress)))
    try:
        checkpoint = checkpoint or _ours(folder)
        if not (folder / MEANS).is_file():
            return checkpoint.to(device)
        check_means(folder / MEANS, checkpoint.model, _shapes(folder / MEANS))
        return replace(checkpoint, means=load_file(folder / MEANS)).to(device)
    except CannotLoad:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotLoad(
            f"{error.filename or folder} cannot be read: {why.rstrip('.')}."
        ) from error
    # The files may hold anything, and each library raises errors of its own.
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise CannotLoad(f"{folder} cannot be read: {why.rstrip('.')}.") from error


def _ours(folder: Path) -> Checkpoint:
    """A folder that `save` wrote; else raises anything."""
    config = config_of(folder)
    preset, sizes, card = config["preset"], config["sizes"], config["card"]
    shapes = _shapes(folder / "model.safetensors")
    check_sizes(folder, sizes, shapes)
    with torch.device("meta"):
        hollow = presets.build(preset, **sizes)
    if shapes != {name: tuple(p.shape) for name, p in hollow.named_parameters()}:
        raise CannotLoad(f"{folder}: its weights do not fit preset {preset}.")
    check_memory(folder, hollow)
    check_card(folder, hollow, card)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    check_vocabulary(folder, tokenizer, sizes)
    model, weights = presets.build(preset, **sizes), load_file(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    for site in model.sites():
        place = {"kind": site.kind, "layer": site.layer}
        gone = [head for head in range(site.n_heads)
                if place | {"head": head} in card.get("pruned", ())]  # fmt: skip
        if gone:
            attention = attention_at(model, site)
            attention.softmax = PrunedSoftmax(attention.softmax, gone)
    model.eval().requires_grad_(False)
    return Checkpoint(model, tokenizer, card, preset)


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a file, from its header."""
    with safe_open(file, "pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118


def untrained(preset: str, like: Checkpoint, seed: int = 0) -> Checkpoint:
    """A preset at its own sizes that reads the tokens of `like`, and tells its classes apart, with
    random weights that follow from `seed` alone; on the CPU."""
    sizes = presets.own_sizes(preset, len(like.tokenizer))
    card: dict = {"title": presets.PRESETS[preset].system, "weights": "random"}
    if like.classes:
        sizes["n_classes"] = len(like.classes)
        card["classes"] = like.classes
    with presets.GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = presets.build(preset, **sizes)
    return Checkpoint(model.eval().requires_grad_(False), like.tokenizer, card, preset)


def parameters_sha256(model: ProbedModel) -> str:
    """SHA-256 of all parameters in order: name, shape and float32 values of each."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        numbers = parameter.detach().float().cpu().contiguous().numpy()
        digest.update(f"{name} {numbers.shape}\n".encode())
        digest.update(numbers.tobytes())
    return digest.hexdigest()
