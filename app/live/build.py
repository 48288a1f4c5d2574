"""Writes a model as one HTML file that needs no installation: `headlight page MODEL --out FILE`.

    headlight page en-de --out en-de.html
    headlight page en-de --lesson shares --out shares.html

The page holds the weights and computes everything itself. It runs in any current browser, without
a network: open the file, mail it, or put it on any web server (python -m http.server).
"""

import argparse
import base64
import hashlib
import html
import json
import re
import sys
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Regex, pre_tokenizers

from headlight.app.components.scripts import UNREAD, read, script
from headlight.app.live import lesson
from headlight.app.state.settings import MASKS, SETTINGS
from headlight.app.text import block_texts
from headlight.app.theme import DIFFERENCES, WEIGHTS
from headlight.model.arguments import parser_of
from headlight.model.checkpoint import SHIPPED, folder_of, load
from headlight.model.decoding.generate import CONTINUATION
from headlight.model.files import read_within, replacing
from headlight.model.messages import reason
from headlight.model.pretrained.folder import config_of, contents_of, is_ours
from headlight.model.probing.changes import VERBS
from headlight.model.tokenizer import LARGEST_TOKENIZER

MEGABYTE = 1_000_000
MOST = 60  # megabytes of weights
PRESETS = ("paper", "pre_norm", "decoder_only", "bloem")  # those in variants.js
MOST_EXAMPLES = 2**20  # bytes


class CannotHold(ValueError):
    """A model that no page can hold, in a sentence."""


def page(name: str | Path, most: float = MOST, carried: dict | None = None) -> str:
    """The page of a checkpoint, given by name or folder, whose weights take at most `most`
    megabytes in half precision. `carried`: a lesson, as lesson.carried gives it. Raises CannotHold,
    and what `load` raises."""
    folder = folder_of(name)
    check(folder, most)
    checkpoint = load(folder)
    layout, weights = _halves(checkpoint.model, folder.name)
    title = str(checkpoint.card.get("title", folder.name))
    data = {
        "name": folder.name,
        "title": title,
        "checkpoint": {
            "preset": checkpoint.preset,
            "sizes": vars(checkpoint.model.config),
            "layout": layout,
        },
        "opens": checkpoint.card.get("opens"),
        "classes": checkpoint.classes,
        "continuation": CONTINUATION,
        "alignment": measured.to_card() if (measured := checkpoint.alignment) else None,
        "towers": block_texts.towers(checkpoint.model),
        "masks": {mask: [SETTINGS[mask].label, SETTINGS[mask].help] for mask in MASKS},
        "verbs": {verb: change.words for verb, change in VERBS.items()},
        "tokenizer": json.loads(read_within(folder / "tokenizer.json", LARGEST_TOKENIZER)),
        "characters": _characters(),
        "examples": _examples(folder),
        "lesson": carried,
        "palette": WEIGHTS["ink"],
        "differences": DIFFERENCES,
    }
    scripts = {
        name: _in_script(UNREAD.sub("", script(f"../live/{name}.js")))
        for name in ("worker", "page")
    }
    style = read("stage/style.css") + read("../live/style.css")
    policy = (
        f"default-src 'none'; script-src '{_sha256(scripts['page'])}'; "
        f"style-src '{_sha256(style)}'; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": html.escape(title),
        "terms": html.escape(str(checkpoint.card.get("terms", "not stated."))),
        "policy": policy,
        "style": style,
        "data": _in_script(json.dumps(data, ensure_ascii=False, separators=(",", ":"))),
        "weights": base64.b64encode(weights).decode("ascii"),
        **scripts,
    }
    # In one pass: what is filled in may itself contain {{weights}}.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read("../live/page.html"))


def check(folder: Path, most: float = MOST) -> None:
    """Refuses a model by its files, before anything large is read. Raises CannotHold, and OSError
    or ValueError for a folder that cannot be read."""
    known = ", ".join(PRESETS)
    if not is_ours(folder):
        family = contents_of(folder).family.preset
        raise CannotHold(
            f"{folder.name} belongs to the family {family}. A live page can only run {known}."
        )
    config = config_of(folder)
    if config["preset"] not in PRESETS:
        raise CannotHold(
            f"{folder.name} is built as {config['preset']}. A live page can only run {known}."
        )
    if config["card"].get("pruned"):
        raise CannotHold(f"{folder.name} has pruned heads, which a live page cannot run.")
    size = (folder / "model.safetensors").stat().st_size / MEGABYTE
    if size > most:
        raise CannotHold(
            f"The weights of {folder.name} take {size:.1f} MB. A "
            f"live page holds at most {most:g} MB. Use --most to "
            "raise the limit."
        )
    try:
        with safe_open(folder / "model.safetensors", "pt") as file:
            types = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        why = reason(error)
        raise CannotHold(f"The weights of {folder.name} cannot be read: {why}.") from error
    if types != {"F16"}:
        raise CannotHold(
            f"{folder.name} is stored as {', '.join(sorted(types))}. "
            "A live page holds weights in half precision (F16)."
        )


def _halves(model: torch.nn.Module, name: str) -> tuple[dict[str, tuple[int, list[int]]], bytes]:
    """The weights in half precision, one after another: name → (first number, shape), and the
    numbers, little-endian. Raises CannotHold if half precision would change them."""
    layout, numbers, start = {}, [], 0
    for parameter, tensor in model.named_parameters():
        half = tensor.detach().half()
        if not torch.equal(half.float(), tensor.detach()) or not half.isfinite().all():
            raise CannotHold(f"{name}: {parameter} is not stored in half precision, or not finite.")
        layout[parameter] = start, list(tensor.shape)
        numbers.append(half.numpy().astype("<f2").tobytes())
        start += tensor.numel()
    return layout, b"".join(numbers)


@cache
def _characters() -> dict[str, str]:
    """Letters, numbers and white space as the tokenizers library classifies them, as ranges for a
    regular expression of JavaScript: browsers follow other versions of Unicode."""
    points = [*range(0xD800), *range(0xE000, 0x40000)]  # above there are no letters in Unicode
    text = "".join(map(chr, points))
    classes = {}
    for name, pattern in (("L", r"\p{L}+"), ("N", r"\p{N}+"), ("S", r"\s+")):
        split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        spans = [span for _, span in split.pre_tokenize_str(text)]
        runs = [run for first, last in spans for run in _runs(points[first:last])]
        classes[name] = "".join(f"\\u{{{a:x}}}-\\u{{{b:x}}}" for a, b in runs)
    return classes


def _runs(points: list[int]) -> list[tuple[int, int]]:
    """A run of code points without the surrogates, which may lie within."""
    if points[0] < 0xD800 <= points[-1]:
        return [(points[0], 0xD7FF), (0xE000, points[-1])]
    return [(points[0], points[-1])]


def _examples(folder: Path) -> list[str]:
    """Example sentences: the folder's own, or those of a shipped model."""
    for file in (folder / "examples.txt", SHIPPED.parent / "examples" / f"{folder.name}.txt"):
        if file.is_file():
            lines = read_within(file, MOST_EXAMPLES).decode("utf-8").splitlines()
            return [line.strip() for line in lines if line.strip()]
    return []


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _in_script(text: str) -> str:
    """JSON or a script inside a script element: no tag in it may end the element or begin a
    comment. In strings, templates and regular expressions \\u003c is a <."""
    return re.sub(r"<(?=/script|script|!--)", r"\\u003c", text, flags=re.IGNORECASE)


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("page", __doc__)
    parser.add_argument("model", help="name of a shipped model, or a folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--most", type=_megabytes, default=MOST, metavar="MB",
                        help=f"most megabytes of weights (default {MOST})")  # fmt: skip
    parser.add_argument("--lesson", metavar="NAME|FILE",
                        help="a lesson for the page, such as shares or my-lesson.md")  # fmt: skip
    args = parser.parse_args(arguments)
    try:
        check(folder_of(args.model), args.most)
        chosen = lesson.find(args.lesson) if args.lesson else None
        carried = chosen and lesson.carried(chosen, args.model, cache(load))
        text = page(args.model, args.most, carried).encode("utf-8")
    except lesson.CannotCarry as error:
        commands = (
            f"headlight page {model} --lesson {name} --out {name}.html"
            for name, model in lesson.CARRIED.items()
        )
        sys.exit("\n  ".join((f"{error} These commands work:", *commands)))
    except (ValueError, LookupError) as error:
        sys.exit(str(error))
    with replacing(args.out) as file:
        file.write(text)
    print(f"{args.out}: {len(text) / MEGABYTE:.1f} MB. Open it in a browser.")
    if carried and (titles := lesson.left_out(carried)):
        print("Left out, because only the app can show these steps: " + ", ".join(titles) + ".")


def _megabytes(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of megabytes")
    return number
