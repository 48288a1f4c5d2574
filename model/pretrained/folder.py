"""A model in Hugging Face's layout: a folder with config.json, safetensors and a tokenizer.

Everything that can be wrong is looked for before memory is taken: what config.json says is compared
with the shapes in the headers of the weights, by a model that holds no numbers.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from model import presets
from model.pretrained.families import FAMILIES, Described, Family, Sizes
from model.pretrained.tokenizers import special_ids, tokenizer_of
from model.pretrained.weights import CannotLoad, Weights
from model.tokenizer import Tokenizer

MOST_BYTES = 2**22  # of a config.json
CARD = "headlight.json"  # what `pretrained add` notes beside the files


@dataclass(frozen=True)
class Pretrained:
    """What a folder holds: the model in eval mode, float32, on the CPU."""

    model: nn.Module
    tokenizer: Tokenizer
    card: dict
    preset: str


def config_of(folder: Path) -> dict:
    """Its config.json. Raises CannotLoad."""
    file = folder / "config.json"
    try:
        if file.stat().st_size > MOST_BYTES:
            raise CannotLoad(f"{file} is too large for a description of a model.")
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotLoad(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # no JSON, or no UTF-8
        raise CannotLoad(f"{file} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise CannotLoad(f"{file} does not describe a model: it holds no names and values.")
    return values


def read(folder: Path) -> Pretrained:
    """The model of a folder in our own classes. Raises CannotLoad."""
    values = config_of(folder)
    family = _family(folder, values)
    weights = Weights.open(folder)
    config = Described(values, str(folder / "config.json"))
    sizes = family.sizes(config, weights) | _pooling(folder, family)
    plain = weights.plain(family.prefix)
    _check_sizes(folder, family, sizes, weights, plain)
    tokenizer = tokenizer_of(folder, sizes)
    sizes |= special_ids(folder, tokenizer, config, family.preset)
    try:
        with torch.device("meta"):
            model = presets.build(family.preset, **sizes)
    except (ValueError, RuntimeError) as error:
        raise CannotLoad(f"{folder / 'config.json'}: {error}.") from None
    stored = {ours: family.stored(ours, plain) for ours, _ in model.named_parameters()}
    weights.check(model, stored)
    names = [place.name for place in stored.values()]
    ignored = (name for theirs, name in plain.items() if re.match(family.ignored, theirs))
    weights.check_known([*names, *ignored])
    weights.fill(model, stored)
    return Pretrained(model.eval(), tokenizer, _card(folder, values), family.preset)


def _family(folder: Path, values: dict) -> Family:
    kind = values.get("model_type")
    if kind not in FAMILIES:
        what = f"a model of the type {kind!r}" if kind else "a model that does not say its type"
        raise CannotLoad(f"{folder} holds {what}; Headlight reads {', '.join(FAMILIES)}.")
    if "quantization_config" in values:
        raise CannotLoad(f"{folder} holds quantised weights; look for the model without them.")
    return FAMILIES[kind]


def _check_sizes(
    folder: Path, family: Family, sizes: Sizes, weights: Weights, plain: dict[str, str]
) -> None:
    """What decides how much is built: the embedding's shape and the number of layers."""
    names = (family.embedding, *family.aliases[family.embedding])
    name = next((plain[name] for name in names if name in plain), None)
    if name is None:
        raise CannotLoad(f"{folder} lacks the weight {family.embedding}.")
    wanted = sizes["vocab_size"], sizes["d_model"]
    if weights.shapes[name] != wanted:
        raise CannotLoad(
            f"{folder}: {name} has shape {weights.shapes[name]}, but config.json says {wanted}: "
            "tokens, then d_model."
        )
    for field, pattern in family.layers.items():
        found = [re.match(pattern, name) for name in plain]
        count = max((int(match[1]) + 1 for match in found if match), default=0)
        if count != sizes[field]:
            raise CannotLoad(
                f"{folder} has {count:,} layers in its weights, but config.json says "
                f"{sizes[field]:,}."
            )
    most = max(weights.shapes[name])
    largest = max((max(shape, default=0) for shape in weights.shapes.values()), default=most)
    for field in ("d_ff", "n_heads", "head_size", "n_segments"):
        if sizes.get(field, 0) > 3 * largest:
            raise CannotLoad(
                f"{folder / 'config.json'} has {sizes[field]:,} for {field}, more than any shape "
                "in its weights."
            )


def _pooling(folder: Path, family: Family) -> Sizes:
    """How sentence-transformers make an embedding, where the folder says so."""
    if family.preset != "bert":
        return {}
    sizes: Sizes = {}
    pooling = folder / "1_Pooling" / "config.json"
    modules = folder / "modules.json"
    try:
        if pooling.is_file() and json.loads(pooling.read_text("utf-8")).get(
            "pooling_mode_cls_token"
        ):
            sizes["pooling"] = "cls"
        if modules.is_file():
            kinds = [str(module["type"]) for module in json.loads(modules.read_text("utf-8"))]
            sizes["normalized"] = any(kind.endswith("Normalize") for kind in kinds)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise CannotLoad(f"{folder} says unclearly how its embedding is made: {error!r}.") from None
    return sizes


def _card(folder: Path, values: dict) -> dict:
    """What is known of the model, as in model/card.py."""
    card = {"title": folder.name, "family": values["model_type"]}
    noted = folder / CARD
    if noted.is_file():
        try:
            card |= json.loads(noted.read_text(encoding="utf-8"))
        except ValueError:
            raise CannotLoad(f"{noted} is not JSON.") from None
    return card
