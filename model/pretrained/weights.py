"""Weights in files: what is there is known from their headers, before any number is read. Those of
safetensors are read here. Pickles are never opened."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from headlight.model.families.family import Stored
from headlight.model.families.values import CannotLoad
from headlight.model.files import read_json
from headlight.model.messages import reason
from headlight.model.sites import ProbedModel

SINGLE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.onnx")
MOST_BYTES = 2**22  # of an index
ROWS = 2**10  # of two matrices that are compared at a time
DOUBLE = "F64"
REAL = {DOUBLE, "F32", "F16", "BF16"}
TYPES = {"I": "int", "U": "uint", "F": "float"}  # as safetensors begin the names of theirs

Progress = Callable[[int, int], None]  # hears how many numbers are read by now, and of how many


class WeightFile:
    """The tensors at a path, a name → its shape; `others`, a name → its type, hold no real numbers.
    Each kind of file says how numbers are read. `rounded`: whether some are float64 there, which
    `fill` rounds."""

    rounded = False

    def __init__(
        self,
        where: Path,
        shapes: Mapping[str, tuple[int, ...]],
        others: Mapping[str, str] = MappingProxyType({}),
    ):
        self.where, self.shapes, self.others = where, shapes, others

    @contextmanager
    def opened(self) -> Iterator[Callable[[str], Tensor]]:
        """What reads a tensor by its name, within the block."""
        raise NotImplementedError

    def equal(self, name: str, other: str) -> bool:
        """Whether two tensors have the same shape and numbers."""
        if self.shapes[name] != self.shapes[other]:
            return False
        with self.opened() as read:
            pairs = zip(read(name).split(ROWS), read(other).split(ROWS), strict=True)
            dtype = torch.get_default_dtype()
            return all(ours.to(dtype).equal(theirs.to(dtype)) for ours, theirs in pairs)

    def plain(self, prefix: str) -> dict[str, str]:
        """Name without the prefix, as it is called today → name."""
        plain = {name.removeprefix(prefix): name for name in self.shapes}
        old = {".gamma": ".weight", ".beta": ".bias"}  # of norms, in BERT's first files
        for name in list(plain):
            for ending, new in old.items():
                if name.endswith(ending):
                    plain.setdefault(name.removesuffix(ending) + new, plain.pop(name))
        return plain

    def check(self, model: ProbedModel, stored: Mapping[str, Stored], said_by: str) -> None:
        """Whether every parameter is there in its shape, as what describes the model, `said_by`,
        has it; the model may hold no numbers."""
        for ours, parameter in model.named_parameters():
            name = stored[ours].name
            if name not in self.shapes:
                raise CannotLoad(f"{self.where} lacks the weight {name}.")
            shape, wanted = _squeezed(self.shapes[name]), stored[ours].shape(parameter.shape)
            if shape != _squeezed(wanted):
                raise CannotLoad(
                    f"{self.where}: {name} has shape {self.shapes[name]}, but by {said_by} it "
                    f"should have {tuple(wanted)}."
                )

    def fill(self, model: ProbedModel, stored: Mapping[str, Stored], progress: Progress) -> None:
        """Put the numbers into a model that holds none, as float32; shared ones once. What is
        stored as float32 already stays in the file, which is mapped into memory."""
        filled: dict[nn.Parameter, nn.Parameter] = {}
        count, total = 0, sum(parameter.numel() for parameter in model.parameters())
        with self.opened() as read:
            for ours, parameter in model.named_parameters():
                name = stored[ours].name
                numbers = stored[ours].take(read(name))
                numbers = numbers.to(torch.get_default_dtype()).reshape(parameter.shape)
                # Both are NaN where one number is: an eighteenth of the time of asking each.
                if not torch.stack(numbers.aminmax()).isfinite().all():
                    raise CannotLoad(
                        f"{self.where}: {name} contains numbers that are NaN or infinite."
                    )
                filled[parameter] = nn.Parameter(numbers.contiguous(), False)
                progress(count := count + numbers.numel(), total)
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = filled[parameter]

    def check_known(self, known: Iterable[str]) -> None:
        """Whether there is no weight but the `known`: another would change what a model does."""
        if unknown := sorted(self.shapes.keys() - set(known)):
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise CannotLoad(
                f"{self.where} has weights that Headlight does not know: {unknown[0]}{more}."
            )


class Safetensors(WeightFile):
    """Those of a folder in Hugging Face's layout, in one file or several; and of `modules`, folders
    within it, as MODULE/NAME."""

    def __init__(self, folder: Path, modules: Iterable[str] = ()):
        """Reads headers alone. Raises CannotLoad."""
        self.places: dict[str, tuple[Path, str]] = {}  # file and the name there
        shapes: dict[str, tuple[int, ...]] = {}
        others: dict[str, str] = {}
        prefixes = {
            folder / module / file: f"{module}/" if module else ""
            for module in ("", *modules)
            for file in _files(folder / module)
        }
        for file, prefix in prefixes.items():
            try:
                with safe_open(file, "pt") as opened:
                    for inside in opened.keys():  # noqa: SIM118
                        name, part = prefix + inside, opened.get_slice(inside)
                        if (kind := part.get_dtype()) not in REAL:
                            others[name] = re.sub(r"^[IUF](?=\d)", lambda m: TYPES[m[0]], kind)
                        else:
                            self.places[name] = file, inside
                            shapes[name] = tuple(part.get_shape())
                            self.rounded |= kind == DOUBLE
            except (SafetensorError, OSError) as error:
                raise CannotLoad(f"{file} cannot be read: {reason(error)}.") from None
        if not shapes and not others:
            raise CannotLoad(f"{folder} has a weights file without any tensors.")
        super().__init__(folder, shapes, others)

    @contextmanager
    def opened(self) -> Iterator[Callable[[str], Tensor]]:
        with ExitStack() as stack:
            files = {file: stack.enter_context(safe_open(file, "pt")) for file in self.files}

            def read(name: str) -> Tensor:
                file, inside = self.places[name]
                return files[file].get_tensor(inside)

            yield read

    @property
    def files(self) -> set[Path]:
        return {file for file, _ in self.places.values()}


def _squeezed(shape: Iterable[int]) -> tuple[int, ...]:
    """Without axes of length 1: a bias may be stored as a row."""
    return tuple(length for length in shape if length != 1)


def _files(folder: Path) -> list[str]:
    """Names of the files of weights."""
    if (folder / SINGLE_FILE).is_file():
        return [SINGLE_FILE]
    if (folder / INDEX).is_file():
        try:
            names = read_json(folder / INDEX, MOST_BYTES)["weight_map"].values()
            files = sorted({str(name) for name in names})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CannotLoad(f"{folder / INDEX} cannot be read: {error!r}.") from None
        for file in files:
            if Path(file).name != file:
                raise CannotLoad(f"{folder / INDEX} names a file outside its folder: {file}.")
            if not (folder / file).is_file():
                raise CannotLoad(f"{folder} lacks {file}, which {INDEX} names.")
        return files
    pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
    if pickles:
        raise CannotLoad(
            f"{folder} stores its weights in {pickles[0]}. A pickle may run any code, so only "
            f"safetensors are read. Convert it, or look for the same model with {SINGLE_FILE}."
        )
    raise CannotLoad(f"{folder} has no weights: there is no {SINGLE_FILE}.")
