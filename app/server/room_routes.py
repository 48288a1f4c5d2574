"""The addresses of rooms: to start one, to join one, and to hear what happens in it.

Whoever starts a room gets the teacher's key, and whoever joins one a ticket, as cookies that no
script can read. All else that a teacher or a student does goes through their session.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlencode

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from headlight.app.server import rooms
from headlight.app.server.room_hub import Hub, Listener, hub
from headlight.app.server.rooms import KEPT, NoRoom, RoomState, TooMuch

BEGINS = "/"
TEACHER, STUDENT = "headlight_teacher_", "headlight_student_"  # names of cookies, before the code
NONE = "There is no such room. Please check the code, and go back to type it again."
SLOWLY = "Too many attempts. Please wait a minute."
NO_LINK = "This is not the teacher's link."
CLOSED = "Rooms cannot be used here: {}"
MOST_LISTENERS = 500  # students' of this process, and of one room half of it
PING = 15  # seconds
PAUSE = 0.2  # seconds between two counts that a teacher's page is sent
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # or nginx would hold it back


class Attempts:
    """Counts what each address has attempted in the last `seconds`; at most `most` are allowed."""

    def __init__(self, most: int, seconds: float):
        self.most, self.seconds = most, seconds
        self.times: dict[str, list[float]] = {}

    def are_too_many(self, source: str) -> bool:
        now = time.monotonic()
        recent = [then for then in self.times.get(source, ()) if then > now - self.seconds]
        self.times[source] = recent
        if not recent:
            del self.times[source]
        return len(recent) >= self.most

    def count(self, source: str) -> None:
        if len(self.times) > 10_000:  # addresses, most of them long quiet
            for each in [*self.times]:
                self.are_too_many(each)
        self.times.setdefault(source, []).append(time.monotonic())


wrong = Attempts(20, 60)  # codes
started = Attempts(10, 3600)  # rooms


def _source(request: Request) -> str:
    return request.client.host if request.client else ""


def is_teacher(room: RoomState, cookies: Mapping[str, str]) -> bool:
    return room.is_teacher(cookies.get(TEACHER + room.code, ""))


def is_student(room: RoomState, cookies: Mapping[str, str]) -> bool:
    return room.is_student(cookies.get(STUDENT + room.code, ""))


def student_in(room: RoomState, cookies: Mapping[str, str]) -> str:
    """The name under which the room counts a browser."""
    return rooms.student_of(room.code, cookies.get(STUDENT + room.code, ""))


def is_in(room: RoomState, cookies: Mapping[str, str]) -> bool:
    """Whether somebody teaches the room or has joined it."""
    return is_teacher(room, cookies) or is_student(room, cookies)


async def start(request: Request) -> Response:
    """Start a room."""
    if started.are_too_many(_source(request)):
        return PlainTextResponse("Too many rooms were started. Please wait an hour.", 429)
    try:
        code, key = await to_thread.run_sync(lambda: rooms.create(hub().store))
    except TooMuch as error:
        return PlainTextResponse(str(error), 503)
    except OSError as error:
        return PlainTextResponse(CLOSED.format(error), 503)
    started.count(_source(request))
    return _as_teacher(code, key, request)


def _as_teacher(code: str, key: str, request: Request) -> Response:
    response = RedirectResponse(f"{BEGINS}?{urlencode({'room': code})}", 303)
    _set(response, request, TEACHER + code, key)
    return response


def _set(response: Response, request: Request, name: str, value: str) -> None:
    is_https = request.url.scheme == "https"
    response.set_cookie(name, value, KEPT, httponly=True, samesite="lax", secure=is_https)


async def join(request: Request) -> Response:
    """Join a room, by its address or by a code that was typed; or, by the teacher's link, become
    its teacher."""
    typed = request.path_params.get("code") or request.query_params.get("code", "")
    room = await _find(request, typed)
    if isinstance(room, Response):
        return room
    if key := request.query_params.get("key", ""):
        if room.is_teacher(key):
            return _as_teacher(room.code, key, request)
        wrong.count(_source(request))
        return PlainTextResponse(NO_LINK, 403)
    response = RedirectResponse(room.view or f"{BEGINS}?{urlencode({'room': room.code})}", 303)
    if not is_student(room, request.cookies):
        _set(response, request, STUDENT + room.code, room.ticket())
    return response


async def _find(request: Request, typed: str) -> RoomState | Response:
    """Codes cannot be tried out: after too many wrong ones, right ones are refused as well, but to
    those who have joined already."""
    are_too_many = wrong.are_too_many(_source(request))
    try:
        if code := rooms.as_code(typed):
            room = await to_thread.run_sync(hub().room, code)
            if not are_too_many or is_in(room, request.cookies):
                return room
    except NoRoom:
        pass
    except OSError as error:
        return PlainTextResponse(CLOSED.format(error), 503)
    if are_too_many:
        return PlainTextResponse(SLOWLY, 429)
    wrong.count(_source(request))
    return PlainTextResponse(NONE, 404)


async def events(request: Request) -> Response:
    """A stream of the room's state: where the class is led, the mark of its panel, and for the
    teacher, how many are here and how many have answered. Only for those who have joined; to all
    others there is no such room. After a 204 the browser does not try again."""
    try:
        room = await to_thread.run_sync(hub().room, request.path_params["code"])
    except NoRoom:
        return Response(status_code=204)
    except OSError as error:  # the page tries again
        return PlainTextResponse(CLOSED.format(error), 503)
    if not is_in(room, request.cookies):
        return Response(status_code=204)
    teaches, all_here = is_teacher(room, request.cookies), hub().listeners
    if not teaches and (
        sum(map(len, [*all_here.values()])) >= MOST_LISTENERS
        or len(all_here.get(room.code, ())) >= MOST_LISTENERS // 2
    ):
        return PlainTextResponse(SLOWLY, 503)
    following = request.query_params.get("following") == "true"
    student = "" if teaches else student_in(room, request.cookies)
    loop = asyncio.get_running_loop()
    listener = Listener(room.code, teaches, following, loop, student)
    return StreamingResponse(_messages(hub(), listener), 200, HEADERS, "text/event-stream")


async def _messages(hub: Hub, listener: Listener) -> AsyncIterator[str]:
    """The present state after each change. A page that missed some of them needs only the last."""
    with hub.listening(listener):
        sent = None
        while True:
            listener.called.clear()
            room = hub.known.get(listener.code)
            if room is None:
                yield "event: end\ndata: {}\n\n"
                return
            mark = room.mark_for(listener.is_teacher)
            message = {"mark": mark, "view": room.view, "head": room.head}
            if listener.is_teacher:
                answers = len(room.question.answers) if room.question else 0
                message |= {"answers": answers, **hub.crowd(room.code)}
            if message != sent:
                yield f"data: {json.dumps(message)}\n\n"
                sent = message
                if listener.is_teacher:
                    await asyncio.sleep(PAUSE)
            try:
                await asyncio.wait_for(listener.called.wait(), PING)
                if hub.is_ending() or listener.is_left:
                    return
            except TimeoutError:
                yield ": still here\n\n"


ROOM_ROUTES = [
    Route("/room", start, methods=["POST"]),
    Route("/room", join, methods=["GET"]),
    Route("/room/{code}", join, methods=["GET"]),
    Route("/room/{code}/events", events, methods=["GET"]),
]
