"""The command `headlight`: it starts the app, or runs a command such as `headlight trace`.

Commands that need only the model are in headlight.model.commands; those that need the app, here.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import headlight
from headlight.app.server import checked_file
from headlight.app.server.arguments import EMBED_IN, add_to, print_anywhere
from headlight.model import commands
from headlight.model.arguments import Parser
from headlight.model.extras import missing

# Imported when they run: PyTorch takes seconds. name → module, help
COMMANDS = {
    "page": ("headlight.app.live.build", "write a model as one HTML file that needs no server"),
    "figure": ("headlight.app.export.figure_command", "draw attention weights for a paper"),
    "assignment": (
        "headlight.app.export.assignment",
        "write an exercise with a starter, a notebook and tests",
    ),
    "checkup": (
        "headlight.app.export.checkup_command",
        "say what is wrong with a whole Transformer that you wrote",
    ),
    "doctor": ("headlight.app.command.doctor", "check whether this machine has what the app needs"),
}
OTHER_PACKAGE = (
    "The package headlight, a tool for database migrations, shares a folder with Headlight. Run: "
    "pip uninstall headlight headlight-attention. Then install headlight-attention again."
)
ON_THIS_MACHINE = "{} runs your code on this machine alone, so it does not go with --serve."
SCRIPT = Path(__file__).resolve().parents[1] / "main.py"
PAGE = SCRIPT.parents[1] / "docs" / "commands.md"  # what commands print; `make docs` writes it


def main(arguments: Sequence[str] | None = None) -> int | None:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    print_anywhere()
    if not hasattr(headlight, "__version__"):  # the other package's file
        print(OTHER_PACKAGE, file=sys.stderr)
        return 1
    if printed := _printed(arguments):
        print(printed, end="")
        return 0
    return run(arguments)


def _printed(arguments: list[str]) -> str:
    """A help, or the list of presets, as the page has it: the commands themselves import PyTorch,
    which takes seconds. "" for anything else, and where the page is not installed."""
    words = [*takewhile(lambda word: not word.startswith("-"), arguments)]
    begins = [f"usage: headlight {' '.join(words[:n])} " for n in range(len(words), 0, -1)]
    if arguments == ["presets"]:
        begins = ["preset "]
    elif not {"-h", "--help"} & {*arguments}:
        return ""
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    texts = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    begins = begins or ["usage: headlight ["]
    return next((text for begin in begins for text in texts if text.startswith(begin)), "")


def run(arguments: list[str]) -> int | None:
    if arguments[:1] == ["lessons"]:
        return _lessons(arguments[1:])
    if arguments[:1] == ["check"]:
        arguments = ["--check", *arguments[1:]]
    if arguments and not arguments[0].startswith("-"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl+C
        return commands.main(
            arguments, {**commands.COMMANDS, **COMMANDS}, others=("check", "lessons")
        )
    args = _parse(arguments)
    if args.serve and (args.live or args.check):
        print(ON_THIS_MACHINE.format("--live" if args.live else "check"), file=sys.stderr)
        return 2
    if args.rooms:
        from headlight.app.server import room_stores

        try:
            room_stores.open_store(args.rooms).close()
        except OSError as error:
            print(error, file=sys.stderr)
            return 2
        os.environ[room_stores.WHERE] = args.rooms
    if find_spec("streamlit") is None:
        print(missing("streamlit", "The app"), file=sys.stderr)
        return 1
    if args.live:
        from headlight.app import in_process

        return in_process.live(args.live, args.port)
    options = ["--models", str(args.models)] if args.models else []
    if args.device:
        from headlight.model import checkpoint

        try:
            options += ["--device", str(checkpoint.usable(args.device))]
        except checkpoint.CannotLoad as error:
            print(error, file=sys.stderr)
            return 2
    if args.lessons:
        options += ["--lessons", str(args.lessons)]
    if args.check:
        file, name = checked_file.split(args.check)
        if why := _problem(file.absolute()):
            print(why, file=sys.stderr)
            return 2
        options += ["--check", f"{file.absolute()}:{name}" if name else str(file.absolute())]
    options += [text for site in args.embed_in for text in (EMBED_IN, site)]
    if args.serve:
        from headlight.app.server import serve

        return serve.main(["--port", str(args.port), "--replicas", str(args.replicas), *options])
    from headlight.app.server import lan, ports

    ports.check(args.port)
    try:
        os.environ[lan.BELIEVED] = ",".join(lan.proxies())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    # Streamlit has no public function that starts it. -P: no file here is taken for a module.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(SCRIPT)]
    command += ["--server.port", str(args.port), "--", *options]
    if args.check:
        print(f"Your verdict: http://127.0.0.1:{args.port}/yours", flush=True)
    if os.name == "posix":  # in our place: whatever ends us ends Streamlit
        os.execv(sys.executable, command)
    try:
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 0


def other_package() -> bool:
    """Whether the other package called headlight is installed here. A checkout that was installed
    before ours had its name has its command."""
    from importlib import metadata

    try:
        commands = metadata.distribution("headlight").entry_points
    except metadata.PackageNotFoundError:
        return False
    return all(each.value != f"{__name__}:main" for each in commands)


def _problem(file: Path) -> str:
    """Why a file cannot be judged; "" if it can."""
    if not file.is_file():
        return f"There is no file {str(file)[:200]}."
    if file.suffix != ".py":
        return f"{file.name[:200]} is not a Python file. Its name has to end in .py."
    return ""


def _lessons(arguments: list[str]) -> int:
    """A program of its own, as the app is."""
    folders = [str(Path(headlight.__file__).parent), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    command = [sys.executable, "-P", "-m", "headlight.app.lessons", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        prog="headlight",
        usage="headlight [--port PORT] [--models DIR] [--lessons FOLDER] [--serve [--replicas N]]\n"
        "                 [--rooms ADDRESS] [--embed-in ORIGIN]\n"
        "       headlight --live SCRIPT:NAME [--port PORT]\n"
        "       headlight check FILE.py[:NAME] [--port PORT]\n"
        "       headlight lessons check|report …\n"
        "       headlight COMMAND …",
        description="Starts the app, or runs a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=headlight.__version__)
    parser.add_argument("--port", type=int, default=8501)
    add_to(parser)
    parser.add_argument(
        "--live", metavar="SCRIPT:NAME", help="a model in memory, as your script calls it"
    )
    parser.add_argument("--serve", action="store_true", help="for a class: open to the network")
    parser.add_argument(
        "--replicas",
        type=int,
        default=1,
        metavar="N",
        help="with --serve: number of processes; more than one needs nginx",
    )
    parser.add_argument(
        "--rooms",
        metavar="ADDRESS",
        help="with --serve on several machines: a Redis in which they share rooms, redis://HOST",
    )
    return parser.parse_args(arguments)
