"""Which kind of files a model comes in, and the reading of it. Here Hugging Face's layout: a folder
with config.json, safetensors and a tokenizer; other kinds have files of their own."""

import json
import re
from functools import partial
from pathlib import Path

from model.files import read_within
from model.pretrained.contents import Contents, Pretrained, built
from model.pretrained.families import FAMILIES, Described, Family, Sizes
from model.pretrained.gguf_file import gguf_contents
from model.pretrained.marian_bin import is_marian, marian_contents
from model.pretrained.tokenizers import tokenizer_of
from model.pretrained.weights import INDEX, ONE, CannotLoad, Progress, Safetensors

MOST_BYTES = 2**22  # of a config.json
CARD = "headlight.json"  # what `pretrained add` notes beside the files
KINDS = {"gguf": gguf_contents, "marian": marian_contents}


def layout_of(path: Path) -> str:
    """ "gguf", "marian", "folder" for Hugging Face's, or "" where nothing tells of a model."""
    if any((path / name).is_file() for name in (ONE, INDEX)):
        return "folder"
    if path.suffix == ".gguf" or any(path.glob("*.gguf")):
        return "gguf"
    if is_marian(path):
        return "marian"
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
    contents = KINDS.get(layout_of(path), _in_folder)(path)
    contents.card.update(_noted(path))
    return contents


def _in_folder(folder: Path) -> Contents:
    values = config_of(folder)
    family = _family(folder, values)
    weights = Safetensors(folder)
    return Contents(
        where=folder,
        family=family,
        config=Described(values, str(folder / "config.json")),
        weights=weights,
        tokenizer=partial(tokenizer_of, folder),
        card={"title": folder.name, "family": values["model_type"]} | _languages(folder),
        files=tuple(folder / file for file in sorted({*weights.files.values()})),
        more=_pooling(folder, family),
    )


def config_of(folder: Path) -> dict:
    """Its config.json. Raises CannotLoad."""
    file = folder / "config.json"
    try:
        content = read_within(file, MOST_BYTES)
    except OSError as error:
        raise CannotLoad(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CannotLoad(str(error)) from None
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise CannotLoad(f"{file} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise CannotLoad(f"{file} does not describe a model: it holds no names and values.")
    return values


def _family(folder: Path, values: dict) -> Family:
    kind = values.get("model_type")
    if kind not in FAMILIES:
        what = f"a model of the type {kind!r}" if kind else "a model that does not say its type"
        raise CannotLoad(f"{folder} holds {what}; Headlight reads {', '.join(FAMILIES)}.")
    if "quantization_config" in values:
        raise CannotLoad(f"{folder} holds quantised weights; look for the model without them.")
    return FAMILIES[kind]


def _pooling(folder: Path, family: Family) -> Sizes:
    """How sentence-transformers make an embedding, where the folder says so."""
    if family.preset != "bert":
        return {}
    sizes: Sizes = {}
    pooling = folder / "1_Pooling" / "config.json"
    modules = folder / "modules.json"
    try:
        if pooling.is_file() and json.loads(read_within(pooling, MOST_BYTES)).get(
            "pooling_mode_cls_token"
        ):
            sizes["pooling"] = "cls"
        if modules.is_file():
            kinds = [str(module["type"]) for module in json.loads(read_within(modules, MOST_BYTES))]
            sizes["normalized"] = any(kind.endswith("Normalize") for kind in kinds)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise CannotLoad(f"{folder} says unclearly how its embedding is made: {error!r}.") from None
    return sizes


def _languages(folder: Path) -> dict:
    """From which language a translator's tokenizer says that it translates, and into which."""
    file = folder / "tokenizer_config.json"
    try:
        if file.stat().st_size > MOST_BYTES:
            return {}
        values = json.loads(file.read_text(encoding="utf-8"))
        languages = [values[name] for name in ("source_lang", "target_lang")]
        named = all(re.fullmatch("[a-z]{2,3}", language) for language in languages)
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {"direction": languages} if named else {}


def _noted(path: Path) -> dict:
    """What `pretrained add` wrote of a model into its folder."""
    noted = path / CARD
    if not noted.is_file():
        return {}
    try:
        return dict(json.loads(read_within(noted, MOST_BYTES)))
    except (ValueError, TypeError):
        raise CannotLoad(f"{noted} is not JSON.") from None
