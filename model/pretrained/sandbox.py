"""A tokenizer out of a file reads a few texts in a process of its own first: its rules are a small
program that anyone may have written, and may take all memory, or hours."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from headlight.model.pretrained.weights import CannotLoad

MOST_SECONDS, MOST_BYTES = 10, 2**30  # of processor time, and of memory
PATIENCE = 60  # seconds by the clock, on a busy machine or where no other limit can be set
CHILD = Path(__file__).with_name("sandbox_child.py")

_refused: dict[bytes, str] = {}  # digest of a tokenizer that was tried → why it was refused, or ""


def try_tokenizer(where: Path, content: bytes, kind: str = "tokenizers") -> None:
    """Whether the tokenizer in a file's content, for the library `kind`, reads texts within the
    limits; one of other content is tried once in a process. Raises CannotLoad."""
    key = hashlib.sha256(kind.encode() + content).digest()
    if key not in _refused:
        _refused[key] = _refusal(content, kind)
    if _refused[key]:
        raise CannotLoad(f"{where} is not a usable tokenizer: {_refused[key]}.")


def _refusal(content: bytes, kind: str) -> str:
    # -P: a file beside the script, or where the program was started, is no library.
    command = [sys.executable, "-P", str(CHILD), kind, str(MOST_SECONDS), str(MOST_BYTES)]
    quiet = {"TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"}
    try:
        child = subprocess.run(
            command, input=content, capture_output=True, timeout=PATIENCE, check=False,
            env=os.environ | quiet,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it needs more than {PATIENCE} seconds for a short text"
    if not child.returncode:
        return ""
    if said := child.stdout.decode("utf-8", "replace").strip():
        return said
    if -child.returncode in (getattr(signal, "SIGXCPU", None), getattr(signal, "SIGKILL", None)):
        return f"it needs more than {MOST_SECONDS} seconds for a short text"
    return f"it needs more than {MOST_BYTES / 1e9:.1f} GB of memory for a short text"
