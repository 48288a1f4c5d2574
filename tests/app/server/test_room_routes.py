"""Laws of rooms: of the pages that listen, and of the addresses."""

import asyncio
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from headlight.app.server import room_hub, room_routes, room_stores, rooms
from headlight.app.server.room_hub import MOST_OF_ONE, Hub, Listener
from headlight.app.server.room_routes import STUDENT, Attempts
from headlight.app.server.room_stores import AWAY
from headlight.app.server.rooms import (
    ANSWER,
    ASK,
    CLOSE,
    HAND_IN,
    MOST_SENT,
    MOST_TRIES,
    OFFER,
    REVEAL,
    SHOW,
    VIEW,
    NoRoom,
    TooMuch,
    Unreachable,
)
from headlight.app.server.security import SecurityMiddleware
from tests.app.server.test_rooms import ABOUT, CODE, OTHER, SECRET, begin
from tests.waiting import wait_until


@pytest.fixture
def hub(store, monkeypatch):
    hub = Hub(store)
    monkeypatch.setattr(room_stores, "PATIENCE", 0.1)
    monkeypatch.setattr(room_hub, "REST", 0.1)
    monkeypatch.setattr(room_routes, "hub", lambda: hub)
    monkeypatch.setattr(room_routes, "wrong", Attempts(20, 60))
    monkeypatch.setattr(room_routes, "started", Attempts(10, 3600))
    yield hub
    for code in tuple(hub.known):
        hub.end(code)
    wait_until(lambda: hub.watcher is None)


# The hub


def test_listeners_are_called_for_what_concerns_them(hub):
    async def hear():
        hub.store.create(CODE, begin())
        hub.store.create(OTHER, begin())
        hub.room(CODE), hub.room(OTHER)
        loop = asyncio.get_running_loop()
        teacher, student, stranger = (
            Listener(CODE, True, True, loop), Listener(CODE, False, True, loop),
            Listener(OTHER, False, True, loop),
        )  # fmt: skip
        with hub.listening(teacher), hub.listening(student), hub.listening(stranger):
            counted = {"here": 1, "following": 1}
            await asyncio.to_thread(wait_until, lambda: hub.crowd(CODE) == counted, seconds=5)

            async def called(kind: str, **body) -> list[bool]:
                await asyncio.sleep(0.1)
                for listener in (teacher, student, stranger):
                    listener.called.clear()
                await asyncio.to_thread(hub.append, CODE, kind, **body)
                await asyncio.sleep(0.05)
                return [listener.called.is_set() for listener in (teacher, student, stranger)]

            assert await called(ASK, about=ABOUT) == [True, True, False]
            answer = {"key": (1, 1), "student": "s", "value": "red"}
            assert await called(ANSWER, **answer) == [True, False, False]
            assert await called(CLOSE, key=(1, 1)) == [True, True, False]
        assert not hub.listeners

    asyncio.run(hear())


def test_what_does_not_count_is_not_kept(hub):
    """Of answers, views and files, from 8 threads at once."""
    hub.store.create(CODE, begin())
    hub.append(CODE, ASK, about=ABOUT)

    def refused(kind: str, body: dict) -> bool:
        try:
            hub.append(CODE, kind, student="s", **body)
        except TooMuch as error:
            return str(error).endswith(".")
        return False

    def sent_by_all(acts: list[tuple[str, dict]]) -> list[bool]:
        with ThreadPoolExecutor(8) as threads:
            return [*threads.map(lambda act: refused(*act), acts)]

    answers = [(ANSWER, {"key": (1, 1), "value": i}) for i in range(249)]
    assert sum(sent_by_all(answers)) == 249 - MOST_TRIES
    views = [(OFFER, {"address": f"/{i}"}) for i in range(MOST_SENT)]
    files = [(HAND_IN, {"lesson": f"{i}", "file": "{}"}) for i in range(MOST_SENT)]
    assert sum(sent_by_all([*views, *files])) == MOST_SENT
    hub.append(CODE, ANSWER, key=(1, 1), student="other", value="red")
    kept = len(hub.store.since(CODE))
    assert kept == 2 + MOST_TRIES + MOST_SENT + 1
    hub.append(CODE, ANSWER, key=(1, 1), student="other", value="red")
    hub.append(CODE, CLOSE, key=(1, 1))
    hub.append(CODE, ANSWER, key=(1, 1), student="other", value="car")
    hub.append(CODE, ANSWER, key=(1, 2), student="other", value="car")
    assert len(hub.store.since(CODE)) == kept + 1  # of the teacher


def test_here_are_people_and_of_one_the_newest_lines_stay(hub, where):
    """Two students, one with many lines, and the teacher, in two processes."""

    async def listen():
        hub.store.create(CODE, begin())
        other = Hub(room_stores.open_store(where))
        loop, left = asyncio.get_running_loop(), []
        with ExitStack() as stack:
            for each in (hub, other):
                each.room(CODE)
                lines = [Listener(CODE, False, i == 25, loop, "s") for i in range(30)]
                lines += [Listener(CODE, False, True, loop, "t"), Listener(CODE, True, True, loop)]
                for line in lines:
                    stack.enter_context(each.listening(line))
                left += [i for i, line in enumerate(lines) if line.is_left]
            people = {"here": 2, "following": 2}
            await asyncio.to_thread(wait_until, lambda: hub.crowd(CODE) == people, seconds=5)
        hub.end(CODE)
        with suppress(NoRoom):
            other.room(CODE)
        await asyncio.to_thread(wait_until, lambda: other.watcher is None)
        other.store.close()
        return left

    assert asyncio.run(listen()) == [*range(30 - MOST_OF_ONE)] * 2


def test_a_new_room_of_an_old_code_begins_anew(hub):
    hub.store.create(CODE, begin("old"))
    hub.append(CODE, ASK, about=ABOUT)
    hub.store.end(CODE)
    hub.store.create(CODE, begin("new"))
    assert hub.room(CODE).question is None and hub.room(CODE).is_teacher("new")


def test_a_view_that_could_not_be_sent_is_sent_once_the_store_answers(hub, monkeypatch):
    hub.store.create(CODE, begin())
    hub.append(CODE, VIEW, address="/old")

    def fail(*_) -> None:
        raise Unreachable(AWAY)

    append = hub.store.append
    monkeypatch.setattr(hub.store, "append", fail)
    for address in ("/first", "/latest"):
        with pytest.raises(Unreachable):
            hub.append(CODE, VIEW, address=address)
    assert hub.room(CODE).view == "/old"
    monkeypatch.setattr(hub.store, "append", append)
    wait_until(lambda: hub.known[CODE].view == "/latest")
    assert not hub.unsent and len(hub.store.since(CODE)) == 3


def test_a_room_whose_time_is_over_is_deleted_and_then_nothing_runs(hub, monkeypatch):
    monkeypatch.setattr("headlight.app.server.room_hub.HEARTBEAT", 0.1)
    hub.store.create(CODE, begin(life=0.5))
    hub.room(CODE)
    assert hub.watcher is not None
    wait_until(lambda: hub.watcher is None, seconds=10)
    assert not hub.known


# The addresses


@pytest.fixture
def client(hub):
    app = Starlette(routes=room_routes.ROOM_ROUTES, middleware=[Middleware(SecurityMiddleware)])
    return TestClient(app, follow_redirects=False)


def start(client) -> tuple[str, str]:
    answer = client.post("/room")
    cookie = answer.headers["set-cookie"]
    code, key = re.match(r"headlight_teacher_(\w+)=([^;]+);", cookie).groups()
    assert answer.status_code == 303 and answer.headers["location"] == f"/?room={code}"
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    return code, key


def test_a_page_of_another_site_starts_no_room(client):
    assert client.post("/room", headers={"Origin": "http://elsewhere"}).status_code == 403


def test_the_key_is_in_no_address_and_in_no_store(client, hub):
    code, key = start(client)
    log = json.dumps([dict(event.body) for event in hub.store.since(code)])
    hub.room(code)
    assert key not in log and key not in repr(hub.known)


def test_the_teachers_link_and_a_wrong_one(client):
    code, key = start(client)
    client.cookies.clear()
    assert client.get(f"/room/{code}", params={"key": key + "x"}).status_code == 403
    answer = client.get(f"/room/{code}", params={"key": key})
    assert answer.status_code == 303 and key not in answer.headers["location"]


def test_who_joins_is_led_to_the_view_and_stays_the_same_student(client, hub):
    code, _ = start(client)
    hub.append(code, "view", address=f"/heads?room={code}")
    answer = client.get(f"/room/{code.lower()}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/heads?room={code}")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert hub.room(code).is_student(client.cookies[STUDENT + code])
    assert "set-cookie" not in client.get("/room", params={"code": code}).headers


def test_nor_by_listening(client):
    """Whoever has not joined hears the same of a room that there is and one that there is not."""
    code, _ = start(client)
    client.cookies.clear()
    client.cookies.set(STUDENT + code, "made.up")
    answers = [client.get(f"/room/{each}/events") for each in (code, "AAAAA", "x")]
    assert [answer.status_code for answer in answers] == [204] * 3
    assert answers[0].headers == answers[1].headers


def test_codes_cannot_be_tried_out_but_who_has_joined_comes_back(client):
    code, key = start(client)
    for i in range(20):
        assert client.get(f"/room/AAAA{rooms.LETTERS[i]}").status_code == 404
    for i in range(10):
        client.get(f"/room/AAAA{rooms.LETTERS[i]}")
    assert client.get(f"/room/{code}").status_code == 303
    for ticket in ("", "made.up"):  # the right code, too
        client.cookies.clear()
        client.cookies.set(STUDENT + code, ticket)
        assert client.get(f"/room/{code}").status_code == 429
        assert client.get(f"/room/{code}", params={"key": key}).status_code == 429


def test_a_full_process_refuses_students_and_never_the_teacher(client, hub, monkeypatch):
    code, _ = start(client)
    as_teacher = dict(client.cookies)
    client.cookies.clear()
    client.get(f"/room/{code}")
    monkeypatch.setattr(room_routes, "_messages", lambda *_: one_message())
    for most, status in ((0, 503), (2, 200)):
        monkeypatch.setattr(room_routes, "MOST_LISTENERS", most)
        assert client.get(f"/room/{code}/events").status_code == status
    client.cookies.clear()
    client.cookies.update(as_teacher)
    monkeypatch.setattr(room_routes, "MOST_LISTENERS", 0)
    assert client.get(f"/room/{code}/events").status_code == 200


async def one_message():
    yield "data: {}\n\n"


def test_attempts_are_forgotten_after_their_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(room_routes.time, "monotonic", lambda: now[0])
    attempts = Attempts(2, 60)
    attempts.count("a"), attempts.count("a")
    assert attempts.are_too_many("a") and not attempts.are_too_many("b")
    now[0] = 61
    assert not attempts.are_too_many("a") and not attempts.times


def test_a_store_that_cannot_be_opened_is_said_in_a_sentence(client, monkeypatch):
    def broken():
        raise OSError("the disk is full")

    monkeypatch.setattr(room_routes, "hub", broken)
    answer = client.post("/room")
    said = "Rooms cannot be used here: the disk is full"
    assert (answer.status_code, answer.text) == (503, said)


def messages(hub, code: str, is_teacher: bool) -> list[str]:
    """What a page hears while a question is asked, answered, closed, shown and revealed."""

    async def hear():
        loop = asyncio.get_running_loop()
        listener, texts = Listener(code, is_teacher, True, loop), []
        hub.room(code)

        async def listen():
            async for text in room_routes._messages(hub, listener):
                texts.append(text)

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.1)
        for kind, body in (
            (ASK, {"about": ABOUT}),
            (ANSWER, {"key": (1, 1), "student": "s", "value": SECRET}),
            (CLOSE, {"key": (1, 1)}),
            (SHOW, {"key": (1, 1)}),
            (REVEAL, {"key": (1, 1), "truth": SECRET}),
        ):
            await asyncio.to_thread(hub.append, code, kind, **body)
            await asyncio.sleep(0.22)
        await asyncio.to_thread(hub.end, code)
        await asyncio.wait_for(task, 10)
        return texts

    return asyncio.run(hear())


@pytest.mark.parametrize("is_teacher", [False, True])
def test_no_message_holds_an_answer(client, hub, is_teacher):
    code, _ = start(client)
    texts = messages(hub, code, is_teacher)
    assert len(texts) >= 5 and texts[-1].startswith("event: end")
    assert SECRET not in "".join(texts)
    assert ("answers" in "".join(texts)) == is_teacher


@pytest.mark.long
def test_listeners_who_do_nothing_cost_nothing(hub):
    """60 of them: at most 2% of a core."""
    hub.store.create(CODE, begin())
    hub.room(CODE)

    async def rest() -> float:
        loop = asyncio.get_running_loop()

        async def listen() -> None:
            async for _ in room_routes._messages(hub, Listener(CODE, False, True, loop)):
                pass

        tasks = [asyncio.create_task(listen()) for _ in range(60)]
        await asyncio.sleep(2)
        before = time.process_time()
        await asyncio.sleep(10)
        share = (time.process_time() - before) / 10
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return share

    assert asyncio.run(rest()) < 0.02
