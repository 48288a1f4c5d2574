"""Says what is wrong with a whole Transformer that you wrote: `headlight checkup FILE.py:NAME`.

    headlight checkup my_transformer.py:Transformer
    headlight checkup gpt.py:model --kind causal
    headlight checkup seq2seq.py:checkup_arguments

NAME is a model, or a class or function that makes one without arguments. It may also be a
dictionary of what `checkup` takes in Python, such as {"model": model, "pad": 0}. FILE.py runs with
your rights, in a process of its own that is stopped after 60 seconds. The command ends with 1 if
something is wrong, and with 2 if the file does not run.
"""

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from headlight.app.export import file_judge
from headlight.model.arguments import parser_of
from headlight.model.checking.whole.checkup import check_model
from headlight.model.checking.whole.reader import MODEL_KINDS
from headlight.model.messages import short

SECONDS = 60
MOST_NAMED = 8


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("checkup", __doc__)
    parser.add_argument("place", metavar="FILE.py:NAME", help="what is to be tried")
    parser.add_argument("--kind", choices=MODEL_KINDS, help="source and target, a text that "
                        "predicts its next token, or a text (default: found out)")  # fmt: skip
    parser.add_argument("--pad", type=int, metavar="ID", help="the id of padding")
    args = parser.parse_args(arguments)
    path, _, name = args.place.rpartition(":")
    file = Path(path).absolute()
    if not path.endswith(".py") or not file.is_file():
        parser.error(f"{short(args.place)} is not FILE.py:NAME, or there is no such file.")
    how = {key: value for key in ("kind", "pad") if (value := getattr(args, key)) is not None}
    said, end = file_judge.apart(file, lambda say: _try(file, name, how, say), SECONDS)
    if not said and not end:
        end = file_judge.NEVER_JUDGED
    lines = [line for each in said for line in each.get("lines") or each.get("said", ())]
    for line in filter(None, [*lines, end]):
        print("".join(filter(str.isprintable, str(line))))
    ends = [each["wrong"] for each in said if "wrong" in each]
    sys.exit(2 if end or not ends else int(bool(ends[0])))


def _try(file: Path, name: str, how: Mapping[str, Any], say: file_judge.Say) -> None:
    """In a process of its own."""
    found = file_judge.run_file(file, say)
    if found is None:
        return
    if name not in found:
        own = found["__name__"]
        names = [key for key, value in found.items() if _is_model(value, own)][:MOST_NAMED]
        there = f"It has {', '.join(names)}." if names else "It has no model."
        say({"lines": [f"There is no {short(name)!r} in {file.name}. {there}"]})
        return
    try:
        value = found[name]
        value = value() if inspect.isclass(value) or inspect.isfunction(value) else value
        given = value if isinstance(value, dict) else {"model": value}
        checkup = check_model(**{**how, **given})
        say({"lines": str(checkup).split("\n"), "wrong": len(checkup.wrong)})
    except BaseException as error:
        say({"lines": [file_judge.sentence_of(error, file)[0]]})


def _is_model(value: Any, own: str) -> bool:
    """Or a class of the file that makes one."""
    if inspect.isclass(value):
        return issubclass(value, nn.Module) and value.__module__ == own
    return isinstance(value, nn.Module)
