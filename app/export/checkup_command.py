"""Says what is wrong with a whole Transformer that you wrote: `headlight checkup FILE.py:NAME`.

    headlight checkup my_transformer.py:Transformer
    headlight checkup gpt.py:model --kind causal
    headlight checkup seq2seq.py:checkup_arguments

NAME is a model, or a class or function that makes one without arguments. It may also be a
dictionary of what `checkup` takes in Python, such as {"model": model, "pad": 0}. FILE.py runs with
your rights, in a process of its own that is stopped after 60 seconds. The command ends with 1 if
something is wrong, and with 2 if the file does not run.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headlight.app.export import file_judge
from headlight.app.server.checked_file import split
from headlight.model.arguments import parser_of
from headlight.model.checking.whole.reader import MODEL_KINDS
from headlight.model.messages import short


def main(arguments: list[str] | None = None) -> None:
    parser = parser_of("checkup", __doc__)
    parser.add_argument("place", metavar="FILE.py:NAME", help="what is to be tried")
    parser.add_argument("--kind", choices=MODEL_KINDS, help="source and target, a text that "
                        "predicts its next token, or a text (default: found out)")  # fmt: skip
    parser.add_argument("--pad", type=int, metavar="ID", help="the id of padding")
    args = parser.parse_args(arguments)
    place, name = split(args.place)
    file = place.absolute()
    if not name or not file.is_file():
        parser.error(f"{short(args.place)} is not FILE.py:NAME, or there is no such file.")
    how = {key: value for key in ("kind", "pad") if (value := getattr(args, key)) is not None}
    said, end = file_judge.apart(
        file, lambda say: _try(file, name, how, say), file_judge.SECONDS_OF_MODEL
    )
    if not said and not end:
        end = file_judge.NEVER_JUDGED
    lines = [line for each in said for line in each.get("said", ())]
    for line in filter(None, [*lines, end]):
        print("".join(filter(str.isprintable, str(line))))
    ends = [each["wrong"] for each in said if "wrong" in each]
    sys.exit(2 if end or not ends else int(bool(ends[0])))


def _try(file: Path, name: str, how: Mapping[str, Any], say: file_judge.Say) -> None:
    """In a process of its own."""
    found = file_judge.run_file(file, say)
    checkup = None if found is None else file_judge.check_up(found, name, how, file, say)
    if checkup is not None:  # one with a fault is false
        say({"said": str(checkup).split("\n"), "wrong": len(checkup.wrong)})
