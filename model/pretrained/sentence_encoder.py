"""How sentence-transformers make one vector of a text: modules.json lists what runs after the
model, and each of these modules has a folder of its own, with a config.json and perhaps weights."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from headlight.model.families.family import Family, Sizes
from headlight.model.families.values import Described, json_in, quoted, values_in
from headlight.model.pretrained.weights import CannotLoad

MODULES, POOLING = "modules.json", "1_Pooling"
POOLINGS = {"mean": "mean", "cls": "cls", "max": "max", "lasttoken": "last token"}  # theirs → ours
FLAG = "pooling_mode_"  # one for each, as files had them first
FLAGS = {
    f"{FLAG}{name}": name.partition("_")[0] for name in ("cls_token", "mean_tokens", "max_tokens")
}
ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
}


@dataclass(frozen=True)
class SentenceEncoder:
    """Fields of the Config, as BertConfig has them, and the folders of the Dense modules."""

    sizes: Sizes = field(default_factory=dict)
    dense: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """Our module → theirs, as in Family."""
        return {
            f"generator.dense.{i}.linear": f"{name}/linear" for i, name in enumerate(self.dense)
        }


def sentence_encoder(folder: Path, family: Family) -> SentenceEncoder:
    """What a folder says of its vector, if anything. Raises CannotLoad."""
    modules = _modules(folder)
    if not modules:
        return SentenceEncoder()
    if not family.embeds:
        raise CannotLoad(
            f"{folder} contains a sentence encoder. Headlight does not support those of the "
            f"family {family.preset}."
        )
    (first, at), (second, pooling), *after = modules if len(modules) > 1 else (modules[0], ("", ""))
    if (first, at) != ("Transformer", "") or second != "Pooling":
        raise CannotLoad(
            f"{folder / MODULES} does not start with the modules Transformer and Pooling."
        )
    if (said := folder / "sentence_bert_config.json").is_file():
        Described(values_in(said), str(said), said.name).refuse("do_lower_case", False, None)
    normalized = after[-1:] and after[-1][0] == "Normalize"
    dense = after[:-1] if normalized else after
    for kind, _ in dense:
        if kind != "Dense":
            where = "before the end" if kind == "Normalize" else "after its Pooling"
            raise CannotLoad(
                f"{folder / MODULES} has the module {quoted(kind)} {where}, which Headlight "
                "does not support."
            )
    sizes: Sizes = dict(
        predicts="embedding",
        pooling=_pooling(folder / pooling),
        dense=tuple(_dense(folder / name) for _, name in dense),
        normalized=bool(normalized),
    )
    return SentenceEncoder(sizes, tuple(name for _, name in dense))


def _modules(folder: Path) -> list[tuple[str, str]]:
    """The kind of each module and the name of its folder, "" for that of the model."""
    file = folder / MODULES
    if not file.is_file():
        has_pooling = (folder / POOLING / "config.json").is_file()
        return [("Transformer", ""), ("Pooling", POOLING)] if has_pooling else []
    values = json_in(file)
    modules = []
    for module in values if isinstance(values, list) else [None]:
        kind, path = (
            module.get(name) if isinstance(module, dict) else None for name in ("type", "path")
        )
        if not isinstance(kind, str) or not isinstance(path, str):
            raise CannotLoad(f"{file} is not a list of modules with type and path.")
        if not re.fullmatch(r"|[\w-]+", path):
            raise CannotLoad(f"{file} has a module outside its folder: {quoted(path)}.")
        library, _, name = kind.rpartition(".")
        modules.append((name if library.startswith("sentence_transformers.") else kind, path))
    return modules


def _pooling(folder: Path) -> str:
    """BertConfig.pooling."""
    file = folder / "config.json"
    config = Described(values_in(file), str(file))
    modes = config.values.get("pooling_mode")
    if modes is None:
        flags = [name for name, value in config.values.items() if value and FLAG in name]
        modes = [FLAGS.get(name, name.removeprefix(FLAG)) for name in flags] or "mean"
    modes = modes if isinstance(modes, list) else [modes]
    mode = modes[0].lower() if len(modes) == 1 and isinstance(modes[0], str) else ""
    if mode not in POOLINGS:
        pooling = " and ".join(map(quoted, modes[: len(POOLINGS) + 2])) or "nothing"
        raise CannotLoad(
            f"{config.where} pools by {pooling}. Headlight supports {', '.join(POOLINGS)}."
        )
    return POOLINGS[mode]


def _dense(folder: Path) -> tuple[int, bool, str]:
    """One of BertConfig.dense."""
    file = folder / "config.json"
    config = Described(values_in(file), str(file))
    config.refuse("module_input_name", "sentence_embedding", None)
    config.refuse("module_output_name", "sentence_embedding", None)
    config.refuse("use_residual", False)
    usual = "torch.nn.modules.activation.Tanh"
    activation = ACTIVATIONS[config.choice("activation_function", ACTIVATIONS, usual)]
    return config.count("out_features"), config.flag("bias", True), activation
