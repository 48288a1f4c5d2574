"""What tests of the app share: a model that no data set is needed for, and a running server."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

# Before NumPy is imported, and for every process that a test starts. Its threads wait for each
# other at full speed: beside other work a small product of matrices took forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Threads of PyTorch that wait for each other do so at rest, also in every process that a test
# starts: on a busy machine one command took 50 s of processor instead of 4 s.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Each script run of Streamlit is a thread, which would keep in an arena of its own what it freed.
os.environ.setdefault("MALLOC_ARENA_MAX", "2")

import hypothesis
import pytest
import torch
from filelock import FileLock

from headlight.model import checkpoint, memory, presets
from headlight.model.tokenizer import Tokenizer
from headlight.model.training import snapshots
from tests import devices
from tests.servers import free_port, serving

# 25 examples of every law, which the Makefile draws by the commit; `make test-long` tries 5,000.
hypothesis.settings.register_profile("short", max_examples=25, deadline=None, database=None)
hypothesis.settings.register_profile("long", max_examples=5000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("short")

ROOT = Path(__file__).resolve().parent.parent
LINES = ["the dog sees the cat", "ein Hund sieht die Katze", "a man and a woman walk home"]


def long_but(few, every) -> list:
    """Parameters: of every one, `make test` tries a few and `make test-long` the others."""
    return [one if one in few else pytest.param(one, marks=pytest.mark.long) for one in every]


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default="cpu",
        help="where the tests of tests/model put models and tensors: cpu, cuda, cuda:1, …",
    )


def pytest_configure(config):
    # Before tests are collected: commands import it by name. Called in the process of the tests,
    # they would have it keep all memory to its end.
    memory.keep_freed_memory = lambda: False
    # Before, too: some make their tensors as they are imported.
    try:
        device = devices.named(config.getoption("--device"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    if devices.available(device):
        devices.use(device)


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """A folder of models for `--models`, with random weights: one with 2 encoder and 5 decoder
    layers and snapshots of two training steps, one that reads 12 tokens, one of 20 encoder layers,
    a classifier, and one that is broken."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = Tokenizer.train(LINES, vocab_size=300)
    sizes = dict(vocab_size=len(tokenizer), d_model=32, n_heads=4, d_ff=64)
    shapes = {
        "uneven": dict(n_encoder_layers=2, n_decoder_layers=5),
        "short": dict(n_encoder_layers=1, n_decoder_layers=1, max_length=12),
        "deep": dict(n_encoder_layers=20, n_decoder_layers=1),
    }
    torch.manual_seed(0)
    for name, shape in shapes.items():
        model = presets.build("pre_norm", **sizes, **shape)
        checkpoint.save(folder / name, model, "pre_norm", tokenizer, {})
    for step in (10, 1000):
        other = presets.build("pre_norm", **sizes, **shapes["uneven"])
        weights = dict(other.named_parameters())
        score = {"set": "made up", "decode": "greedy", "bleu_lc": float(step)}
        snapshots.write(folder / "uneven", step, weights, score)
    classifier = presets.build("bloem", **sizes, n_encoder_layers=2, n_decoder_layers=0)
    card = {"classes": ["bad", "good"]}
    checkpoint.save(folder / "classifier", classifier, "bloem", tokenizer, card)
    shutil.copytree(folder / "short", folder / "broken")
    (folder / "broken" / "model.safetensors").write_bytes(b"not weights")
    return folder


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The documentation's site, built once in a run: the first worker that asks builds it, while
    others wait."""
    from tests import documentation  # which imports all commands and lessons

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # whose folders lie in that of the run
        folder = folder.parent
    with FileLock(folder / "documentation.lock"):
        if not (site := folder / "documentation" / "site").is_dir():
            built = documentation.built(tmp_path_factory.mktemp("documentation"))
            (folder / "documentation").mkdir()
            built.rename(site)
    return site


def run_apart(coroutine):
    """In a thread of its own: Playwright's event loop may be running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@contextmanager
def serve(
    models: Path,
    script: str = "app/main.py",
    cwd: Path = ROOT,
    port: int = 0,
    arguments: Sequence[str] = (),
    settings: Sequence[str] = (),
    **environment: str,
):
    """The address of a running app, as `streamlit run` starts it in the folder `cwd`, on a free
    port where none is given; only that an exception, of which users are told that there was one,
    stands in full on the page."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / script)]
    command += ["--server.port", str(port), "--server.headless", "true"]
    command += [*settings, "--client.showErrorDetails", "full"]
    command += ["--", "--models", str(models), *arguments]
    with serving(command, port, cwd=cwd, env=os.environ | environment) as address:
        yield address


@pytest.fixture(scope="session")
def app(models):
    with serve(models) as address:
        yield address
