"""A checkpoint is a folder: config.json, tokenizer.json, model.safetensors, README.md."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from model import presets
from model.card import markdown
from model.decoding.search import first_token, greedy_decode
from model.files import replace_file
from model.masks import Masks
from model.probing.changes import Change, applied, parse
from model.probing.run import Run
from model.probing.trace import Trace, ids_of, read_of, trace
from model.tokenizer import Encoding, Tokenizer
from model.transformer import Transformer

SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "checkpoints"


def save(folder: Path, model: Transformer, preset: str, tokenizer: Tokenizer, card: dict) -> None:
    """Write a folder that `load` reads; weights in float16, each shared one once."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().cpu().half().contiguous() for name, p in model.named_parameters()}
    replace_file(folder / "tokenizer.json", tokenizer.to_json())
    replace_file(folder / "model.safetensors", to_bytes(weights))
    _write_config(folder, model, preset, card)


def _write_config(folder: Path, model: Transformer, preset: str, card: dict) -> None:
    config = {"preset": preset, "sizes": dataclasses.asdict(model.config), "card": card}
    text = json.dumps(config, indent=2, ensure_ascii=False)
    replace_file(folder / "README.md", markdown(card, model, preset))
    replace_file(folder / "config.json", text + "\n")


def folder_of(name: str | Path) -> Path:
    """The folder of a shipped checkpoint by name, or the folder itself."""
    shipped = SHIPPED / name  # an absolute path replaces SHIPPED
    folder = shipped if (shipped / "config.json").is_file() else Path(name)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"There is no checkpoint {name}: no {folder / 'config.json'}.")
    return folder


def write_card(name: str | Path, card: dict) -> None:
    """Give a checkpoint another card, in config.json and README.md."""
    folder = folder_of(name)
    preset = json.loads((folder / "config.json").read_text(encoding="utf-8"))["preset"]
    _write_config(folder, load(folder).model, preset, card)


Changes = str | Sequence[Change]


@dataclass(frozen=True)
class Checkpoint:
    """A model one can ask: weights, tokenizer and card. The model is in eval mode."""

    model: Transformer
    tokenizer: Tokenizer
    card: dict
    preset: str

    @property
    def classes(self) -> tuple[str, ...]:
        """What a classifier tells apart; empty for a model that writes a target."""
        return tuple(self.card.get("classes", ()))

    @property
    def writes(self) -> bool:
        """Whether the model writes a target."""
        return any(side.writes for side in self.model.sides())

    def outputs(self, ids: Iterable[int]) -> list[str]:
        """What columns of the logits stand for: classes, or tokens."""
        return [self.classes[i] if self.classes else self.tokenizer.token(i) for i in ids]

    def classify(self, text: str) -> dict[str, float]:
        """Class → its probability for `text`; of a model that tells classes apart."""
        logits = torch.tensor(self.trace(text).logits[0])
        return dict(zip(self.classes, logits.softmax(dim=-1).tolist(), strict=True))

    def translate(
        self, text: str, masks: Masks = Masks(), pad_to: int = 0, changes: Changes = ()
    ) -> Encoding:
        """The model's own target for `text`, greedy; empty for a model that writes none.

        `pad_to` pads the source, so that masks have padding to hide or to show; `changes` are what
        the model writes under, as a line or as values (probing/changes.py). Raises CannotRead:
        TooLong, or a model that has no token that a target begins with; and CannotChange.
        """
        nothing = Encoding((), (), ())
        if not self.writes:
            return nothing
        first_token(self.model.config)  # says why, where there is none to decode from
        run = Run((self.tokenizer.encode(text), nothing), pad_to=pad_to)
        read = read_of(self.model, run)
        src = ids_of(self.model, read)[0]
        changes = _parsed(changes)
        # A key-value cache is causal by construction, and has one row at a time to change.
        use_cache = masks.causal and not changes
        with applied(self.model, changes):
            targets = greedy_decode(self.model, src, masks=masks, use_cache=use_cache)
        return self.tokenizer.encoding(targets[0])

    def trace(
        self,
        text: str,
        target: str | None = None,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
    ) -> Trace:
        """A pass over `text` and `target`, with `changes` as a line or as values; without a target,
        over the model's own, which it writes unchanged.

        Raises CannotRead, TooLong where either is longer than the model reads, CannotChange, and
        ValueError for a target of a model that reads one text.
        """
        return trace(self.model, self.run(text, target, masks, pad_to, changes))

    def run(
        self,
        text: str,
        target: str | None = None,
        masks: Masks = Masks(),
        pad_to: int = 0,
        changes: Changes = (),
    ) -> Run:
        """What `trace` traces, as a value."""
        texts = [self.tokenizer.encode(text)]
        if len(self.model.sides()) > 1:
            written = self.translate(text) if target is None else self.tokenizer.encode(target)
            texts.append(written)
        elif target is not None:
            raise ValueError("This model reads one text and no target.")
        return Run(tuple(texts), masks, pad_to, changes=_parsed(changes))


def _parsed(changes: Changes) -> tuple[Change, ...]:
    return parse(changes) if isinstance(changes, str) else tuple(changes)


def load(name: str | Path) -> Checkpoint:
    """A shipped checkpoint by name, or any checkpoint by its folder; float32, on the CPU."""
    folder = folder_of(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = presets.build(config["preset"], **config["sizes"])
    weights = load_file(folder / "model.safetensors")
    parameters = dict(model.named_parameters())
    if _shapes(weights) != _shapes(parameters):
        raise ValueError(f"{folder}: its weights are not those of preset {config['preset']}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    model.eval().requires_grad_(False)
    return Checkpoint(model, tokenizer, config["card"], config["preset"])


def untrained(preset: str, like: Checkpoint, seed: int = 0) -> Checkpoint:
    """A preset at its own sizes that reads the tokens of `like`, and tells its classes apart, with
    random weights that follow from `seed` alone; on the CPU. Draws from PyTorch's one generator:
    nothing else may draw from it meanwhile."""
    sizes = presets.own_sizes(preset, len(like.tokenizer))
    card = {"title": presets.PRESETS[preset].system, "weights": "random"}
    if like.classes:
        sizes["n_classes"] = len(like.classes)
        card["classes"] = like.classes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = presets.build(preset, **sizes)
    return Checkpoint(model.eval().requires_grad_(False), like.tokenizer, card, preset)


def parameters_sha256(model: Transformer) -> str:
    """SHA-256 of all parameters: of each its name, shape and float32 numbers, in their order."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        numbers = parameter.detach().float().cpu().contiguous().numpy()
        digest.update(f"{name} {numbers.shape}\n".encode())
        digest.update(numbers.tobytes())
    return digest.hexdigest()


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
