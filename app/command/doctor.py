"""`headlight doctor`: whether this machine has what the app needs, in ten lines."""

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
import webbrowser
from collections.abc import Callable, Sequence

import headlight
from headlight.app import command
from headlight.app.server import ports
from headlight.model import extras

OLDEST_PYTHON = (3, 11)
OLDEST_TORCH, NEWER_TORCH = (2, 6), (2, 14)  # from, and below: tested, as in requirements.txt
PACKAGES = "streamlit", "plotly", "tokenizers", "pandas"
MODEL, TEXT = "copy", "a b c"  # the smallest shipped model
ENOUGH_MEMORY, ENOUGH_SPACE = 1.0, 0.5  # GB, for the app on the models that are shipped


class Problem(Exception):
    """What is wrong, and what to do about it."""


def package() -> str:
    if command.other_package():
        raise Problem(f"{headlight.__version__}. {command.OTHER_PACKAGE}")
    return headlight.__version__


def python() -> str:
    python = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        raise Problem(f"{python}: Headlight needs Python 3.11 or newer.")
    return f"{python}, {platform.platform(terse=True)}, {platform.machine()}"


def pytorch() -> str:
    import torch  # takes seconds

    torch_version = torch.__version__
    version = tuple(int(number) for number in torch_version.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise Problem(f'{torch_version} is too old. Run: pip install "torch>={oldest}"')
    device = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    untested = "; newer than those we tested" if version >= NEWER_TORCH else ""
    return f"{torch_version}, built for {device}{untested}"


def packages() -> str:
    packages, absent = [], []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
    if absent:
        raise Problem(f"{', '.join(absent)} missing. Run: {extras.install('app')}")
    return ", ".join(packages)


def model() -> str:
    from headlight import load  # with PyTorch

    traced = load(MODEL).trace(TEXT)
    heads = sum(len(layer) for layers in traced.attention.values() for layer in layers)
    return f"“{MODEL}” reads “{TEXT}”: {heads} heads traced"


def gpu() -> str:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "none; the app computes on the CPU"


def memory() -> str:
    import psutil

    free, total = (getattr(psutil.virtual_memory(), name) / 1e9 for name in ("available", "total"))
    if free < ENOUGH_MEMORY:
        raise Problem(
            f"{free:.1f} GB free. The app needs {ENOUGH_MEMORY:g} GB: close other programs."
        )
    return f"{free:.1f} of {total:.1f} GB free, {os.cpu_count()} cores"


def space() -> str:
    free = shutil.disk_usage(os.getcwd()).free / 1e9
    if free < ENOUGH_SPACE:
        raise Problem(f"{free:.1f} GB free in this folder. Exports and models need more.")
    return f"{free:.1f} GB free in this folder"


def browser() -> str:
    try:
        return webbrowser.get().name or "found"
    except webbrowser.Error:
        return "none found here; open the address that the app prints in any browser"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one line per check. Exits with 1 if the app would not work."""
    parser = argparse.ArgumentParser(prog="headlight doctor", description=__doc__)
    parser.add_argument("--port", type=int, default=8501, help="the port that the app will use")
    port = parser.parse_args(arguments).port

    def port_is_free() -> str:
        if why := ports.problem(port):
            raise Problem(why)
        return f"{port} is free"

    checks: dict[str, Callable[[], str]] = {
        "Headlight": package,
        "Python": python,
        "PyTorch": pytorch,
        "packages": packages,
        "model": model,
        "GPU": gpu,
        "memory": memory,
        "disk": space,
        "port": port_is_free,
        "browser": browser,
    }
    healthy = True
    for name, check in checks.items():
        try:
            mark, answer = "ok", check()
        except Problem as problem:
            mark, answer, healthy = "NO", str(problem), False
        except ModuleNotFoundError as error:
            mark, answer, healthy = "NO", extras.missing(error.name), False
        except ImportError as error:
            mark, answer, healthy = "NO", f"{error}.", False
        print(f"{mark}  {name:9}  {answer}", flush=True)
    if not healthy:
        sys.exit(1)
