"""python -m tests.documentation: writes what the documentation takes out of the code, and builds
the site into site/.

Between `<!-- begin: NAME -->` and `<!-- end -->` a page holds generated text, so that it is read in
the repository as on the site; a test says so where it is out of date.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import get_args, get_type_hints

import pandas
import xarray
from plotly.graph_objects import Figure

import headlight
from headlight.app.command import COMMANDS as OF_APP
from headlight.app.lessons import class_plan
from headlight.app.lessons.lesson import load_folder
from headlight.app.lessons.question_types import TYPES
from headlight.app.text.keys import BY_PAGE
from headlight.model.card import parameter_count, wilson
from headlight.model.checking.whole.faults import FAULTS
from headlight.model.checkpoint import SHIPPED, CannotLoad, load
from headlight.model.commands import COMMANDS as OF_MODEL
from headlight.model.probing.changes import (
    MOST_CELLS,
    MOST_CHANGES,
    PATTERNS,
    SIZED,
    VERBS,
    CannotChange,
    Change,
    parse,
)
from headlight.model.probing.position_tables import POSITION_KINDS
from headlight.model.probing.sites import parts_of
from headlight.model.probing.trace import TooLong
from headlight.model.recording.weights import CannotRecord
from headlight.model.tokenizer import CannotRead

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PART = re.compile(r"(<!-- begin: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
EXAMPLES = (  # one for each verb, in the order of the table
    "cross.1.2=off",
    "cross.1.2=mean",
    "cross.1.2=resample",
    "cross.1.2=random",
    "encoder.2=uniform",
    "encoder_feed_forward.2=skip",
    "cross=hide:3,4",
    "decoder=mask:window-2",
    "decoder.1=forbid:3>1",
    "decoder.1=allow:1>3",
    "cross.4=temperature:0.5",
    "encoder.1.3=weight:2>4:0.7",
    "cross.3.4=patch",
    "cross.3.4=path:key<encoder.2.1",
    "source=positions:none",
)


def first_sentence(text: str) -> str:
    return " ".join(re.split(r"(?<=[.:])\s+(?=[A-Z])", text.strip())[0].split())


def changes() -> str:
    """The verbs of a change, out of their classes."""
    rows = ["| change | what it does | can be made to | acts |", "|---|---|---|---|"]
    by_verb: dict[str, Change] = {
        change.verb: change for line in EXAMPLES for change in parse(line)
    }
    assert by_verb.keys() == VERBS.keys()
    orders = sorted({change.order for change in by_verb.values()})
    for verb, change in by_verb.items():
        parts = ", ".join(VERBS[verb].parts)
        does = first_sentence(VERBS[verb].__doc__)
        rows.append(f"| `{change}` | {does} | {parts} | {orders.index(change.order) + 1} |")
    return "\n".join(rows)


def places() -> str:
    """What changes can be made to, in models that differ in it."""
    names = ("en-fr", "reviews", "induction")
    rows = ["| a change of | places of `en-fr` | of `reviews` | of `induction` |", "|---" * 4 + "|"]
    of_models = [{} for _ in names]
    for name, of_model in zip(names, of_models, strict=True):
        model = load(name).model
        for part in parts_of(model.sites(), model.sides()):
            of_model.setdefault(part.what, {})[f"`{part.kind}`"] = None
    for what in of_models[0]:
        cells = (", ".join(of_model.get(what, {"–"})) for of_model in of_models)
        rows.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(rows)


def arguments() -> str:
    """The names that may follow `mask` and `positions`, and how long a line may be."""
    masks = (f"`{name}-{2 if name in SIZED else ''}`".replace("-`", "`") for name in PATTERNS)
    positions = (f"`{'shifted-3' if kind == 'shifted' else kind}`" for kind in POSITION_KINDS)
    return (
        f"- `mask` takes {', '.join(masks)}.\n"
        f"- `positions` takes {', '.join(positions)}.\n"
        f"- A line has at most {MOST_CHANGES} changes and {MOST_CELLS:,} cells."
    )


def help_of(module: str, *subcommand: str) -> str:
    return printed_by(module, *subcommand, "--help")


def printed_by(module: str, *arguments: str) -> str:
    """What a command prints, 80 columns wide."""
    run = import_module(module).run if module == OF_SERVER else import_module(module).main
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
            run([*arguments])
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return printed.getvalue().rstrip()


OF_SERVER = "headlight.app.command"
ALL_COMMANDS = {
    "lessons": ("headlight.app.lessons.__main__", "check lessons, or mark answers"),
    **OF_APP,
    **OF_MODEL,
}


def main_help() -> str:
    """Of `headlight` itself: its options, and a line for each command."""
    named = {**OF_MODEL, **OF_APP}
    width = max(map(len, named))
    lines = [f"  {name:{width}}  {does}" for name, (_, does) in named.items()]
    about = ["", "commands:", *lines, "", "headlight COMMAND --help explains each."]
    return "\n".join([help_of(OF_SERVER), *about])


def helps(name: str) -> list[str]:
    """What a command prints for `--help`, and each of its subcommands."""
    module, _ = ALL_COMMANDS[name]
    whole = help_of(module)
    found = re.search(r"\{([\w,-]+)\} \.\.\.", whole)
    subcommands = found[1].split(",") if found else ()
    return [whole, *(help_of(module, subcommand) for subcommand in subcommands)]


def commands() -> str:
    """Every command with what it prints for `--help`."""
    parts = ["## headlight", f"```text\n{main_help()}\n```"]
    for name, (_, does) in ALL_COMMANDS.items():
        begins = does[:1].upper() + does[1:]
        parts += [f"## headlight {name}", f"{begins}."]
        printed = [*helps(name), *([printed_by(OF_MODEL[name][0])] if name == "presets" else [])]
        parts += [f"```text\n{text}\n```" for text in printed]
    return "\n\n".join(parts)


def faults() -> str:
    """What `checkup` names."""
    rows = ["| fault | what is wrong | usual cure |", "|---|---|---|"]
    for name, fault in FAULTS.items():
        cure = f"`{fault.cure}`" if fault.cure else "–"
        rows.append(f"| {name} | {fault.sentence} | {cure} |")
    return "\n".join(rows)


def lessons() -> str:
    """The shipped lessons, in their order."""
    rows = ["| lesson | section of the paper | model | minutes |", "|---|---|---|---|"]
    for lesson in load_folder()[0]:
        section = lesson.source.front.get("paper", "–")
        model = lesson.runs()[0][0]  # the first that is tried
        rows.append(f"| {lesson.title} | {section} | `{model}` | {lesson.minutes} |")
    return "\n".join(rows)


def question_types() -> str:
    """The types of question that lessons may use."""
    rows = ["| `type` | about | `ask` |", "|---|---|---|"]
    for name, question_type in TYPES.items():
        asks = ", ".join(f"`{ask}`" for ask in question_type.asks if ask) or "–"
        rows.append(f"| `{name}` | {first_sentence(type(question_type).__doc__)} | {asks} |")
    return "\n".join(rows)


def scores() -> str:
    """What the cards have, with intervals: the first way of decoding of each test set."""
    rows = ["| model | parameters | test set | score |", "|---|---|---|---|"]
    for folder in sorted(SHIPPED.iterdir()):
        checkpoint, found = load(folder.name), {}
        for score in checkpoint.card["scores"]:
            found.setdefault(score["set"], score)
        size = f"{parameter_count(checkpoint.model):,}"
        for test_set, score in found.items():
            if "bleu_lc" in score:
                figure = f"{score['bleu_lc']:.1f} ± {score['interval']:.1f} BLEU"
            elif "perplexity" in score:
                figure = f"perplexity {score['perplexity']:.1f} ± {score['interval']:.1f}"
            else:
                [share] = (score[name] for name in ("accuracy", "exact") if name in score)
                low, high = wilson(share / 100, score["examples"])
                figure = f"{share:.1f}% ({100 * low:.1f} to {100 * high:.1f})"
            rows.append(f"| `{folder.name}` | {size} | {test_set} | {figure} |")
    return "\n".join(rows)


def entries(objects: Iterable[object]) -> str:
    """An entry for each, in the order of their names."""
    named = sorted(objects, key=lambda each: each.__name__)
    return "\n\n".join(f"::: {each.__module__}.{each.__name__}" for each in named)


def public() -> list[object]:
    """Of `check`, which is a module, the function that all others call."""
    named = [getattr(headlight, name) for name in headlight.__all__ if name != "check"]
    return [*named, headlight.open, headlight.check.verdict]


def reference() -> str:
    """An entry for every public name."""
    return entries(public())


def results() -> set[type]:
    """The classes that public names return or derive from, and those that these lead to."""
    found, waiting = set(), public()
    while waiting:
        new = {each for each in types_of(waiting.pop()) if each not in found}
        found |= new
        waiting += new
    return found - {*public()}


def types_of(of: Callable) -> Iterator[type]:
    """Ours: what a function returns; the bases of a class, and what its members return."""
    names = vars(import_module(of.__module__)) | {"pandas": pandas, "xarray": xarray}
    functions = [of]
    if isinstance(of, type):
        yield from filter(is_ours, of.__bases__)
        members = [member for name, member in vars(of).items() if not name.startswith("_")]
        functions = [getattr(m, "fget", getattr(m, "func", m)) for m in members]
    for function in filter(isfunction, functions):
        returned = get_type_hints(function, names | {"Figure": Figure}).get("return")
        yield from filter(is_ours, (returned, *get_args(returned)))


def is_ours(of: object) -> bool:
    return isinstance(of, type) and of.__module__.startswith("headlight.")


def errors() -> set[type]:
    """What the entries name as raised."""
    return {CannotChange, CannotLoad, CannotRead, CannotRecord, TooLong}


def class_steps(first: int, last: int) -> str:
    """Steps of the plan for a class, with their checks."""
    parts = []
    for number, step in list(enumerate(class_plan.plan().steps, 1))[first:last]:
        notes = [("Why it matters", step.why), ("Misconception", step.misconception)]
        lines = [f"### {number}. {step.title} · minutes {step.minutes}", ""]
        lines += [f"- **Write**: {step.write}"] if step.write else []
        lines += [
            f"- **[{slide.kind.capitalize()}](http://localhost:8501/{slide.at})**: {slide.text}"
            for slide in step.slides
        ]
        lines += [f"- **{name}**: {text}" for name, text in notes if text]
        checks = [f"<!-- check: {check} -->" for check in step.checks]
        parts.append("\n".join([*lines, *([""] if checks else []), *checks]))
    return "\n\n".join(parts)


SHORT = class_plan.plan().short
GENERATED: dict[str, Callable[[], str]] = {
    "arguments": arguments,
    "changes": changes,
    "class-exit": lambda: class_plan.plan().exit.strip(),
    "class-steps-45": lambda: class_steps(0, SHORT),
    "class-steps-90": lambda: class_steps(SHORT, len(class_plan.plan().steps)),
    "commands": commands,
    "faults": faults,
    "errors": lambda: entries(errors()),
    "lessons": lessons,
    "places": places,
    "question-types": question_types,
    "reference": reference,
    "results": lambda: entries(results()),
    "scores": scores,
}


def keys(page: str) -> str:
    rows = [f"| {names} | {does} |" for names, does in BY_PAGE[page]]
    return "\n".join(["| key | what it does |", "|---|---|", *rows])


GENERATED |= {f"keys-{page}": partial(keys, page) for page in BY_PAGE}


def renewed(page: str) -> str:
    """The text of a page with its generated parts as the code has them now."""
    return PART.sub(lambda found: f"{found[1]}\n{GENERATED[found[2]]()}\n\n{found[3]}", page)


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def build(root: Path = ROOT) -> subprocess.CompletedProcess:
    """Builds the site of the documentation below `root`; a warning fails."""
    command = [Path(sys.executable).parent / "zensical", "build", "--clean", "--strict"]
    environment = os.environ | {
        "HEADLIGHT_SOURCES": str(ROOT),
        "HEADLIGHT_DOCSTRINGS": str(ROOT / "tests" / "docstrings.py"),
    }
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:  # a page that is opened from a folder may read this alone
        index = (root / "site" / "search.json").read_text(encoding="utf-8")
        (root / "site" / "search.js").write_text(f"var __index = {index};\n", encoding="utf-8")
    return done


def built(folder: Path) -> Path:
    """The site, built in a copy in this folder: tests run side by side."""
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def main() -> int:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"renewed {page.relative_to(ROOT)}")
    done = build()
    print(done.stdout, done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
