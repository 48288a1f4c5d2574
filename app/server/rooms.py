"""Rooms: a class that looks at one view and answers the same questions.

A room is a log of events, and its state is what they add up to, the same in every process. So the
order of the log decides what counts, such as an answer that comes as its question is closed.
"""

import hashlib
import hmac
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # no I; 25 ** 5 codes are more than 2 ** 23
LENGTH = 5
LIFE = 12 * 3600  # seconds
KEPT = 30 * 24 * 3600  # seconds that a browser keeps its cookies: its clock, too, may jump
MOST_ROOMS = 50
MOST_EVENTS = 20_000  # of a room
LARGEST_EVENT = 20_000  # characters
MOST_TRIES = 20  # of one student in one round: only a script changes its mind more often
MOST_SENT = 100  # files and views of one student
MOST_OFFERED = 8  # views that students offer, the latest

BEGIN, VIEW, ASK, ANSWER, CLOSE, AGAIN, SHOW, REVEAL, DONE, HAND_IN, OFFER = (
    "begin", "view", "ask", "answer", "close", "again", "show", "reveal", "done", "hand in",
    "offer",
)  # fmt: skip
OF_STUDENTS = ANSWER, HAND_IN, OFFER
OPEN, CLOSED, SHOWN, REVEALED = "open", "closed", "shown", "revealed"  # states of a question


class NoRoom(LookupError):
    """There is no such room, or it has ended."""


class Unreachable(OSError):
    """The store does not answer now. Why, in a sentence."""


class TooMuch(ValueError):
    """A limit is reached. Why, in a sentence."""


@dataclass(frozen=True)
class Event:
    """`at`: its place in the log, as the store counts."""

    at: Any
    kind: str
    body: Mapping[str, Any]


class Store(Protocol):
    """The log of every room, shared by all processes. Any thread may call it. What it does may
    raise Unreachable."""

    def create(self, code: str, body: Mapping) -> bool:
        """Begin a room; False if the code is taken. Raises TooMuch."""
        ...

    def append(self, code: str, kind: str, body: Mapping) -> None:
        """Raises NoRoom and TooMuch."""
        ...

    def since(self, code: str, at: Any = None) -> list[Event]:
        """The room's first event, then those after a place. Raises NoRoom."""
        ...

    def crowd(self, code: str, process: str, here: Mapping[str, bool] | None) -> dict[str, int]:
        """Note which students are here in a process and whether they follow, if given, and count
        those of all processes."""
        ...

    def end(self, code: str) -> None:
        """Delete a room with everything in it."""
        ...

    def close(self) -> None: ...

    def wait(self) -> bool:
        """Block until another process may have written something, or for a second; whether one
        may have."""
        ...


@dataclass
class Asked:
    """A question. `key`: its number and its round; only events with this key change it. `about`:
    what is asked, see shell/room.py. `rounds`: the answers of each round, by student. `truth`: what
    the model does."""

    key: tuple[int, int]
    about: Mapping[str, Any]
    state: str = OPEN
    rounds: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    tries: dict[str, int] = field(default_factory=dict)
    truth: Any = None

    @property
    def answers(self) -> dict[str, Any]:
        """Those of the present round."""
        return self.rounds[-1]

    def copy(self) -> "Asked":
        new = copy(self)
        new.rounds, new.tries = [*self.rounds[:-1], dict(self.answers)], dict(self.tries)
        return new

    def take(self, event: Event) -> bool:
        """Take an event; whether everybody's panel changes with it."""
        if tuple(event.body.get("key", ())) != self.key:
            return False
        match event.kind, self.state:
            case "answer", "open":
                student = event.body["student"]
                self.tries[student] = self.tries.get(student, 0) + 1
                if self.tries[student] <= MOST_TRIES:
                    self.answers[student] = event.body["value"]
                return False
            case "close", "open":
                self.state = CLOSED
            case "again", "closed" | "shown":
                self.key = self.key[0], self.key[1] + 1
                self.state, self.tries = OPEN, {}
                self.rounds.append({})
            case "show", "closed":
                self.state = SHOWN
            case "reveal", "closed" | "shown":
                self.state, self.truth = REVEALED, event.body["truth"]
            case _:
                return False
        return True


@dataclass
class RoomState:
    """The state of a room; nobody changes one that was handed out. `mark` counts the changes of
    everybody's panel. `view`: the address to which the class is led, "" if it is not, and `head`
    the head that it selects: a page that already shows the rest needs no more."""

    code: str
    teacher: str = ""  # digest of the teacher's key
    salt: str = ""  # with which students' tickets are signed
    until: float = 0.0
    at: Any = None  # the place of the last event
    view: str = ""
    head: Mapping[str, Any] | None = None
    mark: int = 0
    asked: int = 0  # questions so far
    question: Asked | None = None
    past: list[Asked] = field(default_factory=list)
    handed_in: dict[tuple[str, str], str] = field(default_factory=dict)  # student, lesson → file
    offered: dict[str, str] = field(default_factory=dict)  # student → address of a view
    sent: dict[str, int] = field(default_factory=dict)  # student → files and views so far

    @property
    def public(self) -> tuple:
        """What every page of the room must hear at once."""
        return self.view, self.mark

    def mark_for(self, is_teacher: bool) -> str:
        """Changes with what is drawn for the teacher, or for a student."""
        sent = sum(self.sent.values()) if is_teacher else 0
        return f"{self.mark}.{sent}.{'led' if self.view else ''}"

    def is_teacher(self, key: str) -> bool:
        return secrets.compare_digest(self.teacher, digest(key))

    def ticket(self) -> str:
        """A cookie for a new student. Only students who joined by the code have one."""
        name = secrets.token_urlsafe(16)
        return f"{name}.{self._signature(name)}"

    def is_student(self, ticket: str) -> bool:
        name, _, signature = ticket.partition(".")
        return hmac.compare_digest(self._signature(name).encode(), signature.encode())

    def _signature(self, name: str) -> str:
        return hmac.new(self.salt.encode(), name.encode(), "sha256").hexdigest()[:32]

    def copy(self) -> "RoomState":
        new = copy(self)
        new.question = self.question and self.question.copy()
        new.past, new.handed_in = list(self.past), dict(self.handed_in)
        new.offered, new.sent = dict(self.offered), dict(self.sent)
        return new

    def counts(self, kind: str, body: Mapping[str, Any]) -> bool:
        """Whether an event of a student would change something. Raises TooMuch."""
        student, question = body["student"], self.question
        if kind == ANSWER:
            if not question or question.state != OPEN or tuple(body["key"]) != question.key:
                return False
            if question.tries.get(student, 0) >= MOST_TRIES:
                raise TooMuch(f"You have answered {MOST_TRIES} times. The last of them counts.")
            return question.answers.get(student) != body["value"]
        if self.sent.get(student, 0) >= MOST_SENT:
            raise TooMuch(f"You have sent {MOST_SENT} files and views. No more can be sent.")
        if kind == OFFER:
            return self.offered.get(student) != body["address"]
        return self.handed_in.get((student, body["lesson"])) != body["file"]

    def take(self, event: Event) -> None:
        """Take an event. One that makes no sense changes nothing."""
        self.at, body = event.at, event.body
        match event.kind:
            case "begin":
                self.teacher, self.salt, self.until = body["teacher"], body["salt"], body["until"]
            case "view":
                self.view, self.head = body["address"], body.get("head")
            case "ask" | "done":
                if event.kind == DONE and not self.question:
                    return
                if self.question:
                    self.past.append(self.question)
                self.question = None
                if event.kind == ASK:
                    self.asked += 1
                    self.question = Asked((self.asked, 1), body["about"])
                self.mark += 1
            case "hand in":
                self.sent[body["student"]] = self.sent.get(body["student"], 0) + 1
                self.handed_in[body["student"], body["lesson"]] = body["file"]
            case "offer":
                self.sent[body["student"]] = self.sent.get(body["student"], 0) + 1
                self.offered.pop(body["student"], None)
                self.offered[body["student"]] = body["address"]
                for student in [*self.offered][:-MOST_OFFERED]:
                    del self.offered[student]
            case _:
                self.mark += bool(self.question and self.question.take(event))


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def as_code(typed: str) -> str:
    """A code as it was typed; "" if it can be none."""
    code = typed.strip().upper().replace("0", "O")
    return code if len(code) == LENGTH and set(code) <= set(LETTERS) else ""


def student_of(code: str, ticket: str) -> str:
    """Who a student is in a room: the same in each tab and after each return."""
    return digest(f"{code} {ticket}")[:16]


def beginning(key: str, life: float = LIFE) -> dict[str, Any]:
    """The first event of a room with this teacher's key."""
    return {
        "teacher": digest(key),
        "salt": secrets.token_urlsafe(24),
        "until": time.time() + life,
        "start": start_of_machine(),
        "left": time.monotonic() + life,
    }


@cache
def start_of_machine() -> str:
    """A name for it: until the next one nobody can set time.monotonic(), the same in every process.
    "" where the system has no such name."""
    file = Path("/proc/sys/kernel/random/boot_id")
    if file.is_file():
        return file.read_text().strip()
    if sys.platform != "darwin":
        return ""
    command = ["sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def is_over(beginning: Mapping[str, Any]) -> bool | None:
    """Whether the time of a room is over; None if this machine has been started again since, or it
    was another one: only clocks that somebody may set have gone on."""
    if not start_of_machine() or beginning.get("start") != start_of_machine():
        return None
    return beginning["left"] < time.monotonic()


def create(store: Store) -> tuple[str, str]:
    """A new room: its code, and the teacher's key. Raises TooMuch."""
    key = secrets.token_urlsafe(24)
    for _ in range(20):
        code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        if store.create(code, beginning(key)):
            return code, key
    raise TooMuch("No new room can be started now.")


def as_text(body: Mapping) -> str:
    """Raises TooMuch."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    if len(text) > LARGEST_EVENT:
        raise TooMuch("This is too long to send to the room.")
    return text


def state_after(events: Sequence[Event], code: str, room: RoomState | None = None) -> RoomState:
    """A room after further events, as Store.since gives them. A new room with the code of an old
    one begins anew."""
    begin, *news = events
    if room is None or room.teacher != begin.body["teacher"]:
        room, news = RoomState(code), list(events)
    elif not news:
        return room
    room = room.copy()
    for event in news:
        room.take(event)
    return room
