"""The commands of Headlight: python -m model COMMAND."""

import signal
import sys
from importlib import import_module

from model.pretrained.weights import CannotLoad

COMMANDS = {  # name → module, help
    "train": ("model.training.train", "train a model, or train one further"),
    "evaluate": ("model.training.evaluate", "score a checkpoint on its test sets"),
    "describe": ("model.training.describe", "measure what an app should know of a trained model"),
    "snapshots": ("model.training.snapshots", "keep a model as it was at earlier training steps"),
    "average": ("model.training.average", "the mean of models trained from one another"),
    "back-translate": ("model.training.back_translation", "make more pairs to train on"),
    "data": ("model.training.data", "download a data set and check it"),
    "trace": ("model.corpus.trace_command", "write attention weights of many sentences to a file"),
    "align": ("model.corpus.align_command", "write which words of sentence pairs go together"),
    "survey": ("model.corpus.survey_command", "measure all heads over many sentences"),
    "prune": ("model.corpus.prune_command", "switch heads off one after another"),
    "pretrained": ("model.pretrained.command", "bring other people's models here"),
    "presets": ("model.presets", "list the presets, or the parameters of one"),
}


def main(arguments: list[str] | None = None) -> None:
    """Runs one command with the rest of the arguments."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print("usage: python -m model COMMAND …\n")
        print("\n".join(f"  {name:{width}}  {does}" for name, (_, does) in COMMANDS.items()))
        print("\npython -m model COMMAND --help explains each.")
    elif name in COMMANDS:
        try:
            import_module(COMMANDS[name][0]).main(rest)
        except ModuleNotFoundError as error:
            sys.exit(f"{error.name} is missing here: pip install {error.name}")
        except CannotLoad as error:
            sys.exit(str(error))
        except OSError as error:  # our own errors are already sentences
            sys.exit(f"{error.filename}: {error.strerror}." if error.strerror else str(error))
    else:
        sys.exit(f"There is no command {name!r}; there are {', '.join(COMMANDS)}.")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl+C
    main()
