"""Data sets: `headlight data fetch NAME` downloads one; file readers; batches of pairs."""

import gzip
import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

import torch
from torch import Tensor

from headlight.model.arguments import Parser
from headlight.model.files import replace_file
from headlight.model.messages import reason, short
from headlight.model.sites import Side
from headlight.model.transformer import Config

Pair = tuple[list[int], list[int]]
Paired = TypeVar("Paired", bound=tuple)  # a Pair, and more


class DataError(ValueError):
    """A data file that cannot be used, in one sentence for whoever named it."""


@dataclass(frozen=True)
class DataSet:
    """Where the files of a data set are, by their paths below `class_address`, with the SHA-256 of
    each; what they may be used for; and what makes the files that training reads out of them."""

    title: str
    terms: str
    address: str
    files: dict[str, str]
    prepare: Callable[[Path], None] = lambda folder: None


SPLITS = {0: "test", 1: "test", 2: "val", 3: "val", 4: None, 5: None}  # of 200; the rest trains


def split_tatoeba(folder: Path) -> None:
    """Write the parts of the everyday sentences beside the files they come from, an archive of
    sentences of all lengths and a list of short ones for each language. The English side alone
    decides which part a pair belongs to, so no English sentence stands in two of them. The two
    parts left out were tested on elsewhere."""
    for name, language, broken in (("deu", "de", 0), ("fra", "fr", -1)):
        lines = read_lines(folder / f"{name}.txt")
        del lines[broken]  # the first German line is no sentence, the last French one is cut off
        archived = read_zipped_lines(folder / f"{name}-eng.zip", f"{name}.txt")
        columns = [line.split("\t")[:2] for line in (*archived, *lines)]
        pairs = {tuple(text.strip() for text in line) for line in columns if len(line) == 2}
        parts: dict[str, list[str]] = {"train": [], "val": [], "test": []}
        for source, target in sorted(pair for pair in pairs if all(pair)):
            digest = hashlib.sha1(source.encode("utf-8")).hexdigest()
            part = SPLITS.get(int(digest, 16) % 200, "train")
            if part:
                parts[part].append(f"{source}\t{target}\n")
        for part, text in parts.items():
            data = gzip.compress("".join(text).encode("utf-8"), mtime=0)
            replace_file(folder / f"{part}.en-{language}.tsv.gz", data)


DATA_SETS = {
    "multi30k": DataSet(
        title="Multi30K, image captions in English, German and French, raw text "
        "(github.com/multi30k/dataset, data/task1/raw, commit a3d2e0d)",
        terms="Captions of Flickr30k images, for research use; cite Elliott et al. 2016 and "
        "Elliott et al. 2017.",
        address="https://raw.githubusercontent.com/multi30k/dataset/"
        "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/",
        files={
            "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
            "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
            "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
            "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
            "test_2016_flickr.en.gz": (
                "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
            ),
            "test_2016_flickr.de.gz": (
                "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"
            ),
            "test_2017_flickr.en.gz": (
                "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"
            ),
            "test_2017_flickr.de.gz": (
                "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"
            ),
            "test_2017_mscoco.en.gz": (
                "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58"
            ),
            "test_2017_mscoco.de.gz": (
                "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338"
            ),
            "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
            "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
            "test_2016_flickr.fr.gz": (
                "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"
            ),
            "test_2017_flickr.fr.gz": (
                "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496"
            ),
            "test_2017_mscoco.fr.gz": (
                "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0"
            ),
        },
    ),
    "tatoeba": DataSet(
        title="Tatoeba (tatoeba.org), everyday sentence pairs, by way of manythings.org/anki "
        "(archives of github.com/jhamburg/dats6450_nlp, commit 83156f2, and "
        "github.com/genimind/seq2seq, commit 843b8bc; short sentences of "
        "github.com/DarrenCarvalho/Language-Translation, commit a30fc3e, and "
        "github.com/Soubhagya264/Language_Translator-Encoder-Decoder-, commit f6c8965)",
        terms="Everyday sentences by Tatoeba and its contributors, through manythings.org/anki: "
        "CC BY 2.0 FR.",
        address="https://raw.githubusercontent.com/",
        files={
            "jhamburg/dats6450_nlp/83156f25185f60cf9da6ff347e4b2c09a4cfab86/deu-eng.zip": (
                "71750f704aeb6b0a01fe57341c3051b9efd98f63b61ee266b2c2283d1b80cb71"
            ),
            "genimind/seq2seq/843b8bc40396fbea4ac9171097122aacfc8b9660/fra-eng.zip": (
                "16c4f7d0df9e7c5e6c54cdb0447f3f4a18a55052ff5e2e0b27dd4a06c0e49d04"
            ),
            "DarrenCarvalho/Language-Translation/"
            "a30fc3ec31687d0ed561047a9c7d7fdb5915f89c/data/deu.txt": (
                "ad109252de3e35f8ec8030669ccddf6ee2f5cc1656c1928468e175233c01eb1d"
            ),
            "Soubhagya264/Language_Translator-Encoder-Decoder-/"
            "f6c89651306aa93d2f0f0447ce15b553a530abb0/fra.txt": (
                "ab1d28db65ab062e06d7fc3b399872d431becfb8af152268dc4b6cdf50260530"
            ),
        },
        prepare=split_tatoeba,
    ),
    "reviews": DataSet(
        title="rt-polarity, positive and negative movie-review snippets "
        "(github.com/dennybritz/cnn-text-classification-tf, commit 18762b4)",
        terms="For research use; cite Pang & Lee 2005.",
        address="https://raw.githubusercontent.com/dennybritz/cnn-text-classification-tf/"
        "18762b459e21d9c70e5c242f8d43fc4e6db37a0d/data/rt-polaritydata/",
        files={
            "rt-polarity.neg": "2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd",
            "rt-polarity.pos": "4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58",
        },
    ),
}


def cache_folder(name: str) -> Path:
    """Where `fetch` puts a data set; the environment variable HEADLIGHT_CACHE moves it."""
    root = os.environ.get("HEADLIGHT_CACHE") or Path.home() / ".cache" / "headlight"
    return Path(root) / name


def fetch(name: str, folder: Path | None = None, address: str | None = None) -> Path:
    """Download what is missing of a data set and check it. Each download has a file of its own
    until it is whole."""
    import pooch  # part of the extra `train`: what reads files does without

    source = DATA_SETS[name]
    folder = folder or cache_folder(name)
    pooch.get_logger().setLevel("WARNING")
    for file, expected in source.files.items():
        url = (address or source.address) + file
        try:
            pooch.retrieve(url, expected, PurePosixPath(file).name, folder)
        except OSError as error:  # those of requests are of this kind
            raise DataError(f"{url} could not be read ({reason(error)}).") from None
        except ValueError:
            raise DataError(f"{url} is not the expected file: its SHA-256 differs.") from None
    source.prepare(folder)
    return folder


def find(name: str, folder: Path | None) -> Path:
    """The folder given, or the one that `fetch` filled."""
    folder = Path(folder) if folder else cache_folder(name)
    if not folder.is_dir():
        raise DataError(
            f"There is no folder {folder}. Run `headlight data fetch {name}`, or give --data DIR."
        )
    return folder


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 text file, plain or gzip, without their ends and without the byte order mark
    that editors on Windows begin a file with."""
    opener = gzip.open if path.suffix == ".gz" else open
    return _lines_of(path, lambda: opener(path, "rb"))


def read_zipped_lines(archive: Path, member: str) -> list[str]:
    """As read_lines, of one file in a ZIP archive."""

    def opener():
        with zipfile.ZipFile(archive) as files:
            return files.open(member)

    return _lines_of(archive, opener)


def _lines_of(path: Path, opener: Callable[[], IO[bytes] | gzip.GzipFile]) -> list[str]:
    """Lines of the file that `opener` opens; errors name the path."""
    try:
        # Only \n ends a line: text may hold other characters that Python takes for line ends.
        with opener() as file, TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
            lines = [line.rstrip("\r\n") for line in text]
    except FileNotFoundError:
        raise DataError(f"There is no file {short(path)}.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start:,}).") from None
    except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{short(path)} cannot be read: {reason(error)}.") from None
    if not any(line.strip() for line in lines):
        raise DataError(f"{path} is empty.")
    return lines


def read_multi30k(folder: Path, split: str, src: str = "en", tgt: str = "de") -> list:
    """One split of Multi30K as (source, target) texts: image captions (Elliott et al. 2016)."""
    sources, targets = (read_lines(folder / f"{split}.{side}.gz") for side in (src, tgt))
    if len(sources) != len(targets):
        raise DataError(
            f"{folder}: {split} has {len(sources):,} {src} lines but {len(targets):,} {tgt} lines."
        )
    return list(zip(sources, targets, strict=True))


def read_tatoeba(folder: Path, split: str, src: str = "en", tgt: str = "de") -> list:
    """One split of the everyday sentences as (source, target) texts; a source with several
    translations stands there once for each."""
    other = tgt if src == "en" else src
    pairs = read_tsv(folder / f"{split}.en-{other}.tsv.gz")
    return pairs if src == "en" else [(target, source) for source, target in pairs]


def read_tsv(path: Path) -> list[tuple[str, str]]:
    """(source, target) texts, one pair a line with a tab between."""
    pairs = []
    for number, line in enumerate(read_lines(Path(path)), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise DataError(
                f"{path}, line {number:,}: {len(columns)} columns instead of two. Separate "
                "source and target with a tab."
            )
        if not all(column.strip() for column in columns):
            raise DataError(f"{path}, line {number:,}: the source or the target is empty.")
        pairs.append((columns[0], columns[1]))
    return pairs


def with_special_ids(side: Side, ids: Iterable[int], config: Config) -> list[int]:
    """The ids of a text between bos and eos, as its side has them."""
    _, bos, eos = config.special_ids(side.name)
    return [*[bos] * side.begins, *ids, *[eos] * side.ends]


def pad(sequences: list[list[int]], value: int) -> Tensor:
    """(batch, length), filled up with `value` at the end."""
    length = max(map(len, sequences))
    return torch.tensor([ids + [value] * (length - len(ids)) for ids in sequences])


def pad_ids(sequences: list[list[int]], config: Config, side: str = "tgt") -> Tensor:
    """Texts of a side as one batch, (batch, length). Raises DataError where they differ in length
    and the model has no padding token."""
    pad_id, _, _ = config.special_ids(side)
    if pad_id < 0 and len(set(map(len, sequences))) > 1:
        raise DataError(
            f"This model has no padding token (its pad_id is {pad_id}), so it cannot "
            "read texts of different lengths together."
        )
    return pad(sequences, pad_id)


def batches(
    pairs: Sequence[Paired], max_tokens: int, generator: torch.Generator | None = None
) -> Iterator[list[Paired]]:
    """Batches of pairs of similar length, at most `max_tokens` with padding on either side.

    With a generator, batches come in random order and pairs of one length meet at random.
    """
    order = range(len(pairs))
    if generator is not None:
        order = torch.randperm(len(pairs), generator=generator).tolist()
    order = sorted(order, key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    groups: list[list[int]] = []
    group: list[int] = []
    longest = 0
    for i in order:
        longest = max(longest, len(pairs[i][0]), len(pairs[i][1]))
        if group and longest * (len(group) + 1) > max_tokens:
            groups.append(group)
            group, longest = [], max(len(pairs[i][0]), len(pairs[i][1]))
        group.append(i)
    groups.append(group)
    if generator is not None:
        mixed = torch.randperm(len(groups), generator=generator).tolist()
        groups = [groups[i] for i in mixed]
    for group in groups:
        yield [pairs[i] for i in group]


def main(arguments: list[str] | None = None) -> None:
    parser = Parser(prog="headlight data", description="Downloads a data set and checks it.")
    commands = parser.add_subparsers(required=True)
    get = commands.add_parser("fetch", help="download a data set and check it")
    get.add_argument("name", choices=DATA_SETS)
    get.add_argument("--data", type=Path, metavar="DIR", help="where to put it")
    args = parser.parse_args(arguments)
    try:
        folder = fetch(args.name, args.data)
    except DataError as error:
        sys.exit(str(error))
    print(f"{folder}\n{DATA_SETS[args.name].terms}")
