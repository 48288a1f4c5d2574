"""Where rooms are stored: SQLite for the processes of one machine, Redis for several machines."""

import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, ParamSpec, TypeVar

from headlight.app.server.rooms import (
    BEGIN,
    LIFE,
    MOST_EVENTS,
    MOST_ROOMS,
    OF_STUDENTS,
    Event,
    NoRoom,
    Store,
    TooMuch,
    Unreachable,
    as_text,
    is_over,
)
from headlight.model.extras import missing

WHERE = "HEADLIGHT_ROOMS"  # a file, or redis://…; set by command.py
FILE = "headlight-rooms.sqlite"
LOOK = 0.05  # seconds between two looks at what other processes have written
PATIENCE = 1.0  # seconds until a store that waits says that nothing was written
STALE = 6.0  # seconds after which a process that says nothing has died: its students are elsewhere
SPARE = 2 * 24 * 3600  # seconds that a clock that somebody may set may be ahead of the right one
FULL = "This room is full. Please start another one."
MANY = "There are {} rooms already. End one, or try again later."
AWAY = "The rooms cannot be reached now. Please try again in a moment."
LIBRARIES = "redis", "sqlite3"
P = ParamSpec("P")
T = TypeVar("T")
SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
  at INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT, kind TEXT, body TEXT);
CREATE INDEX IF NOT EXISTS of_room ON events (room, at);
CREATE TABLE IF NOT EXISTS crowds (
  room TEXT, process TEXT, here TEXT, until REAL, PRIMARY KEY (room, process));
"""


def open_store(where: str = "") -> Store:
    """Raises OSError."""
    where = where or os.environ.get(WHERE, "")
    return RedisStore(where) if "://" in where else SQLiteStore(where or default_file())


def sweep() -> None:
    """Delete the rooms that ended while no process ran."""
    where = os.environ.get(WHERE, "")
    if "://" in where:
        return  # Redis does so by itself
    with suppress(OSError):  # whoever asks for a room is told
        if (Path(where) if where else _folder() / FILE).is_file():
            open_store().close()


def _folder() -> Path:
    """On Windows everybody has a folder of their own for such files."""
    folder = Path(tempfile.gettempdir())
    return folder / f"headlight-{os.getuid()}" if os.name == "posix" else folder


def default_file() -> Path:
    """In a folder that nobody else can read. Raises OSError if somebody else made it."""
    folder = _folder()
    if os.name != "posix":
        return folder / FILE
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise PermissionError(f"{folder} belongs to somebody else.")
    return folder / FILE


def _reaching(method: Callable[P, T]) -> Callable[P, T]:
    """A method of a store that raises Unreachable where its library raises an error of its own."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if type(error).__module__.partition(".")[0] in LIBRARIES:
                raise Unreachable(AWAY) from error
            raise

    return call


class SQLiteStore:
    """A file with a write-ahead log."""

    def __init__(self, file: str | Path):
        self.version, self.lock = -1, RLock()
        try:
            self.db = sqlite3.connect(
                file, timeout=10, isolation_level=None, check_same_thread=False
            )
            self.db.execute("PRAGMA journal_mode=WAL")
            # If the process is killed, nothing that it wrote is lost; after a power cut, the last
            # events may be.
            self.db.execute("PRAGMA synchronous=NORMAL")
            self.db.execute("PRAGMA secure_delete=ON")
            self.db.executescript(SCHEMA)
            for code in self._ended():
                self.end(code)
        except sqlite3.Error as error:
            raise OSError(f"{file}: {error}") from error

    def close(self) -> None:
        self.db.close()

    @_reaching
    def create(self, code: str, body: Mapping) -> bool:
        with self.lock:
            for old in self._ended():
                self.end(old)
            done = self.db.execute(
                "INSERT INTO events (room, kind, body) SELECT ?1, ?2, ?3 "
                "WHERE NOT EXISTS (SELECT 1 FROM events WHERE room = ?1) AND "
                "(SELECT count(*) FROM events WHERE kind = ?2) < ?4",
                (code, BEGIN, as_text(body), MOST_ROOMS),
            )
            if not done.rowcount and len(self._begun()) >= MOST_ROOMS:
                raise TooMuch(MANY.format(MOST_ROOMS))
        return bool(done.rowcount)

    def _begun(self) -> list[tuple[str, str]]:
        """The code and the first event of every room."""
        return self.db.execute("SELECT room, body FROM events WHERE kind = ?", (BEGIN,)).fetchall()

    def _ended(self) -> list[str]:
        return [room for room, body in self._begun() if self._is_over(json.loads(body))]

    @staticmethod
    def _is_over(beginning: Mapping[str, Any]) -> bool:
        over = is_over(beginning)
        return beginning["until"] + SPARE < time.time() if over is None else over

    @_reaching
    def append(self, code: str, kind: str, body: Mapping) -> None:
        with self.lock:
            done = self.db.execute(
                "INSERT INTO events (room, kind, body) SELECT ?1, ?2, ?3 "
                "WHERE (SELECT count(*) FROM events WHERE room = ?1) BETWEEN 1 AND ?4",
                (code, kind, as_text(body), _most(kind) - 1),
            )
            if not done.rowcount:
                self.since(code)
                raise TooMuch(FULL)

    @_reaching
    def since(self, code: str, at: int | None = None) -> list[Event]:
        with self.lock:
            rows = self.db.execute(
                "SELECT at, kind, body FROM events WHERE room = ? AND (at > ? OR kind = ?) "
                "ORDER BY at",
                (code, at or 0, BEGIN),
            ).fetchall()
        events = [Event(place, kind, json.loads(body)) for place, kind, body in rows]
        if not events or self._is_over(events[0].body):
            if events:
                self.end(code)
            raise NoRoom(code)
        return events

    @_reaching
    def crowd(self, code: str, process: str, here: Mapping[str, bool] | None) -> dict[str, int]:
        now = time.monotonic()
        with self.lock:
            if here is not None:
                self.db.execute(
                    "INSERT OR REPLACE INTO crowds SELECT ?, ?, ?, ? "
                    "WHERE EXISTS (SELECT 1 FROM events WHERE room = ?)",
                    (code, process, json.dumps(here), now + STALE, code),
                )
            rows = self.db.execute(
                "SELECT here FROM crowds WHERE room = ? AND until > ? AND until <= ?",
                (code, now, now + STALE),  # later ones are of before the machine was started
            ).fetchall()
        return total(json.loads(row[0]) for row in rows)

    @_reaching
    def end(self, code: str) -> None:
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            for table in ("events", "crowds"):
                self.db.execute(f"DELETE FROM {table} WHERE room = ?", (code,))
            self.db.execute("COMMIT")
            # What was deleted is still in this log. Where somebody reads it, the next end does it.
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @_reaching
    def wait(self) -> bool:
        """Looks at a counter that SQLite keeps for this: 6 µs each time."""
        for _ in range(int(PATIENCE / LOOK)):
            with self.lock:
                version = self.db.execute("PRAGMA data_version").fetchone()[0]
            before, self.version = self.version, version
            if version != before:
                return True
            time.sleep(LOOK)
        return False


class RedisStore:
    """A stream for each room, and a channel on which changes are announced."""

    def __init__(self, address: str):
        self.redis = _connect(address)
        self.channel = "headlight:changes"
        self.subscription: Any = None

    @staticmethod
    def _log(code: str) -> str:
        return f"headlight:room:{code}"

    @staticmethod
    def _crowd(code: str) -> str:
        return f"headlight:crowd:{code}"

    def close(self) -> None:
        self.redis.close()

    @_reaching
    def create(self, code: str, body: Mapping) -> bool:
        from redis import ResponseError

        if sum(1 for _ in self.redis.scan_iter(self._log("*"), 1000)) >= MOST_ROOMS:
            raise TooMuch(MANY.format(MOST_ROOMS))
        try:  # this place comes before every other: it is refused unless the stream is new
            self.redis.xadd(self._log(code), {BEGIN: as_text(body)}, id="0-1")
        except ResponseError:
            return False
        life = body["left"] - time.monotonic()
        self.redis.pexpire(self._log(code), int(1000 * (life + SPARE)))
        return True

    @_reaching
    def append(self, code: str, kind: str, body: Mapping) -> None:
        text, log = as_text(body), self._log(code)
        if self.redis.xlen(log) >= _most(kind):
            raise TooMuch(FULL)
        if self.redis.xadd(log, {kind: text}, nomkstream=True) is None:
            raise NoRoom(code)
        self.redis.publish(self.channel, code)

    @_reaching
    def since(self, code: str, at: str | None = None) -> list[Event]:
        with self.redis.pipeline() as pipe:
            pipe.xrange(self._log(code), count=1)
            pipe.xrange(self._log(code), f"({at or '0-1'}")
            first, rest = pipe.execute()
        events = [
            Event(place, kind, json.loads(body))
            for place, fields in [*first, *rest]
            for kind, body in fields.items()
        ]
        if not events or is_over(events[0].body):
            if events:
                self.end(code)
            raise NoRoom(code)
        return events

    @_reaching
    def crowd(self, code: str, process: str, here: Mapping[str, bool] | None) -> dict[str, int]:
        key, now = self._crowd(code), self.redis.time()[0]  # of one clock for all machines
        if here is not None and self.redis.exists(self._log(code)):
            with self.redis.pipeline() as pipe:
                pipe.hset(key, process, json.dumps([dict(here), now + STALE]))
                pipe.expire(key, LIFE)
                pipe.publish(self.channel, code)
                pipe.execute()
        noted = map(json.loads, self.redis.hvals(key))
        return total(people for people, until in noted if now < until <= now + STALE)

    @_reaching
    def end(self, code: str) -> None:
        self.redis.delete(self._log(code), self._crowd(code))
        self.redis.publish(self.channel, code)

    @_reaching
    def wait(self) -> bool:
        from redis import ConnectionError as Lost

        try:
            if self.subscription is None:  # also after a lost connection: anything may have changed
                self.subscription = self.redis.pubsub(ignore_subscribe_messages=True)
                self.subscription.subscribe(self.channel)
                return True
            return self.subscription.get_message(timeout=PATIENCE) is not None
        except Lost:
            self.subscription = None
            time.sleep(1)
            return False


def _connect(address: str) -> Any:
    """Raises OSError where there is no such package, or nothing answers."""
    try:
        import redis
    except ImportError:
        raise OSError(missing("redis", f"--rooms {address}")) from None
    try:
        connection = redis.Redis.from_url(address, decode_responses=True)
        connection.ping()
    except (redis.RedisError, ValueError) as error:
        raise OSError(f"--rooms {address}: {error}") from None
    return connection


def total(crowds: Iterable[Mapping[str, bool]]) -> dict[str, int]:
    """A student may have pages in several processes."""
    people: dict[str, bool] = {}
    for crowd in crowds:
        for student, follows in crowd.items():
            people[student] = people.get(student, False) or follows
    return {"here": len(people), "following": sum(people.values())}


def _most(kind: str) -> int:
    """Events of a room before one of this kind: whatever students do, the teacher has room."""
    return MOST_EVENTS * 3 // 4 if kind in OF_STUDENTS else MOST_EVENTS
