"""The commands of Headlight that need only the model: `headlight COMMAND`."""

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module

from headlight.model.extras import missing
from headlight.model.families.values import CannotLoad
from headlight.model.messages import LONGEST_MESSAGE, reason, short

Commands = Mapping[str, tuple[str, str]]  # name → module, help
COMMANDS: Commands = {
    "train": ("headlight.model.training.train", "train a model, or continue training one"),
    "evaluate": ("headlight.model.training.evaluate", "score a checkpoint on its test sets"),
    "describe": (
        "headlight.model.training.describe",
        "measure what the app needs to know about a model",
    ),
    "snapshots": (
        "headlight.model.training.snapshots",
        "keep earlier training steps of a model",
    ),
    "average": (
        "headlight.model.training.average",
        "average a model with one trained further from it",
    ),
    "back-translate": ("headlight.model.training.back_translation", "make more training pairs"),
    "data": ("headlight.model.training.data", "download a data set and check it"),
    "trace": (
        "headlight.model.surveys.trace_command",
        "write attention weights of many sentences to a file",
    ),
    "record": (
        "headlight.model.recording.record_command",
        "write attention weights of a few sentences for the app and for load",
    ),
    "align": (
        "headlight.model.surveys.align_command",
        "write word alignments of sentence pairs",
    ),
    "survey": ("headlight.model.surveys.survey_command", "measure all heads over many sentences"),
    "why": ("headlight.model.surveys.why_command", "say why a head attends to a word"),
    "paths": (
        "headlight.model.surveys.paths_command",
        "find what carries the difference between two sentences",
    ),
    "pretrained": ("headlight.model.pretrained.command", "add other people's models"),
    "presets": ("headlight.model.presets", "list the presets, or the parameters of one"),
}


def unknown(name: str, commands: Sequence[str]) -> str:
    """That there is no such command, and which was meant, or which there are."""
    meant = get_close_matches(name, commands, 1)
    rest = f"Did you mean {meant[0]}?" if meant else f"Choose from {', '.join(commands)}."
    return f"There is no command {short(name)!r}. {rest}"


def main(
    arguments: Sequence[str], commands: Commands = COMMANDS, others: Sequence[str] = ()
) -> None:
    """Runs one of the commands with the rest of the arguments; `others` are run elsewhere."""
    name, *rest = arguments
    if name in commands:
        try:
            import_module(commands[name][0]).main(rest)
        except ModuleNotFoundError as error:
            sys.exit(missing(error.name))
        except CannotLoad as error:
            sys.exit(short(error, LONGEST_MESSAGE))
        except OSError as error:  # our own errors are already sentences
            where = f"{short(error.filename)}: " if error.filename else ""
            sys.exit(
                f"{where}{reason(error)}." if error.strerror else short(error, LONGEST_MESSAGE)
            )
        except SystemExit as error:
            if isinstance(error.code, str):
                error.code = "\n".join(
                    short(line, LONGEST_MESSAGE) for line in error.code.split("\n")
                )
            raise
    else:
        sys.exit(unknown(name, [*commands, *others]))
