"""What the model's tests share: small random models and sentences."""

import gc
import itertools
import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import fields
from multiprocessing import forkserver
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from headlight.model import checkpoint, presets
from headlight.model.checkpoint import SHIPPED, Checkpoint
from headlight.model.masks import Masks
from headlight.model.probing.capture import view
from headlight.model.probing.run import Run
from headlight.model.probing.trace import Trace, trace
from headlight.model.tokenizer import Encoding, Tokenizer
from headlight.model.transformer import Transformer
from tests.devices import current, here, within

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds by the clock, for what waits for something
RESET_PEAK = Path("/proc/self/clear_refs")  # of Linux; see man 5 proc
# Processes for calls that hostile input may lead astray, forked from one that has imported what
# takes long and has computed nothing, so that no lock of PyTorch's threads is copied while held.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__, "gguf", "torch._dynamo"])
PRESETS = ["paper", "pre_norm"]  # the encoder-decoders
SIZES = dict(vocab_size=53, d_model=24, n_heads=4, d_ff=40, dropout=0.1, max_length=40)
DEPTHS = dict(n_encoder_layers=2, n_decoder_layers=3)
ALL_MASKS = [Masks(*switches) for switches in itertools.product([True, False], repeat=4)]
CHECKPOINTS = sorted(path.parent for path in SHIPPED.glob("*/config.json"))


def in_short(values: Iterable, *chosen) -> list:
    """For parametrize: the chosen values always, the others in `make test-long`."""
    return [one if one in chosen else pytest.param(one, marks=pytest.mark.long) for one in values]


def random_model(preset: str = "paper", seed: int = 0, **sizes) -> Transformer:
    """A model in eval mode. Norms and biases too are random: at their initial values a
    mistake in them would not show."""
    torch.manual_seed(seed)
    model = presets.build(preset, **SIZES | depths(preset) | sizes).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float("norm" in name and "weight" in name), std=0.2)
    return here(model.requires_grad_(False))


def load(name) -> Checkpoint:
    """As checkpoint.load, on the device under test."""
    loaded = checkpoint.load(name)
    here(loaded.model)
    return loaded


def depths(preset: str) -> dict[str, int]:
    """DEPTHS, of the stacks that a preset has."""
    config = presets.PRESETS[preset].config
    return {f.name: DEPTHS[f.name] for f in fields(config) if f.name in DEPTHS and f.default}


def run_of(model: nn.Module, src: Encoding, tgt: Encoding, masks=Masks(), pad_to: int = 0) -> Run:
    """The run of a model on a pair, or on the source where it reads one text."""
    return Run((src, tgt)[: len(model.sides())], masks, pad_to)


def traced(model: nn.Module, *pair: Encoding, masks=Masks(), pad_to: int = 0) -> Trace:
    return trace(model, run_of(model, *pair, masks, pad_to))


def random_ids(*lengths: int, vocab_size: int = 53, generator=None) -> Tensor:
    """One random sentence per length, padded at the end to the longest: (batch, length)."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, vocab_size, (length,), generator=generator)
    return here(ids)


def encoding(ids: Tensor) -> Encoding:
    """One sentence of ids under made-up tokens."""
    ids = tuple(ids.flatten().tolist())
    return Encoding(ids, tuple(map(str, ids)), tuple((i, i + 1) for i in range(len(ids))))


def two_runs(model: nn.Module, **how) -> tuple[Run, Run]:
    """Runs of other texts of the same lengths, which the model reads."""
    texts = ([5, 6, 7, 8, 9, 10], [11, 12, 13, 14]), ([15, 6, 17, 8, 9, 3], [11, 18, 4, 14])
    one, two = (tuple(encoding(torch.tensor(ids)) for ids in pair) for pair in texts)
    return tuple(Run(some[: len(model.sides())], **how) for some in (one, two))


def hooks(model: nn.Module) -> int:
    """Forward hooks and pre-hooks on a model and all its parts."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def attentions(model: Transformer) -> Iterator[tuple[str, int, nn.Module]]:
    """Every attention of a model: kind, layer, module."""
    # By hand, as a check of model.sites().
    for i, layer in enumerate(model.encoder.layers):
        yield "encoder", i, layer.self_attn
    for i, layer in enumerate(model.decoder.layers):
        yield "decoder", i, layer.self_attn
        yield "cross", i, layer.cross_attn


def tiny_tokenizer(vocab_size: int = 320) -> Tokenizer:
    """Trained on made-up lines."""
    lines = ["The dog sees the dog.", "A dog and the cat", "Ein Hund sieht die Katze, oder?"]
    return Tokenizer.train(lines * 3, vocab_size)


def assert_close(ours, theirs) -> None:
    """As torch.testing.assert_close, and as close as may be asked of the device."""
    device = current()
    loose = {} if device.type == "cpu" else dict(rtol=within(0), atol=within(0))
    torch.testing.assert_close(ours, theirs, **loose)


def max_difference(ours, theirs) -> float:
    return (ours - theirs).abs().max().item()


def check_view(model: nn.Module) -> None:
    """That a view has the same parts, and that nothing in it leads to a module of the model or to
    what one of them may change."""
    own = view(model)
    parts, theirs = ([(n, type(m)) for n, m in one.named_modules()] for one in (own, model))
    assert parts == theirs and str(own) == str(model)
    assert list(own.state_dict()) == list(model.state_dict())
    kept_apart = {id(module): module for module in model.modules()}
    for module in model.modules():
        containers = (v for v in vars(module).values() if isinstance(v, dict | set | list))
        kept_apart |= {id(one): one for one in containers}
    found, seen = [own], set()
    while found:
        one = found.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType | torch.Tensor):
            continue
        seen.add(id(one))
        assert id(one) not in kept_apart, one
        found += gc.get_referents(one)


def refusals(
    kind: type[Exception], function: Callable, cases: Mapping[str, tuple]
) -> Iterator[tuple[str, str]]:
    """For each case, a name → arguments of a call under limits: its name and what the error of this
    kind says in which the call ends."""
    for name, arguments in cases.items():
        try:
            under_limits(function, *arguments)
        except kind as error:
            message = str(error)
        else:
            pytest.fail(f"{name} is not refused")
        yield name, message


def under_limits(function: Callable, *arguments, seconds: int = 10, megabytes: int = 200) -> None:
    """Calls the function in a process under limits and raises what it raises; AssertionError where
    it takes more seconds of processor time, or its memory grows by more. Calls share a process, and
    its start; after one that was ended there is a new one."""
    global _pool
    with _importable():
        _pool = _pool or ProcessPoolExecutor(1, PROCESSES, _limit)
        call = _pool.submit(_limited, seconds, megabytes, function, arguments)
    try:
        call.result()
    except BrokenProcessPool:
        _pool = None
        raise AssertionError(f"The call was ended, after {seconds} s or by itself.") from None


def forked(function: Callable, *arguments) -> multiprocessing.Process:
    """Calls the function in a new process, without limits, and does not wait for it."""
    child = PROCESSES.Process(target=function, args=arguments, daemon=True)
    with _importable():
        child.start()
    return child


_pool: ProcessPoolExecutor | None = None


@contextmanager
def _importable() -> Iterator[None]:
    """A new process finds our modules wherever a test has gone, and does not run the main module
    first, which may be a page of the app."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        forkserver.ensure_running()
        yield


def _limit() -> None:
    torch.set_num_threads(1)
    for limit, most in ((resource.RLIMIT_AS, 4e9), (resource.RLIMIT_FSIZE, 1e9)):  # bytes
        resource.setrlimit(limit, (int(most), int(most)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limited(seconds: int, megabytes: int, function: Callable, arguments: tuple) -> None:
    start = time.process_time()
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(start) + seconds, most))
    signal.alarm(PATIENCE)  # for what waits and takes no processor time
    if RESET_PEAK.exists():
        RESET_PEAK.write_text("5")
    before = _peak()
    try:
        function(*arguments)
    finally:
        signal.alarm(0)
        taken, grown = time.process_time() - start, (_peak() - before) / 2**20
        assert taken <= seconds, f"the call took {taken:.1f} s"
        assert grown <= megabytes, f"the call took {grown:,.0f} MB"


def _peak() -> int:
    """Bytes since the last reset."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def change_tensors(file: Path, change: Callable[[dict], object]) -> None:
    """Change what a file of safetensors holds."""
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def panicking(folder: Path) -> None:
    """A tokenizer whose normaliser is cut off: the library panics, which is no Exception."""
    file = folder / "tokenizer.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    values["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "YWJj"}
    file.write_text(json.dumps(values), encoding="utf-8")
