"""Laws of rooms: of the log and of its two stores."""

import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headlight.app.server import room_stores, rooms
from headlight.app.server.room_stores import RedisStore, SQLiteStore
from headlight.app.server.rooms import (
    ANSWER,
    ASK,
    CLOSE,
    DONE,
    REVEAL,
    SHOW,
    VIEW,
    Event,
    NoRoom,
    RoomState,
    Store,
    TooMuch,
    state_after,
)
from tests.conftest import ROOT

CODE, OTHER, SECRET = "KAFEN", "ZZZZZ", "sentinel-of-an-answer"
ABOUT = {"kind": "choose", "text": "Which?", "choices": ["red", "car", SECRET]}
BEGINNING = Event(0, "begin", rooms.beginning("key"))


def begin(key: str = "key", life: float = 60) -> dict:
    return rooms.beginning(key, life)


def state(store: Store, code: str = CODE) -> RoomState:
    return state_after(store.since(code), code)


def fold(log: list[Event]) -> RoomState:
    return state_after([BEGINNING, *log], CODE)


# The log

KEYS = st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)])  # mostly the first round
EVENTS = st.one_of(
    st.tuples(st.just(ASK), st.just({"about": ABOUT})),
    st.tuples(
        st.just(ANSWER),
        st.fixed_dictionaries(
            {"key": KEYS, "student": st.sampled_from("abc"), "value": st.integers(0, 2)}
        ),
    ),
    st.tuples(
        st.sampled_from([CLOSE, CLOSE, "again", SHOW, DONE]), st.fixed_dictionaries({"key": KEYS})
    ),
    st.tuples(st.just(REVEAL), st.fixed_dictionaries({"key": KEYS, "truth": st.just("red")})),
    st.tuples(st.just(VIEW), st.fixed_dictionaries({"address": st.sampled_from(["", "/a", "/b"])})),
)
LOGS = st.lists(EVENTS, max_size=30).map(  # the first thing is a question
    lambda some: [Event(i, *each) for i, each in enumerate([(ASK, {"about": ABOUT}), *some], 1)]
)


@given(LOGS)
def test_an_answer_counts_if_and_only_if_its_round_was_open(log):
    """By a second, dumber reading of the log."""
    asked, key, state_now, answers = 0, None, "", {}
    for event in log:
        concerned = key is not None and event.body.get("key") == key
        match event.kind:
            case "ask":
                asked += 1
                key, state_now, answers = (asked, 1), "open", {}
            case "done":
                key = None
            case "answer" if concerned and state_now == "open":
                answers[event.body["student"]] = event.body["value"]
            case "close" if concerned and state_now == "open":
                state_now = "closed"
            case "show" if concerned and state_now == "closed":
                state_now = "shown"
            case "reveal" if concerned and state_now in ("closed", "shown"):
                state_now = "revealed"
            case "again" if concerned and state_now in ("closed", "shown"):
                key, state_now, answers = (key[0], key[1] + 1), "open", {}
        question = fold(log[: log.index(event) + 1]).question
        assert (question.key if question else None) == key
        if key:
            assert (question.state, question.answers) == (state_now, answers)


@given(LOGS)
def test_an_answer_that_comes_twice_counts_once(log):
    once = fold(log)
    again = fold([event for event in log for _ in range(1 + (event.kind == ANSWER))])
    if once.question:
        assert once.question.rounds == again.question.rounds
    assert once.public == again.public


@given(LOGS, st.integers(0, 30))
def test_a_log_read_in_two_parts_gives_the_same_room(log, cut):
    part = fold(log[:cut])
    before = part.copy()
    assert state_after([BEGINNING, *log[cut:]], CODE, part) == fold(log)
    assert part == before  # nobody changes a room that was handed out


@given(LOGS)
def test_answers_call_nobody_but_the_teacher(log):
    room = fold([])
    for event in log:
        after = state_after([BEGINNING, event], CODE, room)
        if event.kind == ANSWER:
            assert after.public == room.public
        assert after.mark >= room.mark
        room = after


def test_a_student_who_answers_again_and_again_is_heard_no_more():
    answers = [Event(i, ANSWER, {"key": (1, 1), "student": "s", "value": i}) for i in range(1, 99)]
    assert fold([Event(0, ASK, {"about": ABOUT}), *answers]).question.answers == {
        "s": rooms.MOST_TRIES
    }


@example(" kaf0n ")
@given(st.text("AOIkf01 -éß", max_size=8))
def test_codes_as_they_are_typed(typed):
    """In any case; there are many, of letters that are not taken for each other."""
    code = rooms.as_code(typed)
    assert code == "" or re.fullmatch(f"[{rooms.LETTERS}]{{{rooms.LENGTH}}}", code)
    assert rooms.as_code(code) == code and (code == "KAFON" or typed != " kaf0n ")
    assert len(rooms.LETTERS) ** rooms.LENGTH >= 2**23 and not {*"I01"} & {*rooms.LETTERS}


def test_a_ticket_is_good_in_its_room_alone():
    here, there = fold([]), state_after([Event(0, "begin", begin())], OTHER)
    ticket = here.ticket()
    assert here.is_student(ticket) and not there.is_student(ticket)
    for wrong in ("", ".", "a.b", ticket[:-1], ticket + "é", "x" + ticket):
        assert not here.is_student(wrong)


def test_a_student_is_another_in_each_room():
    assert rooms.student_of(CODE, "ticket") != rooms.student_of(OTHER, "ticket")
    assert rooms.student_of(CODE, "ticket") == rooms.student_of(CODE, "ticket")


# The stores


def test_a_code_is_given_once(store, where):
    def create(i: int) -> bool:
        with closing(room_stores.open_store(where)) as other:
            return other.create(CODE, begin(str(i)))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1


def test_without_a_room_nothing_is_appended(store):
    with pytest.raises(NoRoom):
        store.append(CODE, VIEW, {"address": "/"})
    with pytest.raises(NoRoom):
        store.since(CODE)
    assert store.crowd(CODE, "p", {"here": 1, "following": 1}) == {"here": 0, "following": 0}


def test_since_goes_on_where_one_was(store):
    store.create(CODE, begin())
    known = store.since(CODE)
    for i in range(5):
        store.append(CODE, VIEW, {"address": f"/{i}"})
        first, *new = store.since(CODE, known[-1].at)
        assert first == known[0] and [event.body["address"] for event in new] == [f"/{i}"]
        known += new
    assert store.since(CODE) == known


def test_nothing_crosses_rooms(store):
    """Two rooms, 40 threads, 2,000 events."""
    codes, chance = (CODE, OTHER), random.Random(1)
    for code in codes:
        store.create(code, begin(code))
        store.append(code, ASK, {"about": ABOUT})
    work = [(codes[i % 2], f"s{i // 2 % 40}", chance.choice(["red", "car"])) for i in range(2000)]

    def answer(item) -> None:
        code, student, value = item
        body = {"key": [1, 1], "student": f"{code}{student}", "value": value}
        store.append(code, ANSWER, body)

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(answer, work))
    for code in codes:
        log = store.since(code)
        assert len(log) == 2 + 1000
        assert {e.body["student"][:5] for e in log if e.kind == ANSWER} == {code}
        assert len(state(store, code).question.answers) == 40
        assert state(store, code).is_teacher(code)
        assert not state(store, code).is_teacher(OTHER + code)


@pytest.mark.long
def test_both_stores_give_the_same(tmp_path, redis_address):
    chance = random.Random(2)
    second_store = RedisStore(redis_address)
    second_store.redis.flushall()
    stores = SQLiteStore(tmp_path / "rooms"), second_store
    body = begin()
    for _ in range(300):
        act = chance.choices(["create", "end", "append"], [2, 1, 20])[0]
        code, key = chance.choice([CODE, OTHER]), [chance.randint(1, 3), 1]
        answer = {"key": key, "student": chance.choice("abc"), "value": chance.random()}
        event = chance.choice([
            (ASK, {"about": ABOUT}), (ANSWER, answer), (CLOSE, {"key": key}),
            (SHOW, {"key": key}), (VIEW, {"address": chance.choice(["", "/a"])}),
        ])  # fmt: skip

        def done(store: Store, act=act, code=code, event=event) -> object:
            try:
                if act == "create":
                    return store.create(code, body)
                if act == "end":
                    return store.end(code)
                store.append(code, *event)
                return replace(state(store, code), at=None)
            except NoRoom:
                return NoRoom

        first, second = map(done, stores)
        assert first == second
    for store in stores:
        store.close()


WRITER = """
import sys
from headlight.app.server.room_stores import open_store
store, code, round_, name = open_store(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
for i in range(30):
    student = f"{name}{i}"
    store.append(code, "answer", {"key": [1, round_], "student": student, "value": "red"})
    print(student, flush=True)
"""


@pytest.mark.long
def test_an_acknowledged_answer_counts_once_though_its_process_is_killed(store, where):
    """Five rounds of 60 answers by two processes, one of which is killed. What it had not
    acknowledged is answered again, as a student does."""
    store.create(CODE, begin())
    store.append(CODE, ASK, {"about": ABOUT})
    for number in range(1, 6):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, where, CODE, str(number), name],
                stdout=subprocess.PIPE, text=True, cwd=ROOT,
            )
            for name in "ab"
        ]  # fmt: skip
        acknowledged = [writers[0].stdout.readline().strip() for _ in range(3 + number)]
        writers[0].send_signal(signal.SIGKILL)
        for writer in writers:
            acknowledged += writer.communicate()[0].split()
        counted = state(store).question.answers
        assert {*acknowledged} <= counted.keys()
        assert len(counted) <= len(acknowledged) + 1  # one may have been on its way
        for i in range(30):  # all of them again: nobody counts twice
            body = {"key": [1, number], "student": f"a{i}", "value": "car"}
            store.append(CODE, ANSWER, body)
        assert len(state(store).question.answers) == 60
        store.append(CODE, CLOSE, {"key": [1, number]})
        store.append(CODE, "again", {"key": [1, number]})
    assert [len(answers) for answers in state(store).question.rounds] == [60] * 5 + [0]


def test_a_room_outlives_its_server(store, where):
    code, key = rooms.create(store)
    store.append(code, ASK, {"about": ABOUT})
    with closing(room_stores.open_store(where)) as again:
        assert state(again, code) == state(store, code) and state(again, code).is_teacher(key)


def test_of_an_ended_room_nothing_is_left(store, where):
    for code in (CODE, OTHER):
        store.create(code, begin(code))
        store.append(code, "hand in", {"student": "s", "lesson": "l", "file": SECRET})
    store.crowd(CODE, "p", {"here": 1, "following": 1})
    store.end(CODE)
    with pytest.raises(NoRoom):
        store.since(CODE)
    assert state(store, OTHER).handed_in
    store.end(OTHER)
    if isinstance(store, SQLiteStore):
        for name in ("", "-wal"):
            assert SECRET.encode() not in Path(where + name).read_bytes()
        with closing(sqlite3.connect(where)) as other:
            assert other.execute("SELECT count(*) FROM events").fetchone() == (0,)
    else:
        assert not store.redis.keys("*")
    assert store.create(CODE, begin("new"))
    assert not state(store).handed_in


DAY = 24 * 3600


def test_a_clock_that_jumps_loses_no_room_and_keeps_none(store, where, monkeypatch):
    """Ahead by a day, back, and far back, for processes that run and those that start meanwhile."""
    right = time.time()
    store.create(CODE, begin())
    store.create(OTHER, begin(life=0.3))
    ended = time.monotonic() + 0.3
    for jump in (DAY, 0, -50 * 365 * DAY, DAY):
        monkeypatch.setattr(time, "time", lambda jump=jump: right + jump)
        store.crowd(CODE, "p", {"s": True})
        with closing(room_stores.open_store(where)) as other:
            other.create(f"AAA{'ABCD'[jump % 4]}A", begin())
            assert state(other) == state(store)
            assert other.crowd(CODE, "q", {"t": False}) == {"here": 2, "following": 1}
    time.sleep(max(ended - time.monotonic() + 0.01, 0))
    with pytest.raises(NoRoom):
        store.since(OTHER)
    assert store.create(OTHER, begin())
    if isinstance(store, RedisStore):  # whose own clock may jump, too
        assert store.redis.ttl(store._log(CODE)) > DAY + 60


def test_after_another_start_of_the_machine_old_rooms_are_deleted(tmp_path, monkeypatch):
    file, right = tmp_path / "rooms.sqlite", time.time()
    with closing(SQLiteStore(file)) as store:
        store.create(CODE, begin())
        monkeypatch.setattr(rooms, "start_of_machine", lambda: "another")
        monkeypatch.setattr(time, "time", lambda: right + DAY)
        assert state(store)
    monkeypatch.setattr(time, "time", lambda: right + 3 * DAY)
    with closing(SQLiteStore(file)) as store, pytest.raises(NoRoom):
        store.since(CODE)


def test_what_ended_while_nothing_ran_is_deleted_at_the_next_start(tmp_path, monkeypatch):
    file = tmp_path / "rooms.sqlite"
    monkeypatch.setenv(room_stores.WHERE, str(file))
    room_stores.sweep()
    assert not file.exists()  # no room was ever opened
    with closing(SQLiteStore(file)) as store:
        store.create(CODE, begin(life=-1))
        store.append(CODE, "hand in", {"student": "s", "lesson": "l", "file": SECRET})
    assert SECRET.encode() in b"".join(each.read_bytes() for each in tmp_path.iterdir())
    room_stores.sweep()
    assert SECRET.encode() not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_limits(store, monkeypatch):
    store.create(CODE, begin())
    with pytest.raises(TooMuch):
        store.append(CODE, VIEW, {"address": "/" + "a" * rooms.LARGEST_EVENT})
    monkeypatch.setattr(room_stores, "MOST_EVENTS", 5)
    with pytest.raises(TooMuch):
        for _ in range(6):
            store.append(CODE, VIEW, {"address": "/"})
    monkeypatch.setattr(room_stores, "MOST_ROOMS", 3)
    with pytest.raises(TooMuch):
        for i in range(4):
            store.create(f"AAAA{rooms.LETTERS[i]}", begin())


def test_students_leave_the_teacher_room(store, monkeypatch):
    monkeypatch.setattr(room_stores, "MOST_EVENTS", 40)
    store.create(CODE, begin())
    with pytest.raises(TooMuch):
        for i in range(100):
            store.append(CODE, ANSWER, {"key": [1, 1], "student": f"s{i}", "value": "red"})
    for kind in (VIEW, ASK, CLOSE, SHOW, DONE) * 2:
        store.append(CODE, kind, {"key": [1, 1], "address": "/", "about": ABOUT})


def test_a_long_lesson_is_read_at_once():
    """2,400 events: of 60 students who answer 40 questions."""
    log = []
    for number in range(1, 41):
        log.append(Event(len(log), ASK, {"about": ABOUT}))
        for i in range(59):
            body = {"key": (number, 1), "student": f"s{i}", "value": "red"}
            log.append(Event(len(log), ANSWER, body))
    seconds = []
    for _ in range(5):
        start = time.process_time()
        fold(log)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.025


def test_the_file_is_our_own(tmp_path, monkeypatch):
    monkeypatch.setattr(room_stores.tempfile, "gettempdir", lambda: str(tmp_path))
    file = room_stores.default_file()
    assert file.parent.stat().st_mode & 0o077 == 0
    file.parent.chmod(0o755)
    with pytest.raises(PermissionError):
        room_stores.default_file()


def test_without_redis_a_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OSError, match="--rooms redis://localhost needs redis"):
        room_stores.open_store("redis://localhost")
