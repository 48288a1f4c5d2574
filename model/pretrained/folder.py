"""Which kind of files a model comes in, and the reading of it. Here Hugging Face's layout: a folder
with config.json, safetensors and a tokenizer; other kinds have files of their own."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from headlight.model.families.family import Family
from headlight.model.families.registry import families, family_of
from headlight.model.families.values import MOST_BYTES, MOST_QUOTED, Described, quoted, values_in
from headlight.model.files import read_json, replace_file
from headlight.model.pretrained.contents import Contents, Pretrained, built
from headlight.model.pretrained.gguf_file import gguf_contents
from headlight.model.pretrained.sentence_encoder import sentence_encoder
from headlight.model.pretrained.tokenizers import tokenizer_of
from headlight.model.pretrained.weights import INDEX, SINGLE_FILE, CannotLoad, Progress, Safetensors

CARD = "headlight.json"  # what is noted of a model beside its files
HEADS = re.compile("For(?!CausalLM|MaskedLM|PreTraining)|DoubleHeads")  # those not read here


def layout_of(path: Path) -> str:
    """ "gguf", "folder" for Hugging Face's, or "" where nothing tells of a model."""
    if any((path / name).is_file() for name in (SINGLE_FILE, INDEX)):
        return "folder"
    if path.suffix == ".gguf" or any(path.glob("*.gguf")):
        return "gguf"
    return "folder" if (path / "config.json").is_file() else ""


def is_ours(folder: Path) -> bool:
    """Whether a folder is one that `checkpoint.save` wrote. Raises CannotLoad for a broken
    config.json."""
    return layout_of(folder) == "folder" and "preset" in config_of(folder)


def read(path: Path, progress: Progress = lambda count, total: None) -> Pretrained:
    """The model of a folder or file in our own classes. Raises CannotLoad."""
    return built(contents_of(path), progress)


def contents_of(path: Path) -> Contents:
    """What is said of a model in a folder or file. Raises CannotLoad."""
    contents = (gguf_contents if layout_of(path) == "gguf" else _in_folder)(path)
    contents.card.update(_noted(path))
    return contents


def _in_folder(folder: Path) -> Contents:
    values = config_of(folder)
    family = _family(folder, values)
    encoder = sentence_encoder(folder, family)
    weights = Safetensors(folder, encoder.dense)
    config = Described(values, str(folder / "config.json"))
    return Contents(
        where=folder,
        family=replace(family, names={**family.names, **encoder.names}),
        config=config,
        weights=weights,
        tokenizer=partial(tokenizer_of, folder, config),
        card={"title": folder.name, "family": values["model_type"]} | _languages(folder),
        files=tuple(sorted(weights.files)),
        more=encoder.sizes,
    )


def config_of(folder: Path) -> dict:
    """Its config.json. Raises CannotLoad."""
    return values_in(folder / "config.json")


def _family(folder: Path, values: dict) -> Family:
    kind = values.get("model_type")
    if not isinstance(kind, str) or (family := family_of(kind)) is None:
        what = f"a model of the type {quoted(kind)}" if kind else "a model without a type"
        known = ", ".join(name for family in families() for name in family.model_types)
        raise CannotLoad(f"{folder} contains {what}. Headlight reads {known}.")
    if "quantization_config" in values:
        raise CannotLoad(
            f"{folder} contains quantised weights. Look for the model without quantisation."
        )
    names = values.get("architectures") or []
    if not isinstance(names, list) or not all(map(_is_class, names)):
        raise CannotLoad(f"{folder} has {quoted(names)} for architectures; these must be names.")
    for name in filter(HEADS.search, names):
        raise CannotLoad(f"{folder} contains a {name}. Headlight does not support its output head.")
    return family


def _is_class(name: object) -> bool:
    """Whether it can be the name of a class, short enough for a sentence."""
    return isinstance(name, str) and name.isidentifier() and len(name) <= MOST_QUOTED


def _languages(folder: Path) -> dict:
    """From which language a translator's tokenizer says that it translates, and into which."""
    file = folder / "tokenizer_config.json"
    try:
        values = read_json(file, MOST_BYTES)
        languages = [values[name] for name in ("source_lang", "target_lang")]
        named = all(re.fullmatch("[a-z]{2,3}", language) for language in languages)
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {"direction": languages} if named else {}


def _noted(path: Path) -> dict:
    """What stands in its folder of a model that is not in its own files, see `note`."""
    noted = path / CARD
    return values_in(noted) if noted.is_file() else {}


def note(folder: Path, found: dict) -> None:
    """Keep more of a model in its folder. Raises CannotLoad for one that is a single file, and
    OSError."""
    if not folder.is_dir():
        raise CannotLoad(
            f"{folder} is a single file. Run `headlight pretrained add {folder}` to make a "
            "folder of it."
        )
    text = json.dumps(_noted(folder) | found, ensure_ascii=False, indent=2)
    replace_file(folder / CARD, text + "\n")
