"""Which extra of the package brings what the core does without."""

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {  # extra, as in pyproject.toml → what of it is imported here
    "app": ("PIL", "segno", "starlette", "streamlit", "uvicorn"),
    "bertviz": ("bertviz",),
    "notebook": ("anywidget", "matplotlib", "pandas", "plotly", "traitlets", "xarray"),
    "rooms": ("redis",),
    "train": ("accelerate", "pooch", "pyarrow", "sacrebleu", "tqdm"),
    "transformers": ("gguf", "huggingface_hub", "sentencepiece", "transformers"),
}


def install(extra: str = "") -> str:
    """The command that brings an extra, or the package with what it always needs."""
    return f'pip install "headlight-attention{f"[{extra}]" if extra else ""}"'


def missing(name: str | None, what: str = "") -> str:
    """That an imported package is not here, in a sentence, and the command that brings it with all
    that goes with it. `what`: what needs it."""
    package = (name or "a package").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), "")
    said = f"{what} needs {package}" if what else f"{package} is not installed"
    return f"{said}. Run: {install(extra)}"


@contextmanager
def of_extra(what: str) -> Iterator[None]:
    """Around an import. Raises ModuleNotFoundError with the sentence of `missing`."""
    try:
        yield
    except ImportError as error:
        raise ModuleNotFoundError(missing(error.name, what), name=error.name) from None
