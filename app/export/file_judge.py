"""Judges a student's file each time it is saved: `headlight check FILE.py`, or a whole model in it,
`headlight check FILE.py:NAME`.

The file's code never runs in the app. A child process imports PyTorch and our parts once, and forks
for each save: what the code does to memory, modules or threads ends with that fork. The fork has
limits on time, memory and the size of files. Where Linux allows it, its process numbers and its
network are its own: it can signal no other process and reaches no network. Whatever it starts ends
with it. Systems without fork judge in the child itself, without limits but
that of time.
"""

import ctypes
import inspect
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import IO, Any, NoReturn

import numpy as np
import psutil
import torch

import headlight
from headlight.app.components.matrix import Matrix
from headlight.app.export import check, checkup
from headlight.model.checking.calling import Outcome, said, where
from headlight.model.checking.in_model import MASK_PARTS, REPLACEABLE
from headlight.model.checking.parts import PARTS
from headlight.model.checking.verdict import CANNOT_TELL, NOT_RUNNING, NOT_YET, RIGHT, STATES
from headlight.model.checking.whole.result import LOOK, WRONG, Checkup, Finding
from headlight.model.checkpoint import Checkpoint, load
from headlight.model.messages import short
from headlight.model.probing.trace import CannotRead
from headlight.model.transformer import Scores

MODEL = "en-fr"
SECONDS, SECONDS_OF_MODEL = 10, 60  # by the clock, for one judgement
LONGEST_START, MOST_STARTS = 120, 3  # seconds, on a busy machine; attempts
MORE_BYTES = 2 * 10**9  # of memory, beyond that of the child
FILE_BYTES, LARGEST_SOURCE = 50_000_000, 1_000_000
ENDING = 1.0  # seconds that a fork may take to end after its last word
MOST_ANSWERED = 4_000_000  # bytes
PRINTED = 1500  # characters that are shown of what the code prints
INTERVAL = 0.05  # seconds between two looks at the file
CAN_FORK = hasattr(os, "fork")
MOST_TRIALS, MOST_NAMED = 40, 8
ALL_STATES = (*STATES, WRONG, LOOK, CANNOT_TELL)
YOURS = "yours"  # the module that the file is
ALSO = {"MultiHeadAttention": "multi_head", "MultiHead": "multi_head"}
NEVER_JUDGED = "Your code ended the program before it was judged. Does it call exit?"
# Of Linux: sched.h, prctl.h.
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass(frozen=True)
class JudgedPart:
    """A part of the file, or a trial of its model: its `state` (see Verdict, Finding), what is said
    of it, line by line, its `line` in the file (0: unknown), its picture, and its `lesson`."""

    name: str
    state: str
    said: tuple[str, ...]
    line: int
    matrices: tuple[Matrix, ...]
    lesson: str = ""

    @property
    def ok(self) -> bool:
        return self.state == RIGHT


@dataclass(frozen=True)
class FileAnswer:
    """All that is known of the file as it was last saved. `trials`: of its model, the worst first,
    which took so many `seconds`; `in_model`: what its parts do in a trained model; `error`: why
    there is no more; `printed`: by the code."""

    parts: tuple[JudgedPart, ...] = ()
    in_model: str = ""
    error: str = ""
    printed: str = ""
    is_done: bool = False
    trials: tuple[JudgedPart, ...] = ()
    seconds: float = 0.0


class FileJudge:
    """Has a file, and the model in it that has a `name`, judged whenever it changes, until
    `close()`. `answer` is the last one; while a
    new one is made it is that of the save before, and `since` says since when, in seconds."""

    def __init__(self, file: Path, model: str = MODEL, name: str = ""):
        self.file, self.model, self.name, self.answer = file, model, name, FileAnswer()
        self.seconds = SECONDS_OF_MODEL if name else SECONDS
        self.since, self.is_begun, self.starts = 0.0, False, 0
        self.judged: tuple[int, ...] = ()  # what is known of the file as it was last judged
        self.child: subprocess.Popen[bytes] | None = None
        self.closing = Event()
        Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        self._end_child()

    def _watch(self) -> None:
        while not self.closing.wait(INTERVAL):
            try:
                stat = self.file.stat()
            except OSError:
                if self.judged:
                    self.judged = ()
                    self.answer = _failed(f"{self.file.name} is not there any more.")
                continue
            # Some editors replace the file.
            saved = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if saved != self.judged:
                self.judged, self.since, self.is_begun = saved, time.monotonic(), False
                self._ask()
            elif self.since and time.monotonic() - self.since > self._patience():
                self._end_child()
                self.answer, self.since = _failed(_too_long(self.seconds)), 0.0

    def _patience(self) -> float:
        """Beyond the limit that the child keeps to itself, where it can fork."""
        return self.seconds + 5 * CAN_FORK if self.is_begun else LONGEST_START

    def _ask(self) -> None:
        if self.child is None:
            self.starts += 1
            self.child = _start(self.file, self.model, self.name)
            Thread(target=self._read, args=(self.child,), daemon=True).start()
        assert self.child.stdin is not None
        with suppress(OSError):  # it has ended, as `_read` sees
            self.child.stdin.write(b"\n")
            self.child.stdin.flush()

    def _read(self, child: "subprocess.Popen[bytes]") -> None:
        new, answers = FileAnswer(), child.stdout
        assert answers is not None
        while line := answers.readline(MOST_ANSWERED):
            try:
                found = json.loads(line)
                if "begin" in found:
                    new, self.since = FileAnswer(), time.monotonic()
                    self.is_begun, self.starts = True, 0
                    continue
                new = _with(new, found)
            # The code that is judged may have written it.
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                new = replace(new, error="Your code wrote into our answer.", is_done=True)
            if new.parts or new.trials or new.error or new.is_done:
                self.answer = new
            if new.is_done:
                self.since = 0.0
                print(_in_terminal(self.file.name, new), flush=True)
        child.wait()
        if child is not self.child or self.closing.is_set():
            return
        self.child = None
        if self.since and not self.is_begun and self.starts < MOST_STARTS:
            self.judged = ()  # again, by another
        elif self.since:
            self.answer, self.since = _failed("The process that judges your code has ended."), 0.0

    def _end_child(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        assert child.stdin is not None
        with suppress(OSError):
            child.stdin.close()  # by which it ends all that it started
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _start(file: Path, model: str, name: str) -> "subprocess.Popen[bytes]":
    # -P: no file beside the student's is taken for a module of ours.
    command = [sys.executable, "-P", "-m", "headlight.app.export.file_judge"]
    folders = [str(Path(headlight.__file__).parents[1]), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    return subprocess.Popen(
        [*command, str(file), model, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip


def _failed(error: str) -> FileAnswer:
    return FileAnswer(error=error, is_done=True)


def _in_terminal(name: str, answer: FileAnswer) -> str:
    """A line for each part, for each trial that is not right, and an error. What a student's code
    makes of them moves no cursor."""
    told = [*(trial for trial in answer.trials if not trial.ok), *answer.parts]
    lines = [f"{part.name}: {part.state}. {' '.join(part.said)}" for part in told]
    lines += [f"{sum(trial.ok for trial in answer.trials)} trials right."] * bool(answer.trials)
    lines += [line for line in (answer.in_model, answer.error) if line]
    plain = ("".join(filter(str.isprintable, line)) for line in lines)
    return "\n  ".join([f"{name}, {time.strftime('%H:%M:%S')}", *plain])


def _with(answer: FileAnswer, found: Mapping[str, Any]) -> FileAnswer:
    """The answer and a line of the child's more. Raises KeyError, TypeError and ValueError."""
    if "part" in found:
        return replace(answer, parts=(*answer.parts, _part(found))[: len(PARTS)])
    if "trials" in found:
        trials = tuple(map(_part, found["trials"][:MOST_TRIALS]))
        return replace(answer, trials=trials, seconds=float(found["seconds"]))
    if "in_model" in found:
        return replace(answer, in_model=_text(found["in_model"], 1000))
    error, printed = _text(found["end"], 600), _text(found["printed"], PRINTED)
    if not answer.parts and not answer.trials and not error:
        error = NEVER_JUDGED
    return replace(answer, error=error, printed=printed, is_done=True)


def _part(found: Mapping[str, Any]) -> JudgedPart:
    return JudgedPart(
        _text(found["part"], 40),
        ALL_STATES[ALL_STATES.index(found["state"])],
        tuple(_text(line, 500) for line in found["said"][:6]),
        int(found["line"]),
        tuple(map(_matrix, found["matrices"][:3])),
        _text(found.get("lesson", ""), 40),
    )


def _text(value: object, most: int) -> str:
    return str(value)[:most].encode("utf-8", "replace").decode()


PLAIN = Matrix("", np.zeros((1, 1)), "", "")  # of whose types the values of others are


def _matrix(found: Mapping[str, Any]) -> Matrix:
    values = np.array(found["values"], np.float32)
    if values.ndim != len(PLAIN.values.shape) or max(values.shape) > check.MOST_SHOWN:
        raise ValueError("no matrix")
    options: dict[str, Any] = {}
    for name in found.keys() & vars(PLAIN).keys() - {"values", "choice"}:
        plain = getattr(PLAIN, name)
        if isinstance(plain, tuple):
            options[name] = tuple(_text(x, 80) for x in found[name][: check.MOST_SHOWN])
        else:
            options[name] = _text(found[name], 80) if plain == "" else type(plain)(found[name])
    return replace(PLAIN, values=values, **options)


# The child


def serve(file: Path, model: str, name: str = "") -> None:
    """Judges the file for every line of the standard input, until it ends. A line that comes
    meanwhile ends what it is at: the file is another one by now."""
    torch.set_num_threads(1)
    _set(PR_SET_CHILD_SUBREAPER, 1)  # what a fork leaves behind is ours
    for part in PARTS.values():
        part.alone()
    translator = load(model) if model else None
    # What this imports late is there before the first fork.
    check.verdict("scores", Scores().forward, on=model)
    count = 0
    while os.read(0, 1 << 16):
        count += 1
        _say({"begin": count})
        job = lambda say: judge(file, model, translator, say, name)  # noqa: E731
        seconds = SECONDS_OF_MODEL if name else SECONDS
        end = _forked(file, job, seconds=seconds) if CAN_FORK else _here(job)
        if end:
            _say(end)


def _set(what: int, value: int) -> None:
    """Of this process, where the system is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _say(found: Mapping[str, Any]) -> None:
    _write_all(1, json.dumps(found).encode() + b"\n")


def _write_all(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


Say = Callable[[Mapping[str, Any]], None]
Job = Callable[[Say], None]


def apart(file: Path, job: Job, seconds: int) -> tuple[list[Mapping[str, Any]], str]:
    """All that a job says that runs the file's code, in a process of its own with the limits of
    this module and so many seconds; and why it says no more, or ""."""
    torch.set_num_threads(1)
    _set(PR_SET_CHILD_SUBREAPER, 1)
    said: list[Mapping[str, Any]] = []

    def hear(line: bytes) -> None:
        with suppress(ValueError, RecursionError):  # the file's code may have written it
            said.append(dict(json.loads(line)))

    end = _forked(file, job, hear, None, seconds) if CAN_FORK else _here(job, said.append)
    return said, end["end"]


def _write_line(line: bytes) -> None:
    _write_all(1, line + b"\n")


def _here(job: Job, say: Say = _say) -> dict[str, str]:
    """Without a fork. What the code prints goes nowhere: standard output is our answer."""
    with open(os.devnull, "w") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere
        try:
            job(say)
        finally:
            sys.stdout = kept
    return {"end": "", "printed": ""}


def _forked(
    file: Path, job: Job, say: Callable[[bytes], None] = _write_line, asks: int | None = 0,
    seconds: int = SECONDS,
) -> dict[str, str]:  # fmt: skip
    """Does a job in a fork, and says what it says, until it ends, or has to. The last line; empty
    where another save, a line on `asks`, has ended it."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as traces:
        most = psutil.Process().memory_info().vms + MORE_BYTES  # in the fork it has another number
        pid = os.fork()
        if not pid:
            os.close(reading)
            _guarded(file, job, most, seconds, writing, printed, traces)
        os.close(writing)
        ends, asked_again, rest, count = time.monotonic() + seconds, False, b"", 0
        heard = [reading] if asks is None else [reading, asks]
        while (left := ends - time.monotonic()) > 0:
            ready = select.select(heard, [], [], left)[0]
            if asked_again := asks in ready:
                break
            chunk = os.read(reading, 1 << 16) if ready else b""
            count += len(chunk)
            if not chunk or count > MOST_ANSWERED:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                say(line)
        is_late = time.monotonic() >= ends
        os.close(reading)
        is_over = not is_late and not asked_again and count <= MOST_ANSWERED
        status = _end_children(pid, ENDING if is_over else 0.0)
        if asked_again:
            return {}
        end = ""
        if is_late:
            end = _too_long(seconds) + _last_line(file, traces)
        elif is_over and status:
            end = _ended_by(status)
        elif count > MOST_ANSWERED or rest:
            end = "Your code wrote into our answer."
        printed.seek(0)
        text = printed.read(4 * PRINTED).decode("utf-8", "replace")
        return {"end": end, "printed": text[:PRINTED]}


def _too_long(seconds: int = SECONDS) -> str:
    return f"Your code ran longer than {seconds} seconds and was stopped. Does a loop never end?"


def _ended_by(status: int) -> str:
    if status > 128:
        with suppress(ValueError):
            name = signal.Signals(status - 128).name
            return f"Your code ended Python itself ({name}), so no line is known."
    return NEVER_JUDGED


def _last_line(file: Path, traces: IO[bytes]) -> str:
    """Where the fork stood shortly before it was stopped, as faulthandler wrote it."""
    traces.seek(0)
    text = traces.read(1 << 16).decode("utf-8", "replace")
    found = re.search(rf'File "{re.escape(str(file))}", line (\d+)', text)
    return f" It was at line {found[1]}." if found else ""


def _end_children(pid: int, patience: float) -> int:
    """Wait so many seconds for the fork to end, then kill it and all that it left behind, which is
    ours where the system says so. Its exit status; 128 more than a signal that ended it."""
    until = time.monotonic() + patience
    while not (found := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(0.002)
    status = os.waitstatus_to_exitcode(found[1]) if found[0] else -signal.SIGKILL
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    us = psutil.Process()
    while children := us.children(recursive=True):
        for child in children:
            with suppress(psutil.Error):
                child.kill()
        for child in us.children():
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
    return 128 - status if status < 0 else status


def _guarded(
    file: Path, job: Job, memory: int, seconds: int, writing: int, printed: IO[bytes],
    traces: IO[bytes],
) -> NoReturn:  # fmt: skip
    """The fork. Where it can be the first of process numbers of its own, it is so in a fork once
    more, and all of these end with it."""
    try:
        os.setpgid(0, 0)
        _set(PR_SET_PDEATHSIG, signal.SIGKILL)
        if sys.platform == "linux":
            apart = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
            if not ctypes.CDLL(None).unshare(apart) and (inner := os.fork()):
                os.close(writing)
                status = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
                os._exit(128 - status if status < 0 else status)
            _set(PR_SET_PDEATHSIG, signal.SIGKILL)
        _limit(memory, seconds, traces)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, to in ((nothing, 0), (printed.fileno(), 1), (printed.fileno(), 2)):
            os.dup2(descriptor, to)
        os.chdir(file.parent)
        job(lambda found: _write_all(writing, json.dumps(found).encode() + b"\n"))
        with suppress(Exception):
            sys.stdout.flush()
    except MemoryError:
        _write_all(writing, json.dumps(_of(file.name, _memory())).encode() + b"\n")
    except BaseException:
        os._exit(1)
    os._exit(0)


def _memory() -> str:
    return f"Your code needs more than {MORE_BYTES / 1e9:.0f} GB of memory."


def _limit(memory: int, seconds: int, traces: IO[bytes]) -> None:
    import faulthandler
    import resource

    # By a signal: `dump_traceback_later` waits for the thread of one that ran before the fork.
    faulthandler.register(signal.SIGALRM, file=traces)
    signal.setitimer(signal.ITIMER_REAL, seconds - 1)
    limits = {
        "RLIMIT_AS": memory,
        "RLIMIT_CPU": seconds + 1,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": FILE_BYTES,
    }
    for name, most in limits.items():
        with suppress(AttributeError, ValueError, OSError):  # macOS refuses some
            resource.setrlimit(getattr(resource, name), (most, most))


def run_file(file: Path, say: Say) -> dict[str, Any] | None:
    """All names of a file, which runs. None where it fails, and why is said."""
    module = ModuleType(YOURS)
    module.__file__ = str(file)
    sys.modules[YOURS] = module
    sys.path.insert(0, str(file.parent))
    try:
        with file.open("rb") as source:
            text = source.read(LARGEST_SOURCE + 1)
        if len(text) > LARGEST_SOURCE:
            say(_of(file.name, "Your file has more than 1 MB, which is no exercise."))
            return None
        exec(compile(text, str(file), "exec"), vars(module))
    except BaseException as error:
        say(_of(file.name, *sentence_of(error, file)))
        return None
    return vars(module)


def judge(file: Path, model: str, translator: Checkpoint | None, say: Say, name: str = "") -> None:
    """Runs a file, and says of the model that has this name, if any, and of each part in it what is
    to be said."""
    found = run_file(file, say)
    if found is None:
        return
    checked = check_up(found, name, {}, file, say) if name else None
    if checked is not None:  # one with a fault is false
        trials = [_trial(each) for each in checked.by_state]
        say({"trials": trials, "seconds": checked.seconds})
    functions = dict(_functions(found))
    if not functions and not name:
        names = ", ".join(PARTS)
        say(_of(file.name, f"No function has one of the names that can be judged: {names}."))
    ready = {}
    for name, function in functions.items():
        try:
            verdict = check.verdict(name, function, on=model)
            if verdict.name not in NOT_RUNNING:
                ready[name] = function
            lines = str(verdict).split("\n")
            say(
                {
                    "part": name,
                    "state": verdict.state,
                    "said": [lines[0].partition(". ")[2], *lines[1:]],
                    "line": verdict.line,
                    "matrices": [_plain(matrix) for matrix in check.matrices_of(verdict)],
                }
            )
        except MemoryError:
            say(_of(name, _memory()))
        except BaseException as error:
            say(_of(name, *sentence_of(error, file)))
    if translator and (sentence := _in_model(translator, ready, file)):
        say({"in_model": sentence})


def check_up(
    found: dict[str, Any], name: str, how: Mapping[str, Any], file: Path, say: Say
) -> Checkup | None:
    """Tries a model among the names of a file, or what makes one. `how`: as `checkup` takes it.
    None where there is none, or it fails, and why is said."""
    try:
        if name not in found:
            own = [key for key, value in found.items() if _is_model(value)][:MOST_NAMED]
            there = f"It has {', '.join(own)}." if own else "It has no model."
            say(_of(file.name, f"There is no {short(name)!r} in {file.name}. {there}"))
            return None
        value = found[name]
        value = value() if inspect.isclass(value) or inspect.isfunction(value) else value
        given = value if isinstance(value, dict) else {"model": value}
        return checkup.checkup(**{**how, **given})
    except MemoryError:
        say(_of(file.name, _memory()))
    except BaseException as error:
        say(_of(file.name, *sentence_of(error, file)))
    return None


def _is_model(value: Any) -> bool:
    """Or a class of the file that makes one."""
    if inspect.isclass(value):
        return issubclass(value, torch.nn.Module) and value.__module__ == YOURS
    return isinstance(value, torch.nn.Module)


def _trial(finding: Finding) -> dict[str, Any]:
    matrices = [_plain(matrix) for matrix in checkup.matrices_of(finding)]
    return {"part": finding.trial, "state": finding.state, "said": finding.sentences(), "line": 0,
            "matrices": matrices, "lesson": finding.lesson}  # fmt: skip


def _of(name: str, sentence: str, line: int = 0) -> dict[str, Any]:
    return {"part": name, "state": NOT_YET, "said": [sentence], "line": line, "matrices": []}


def sentence_of(error: BaseException, file: Path) -> tuple[str, int]:
    """What an exception is in words, and its line."""
    line, text, _ = where(error, str(file))
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return f"Line {line}: it ends the program ({type(error).__name__}). ({text})", line
    return said(Outcome(error=error, line=line, text=text)), line


def _functions(found: Mapping[str, Any]) -> Iterator[tuple[str, Callable]]:
    """Those of a file that can be judged, in the order of PARTS; what it imports is not its own."""
    for part in PARTS:
        names = (part, *(name for name, other in ALSO.items() if other == part))
        for name in names:
            value = found.get(name)
            if callable(value) and getattr(value, "__module__", YOURS) == YOURS:
                yield part, value
                break


def _plain(matrix: Matrix) -> dict[str, Any]:
    values = np.asarray(matrix.values, np.float64).tolist()
    return vars(matrix) | {"values": values, "rows": [*matrix.rows], "columns": [*matrix.columns]}


def _in_model(translator: Checkpoint, functions: Mapping[str, Callable], file: Path) -> str:
    """What the model makes of a sentence with these parts in it; "" where none can be."""
    parts = {n: f for n, f in functions.items() if n in (*REPLACEABLE, *MASK_PARTS)}
    parts.pop("encoder_layer", None)  # of the paper: the shipped translators norm before
    if "attention" in parts:  # which computes its own
        parts = {n: f for n, f in parts.items() if n not in ("scores", "softmax")}
    if not parts:
        return ""
    try:
        return check.in_trained_model(translator, parts)[1]
    except (CannotRead, ValueError, TypeError) as error:
        return str(error)
    except BaseException as error:
        return sentence_of(error, file)[0]


if __name__ == "__main__":
    serve(Path(sys.argv[1]), *sys.argv[2:])
