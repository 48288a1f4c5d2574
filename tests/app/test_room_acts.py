"""Laws of rooms: what a session may do there, and what is drawn."""

import csv
import io
import itertools
import json
import re
import zipfile
from decimal import Decimal, localcontext
from statistics import median
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from headlight.app.components.poll_results import results
from headlight.app.lessons.class_plan import plan
from headlight.app.server.room_hub import Hub
from headlight.app.server.room_stores import AWAY, RedisStore, SQLiteStore
from headlight.app.server.rooms import ASK, CLOSE, DONE, REVEAL, SHOW, VIEW, NoRoom, beginning
from headlight.app.shell import room, room_acts
from headlight.app.state.pages import PAGES
from headlight.app.state.settings import OF_ROOMS
from headlight.app.text.formats import escaped
from headlight.model.rounding import percent
from tests.app.server.conftest import redis_server
from tests.app.server.test_rooms import ABOUT, CODE, SECRET
from tests.markup import Markup
from tests.waiting import wait_until

TYPED = "2 * 3 -> \\ &amp; &#32; _x_ :smile: www.a.b?"
TEACHER, STUDENT = f"headlight_teacher_{CODE}", f"headlight_student_{CODE}"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A room with a teacher's key, and the cookies of the session that acts in it."""
    cookies: dict[str, str] = {}
    hub = Hub(SQLiteStore(tmp_path / "rooms"))
    for module in (room, room_acts):
        monkeypatch.setattr(module, "hub", lambda: hub)
    monkeypatch.setattr(
        room_acts, "st", SimpleNamespace(context=SimpleNamespace(cookies=cookies, url=""))
    )
    monkeypatch.setattr(room_acts, "code", lambda: CODE)
    hub.store.create(CODE, beginning("key"))
    yield SimpleNamespace(hub=hub, cookies=cookies)
    hub.end(CODE)


def join(page) -> None:
    page.cookies.clear()
    page.cookies[STUDENT] = page.hub.room(CODE).ticket()


def test_without_the_key_nobody_acts(page):
    acts = [(VIEW, {"address": "/x"}), (ASK, {"about": ABOUT})]
    join(page)
    for key in ("", "wrong"):
        page.cookies[TEACHER] = key
        for kind, body in acts:
            room_acts.append(kind, **body)
        room_acts.end()
        assert len(page.hub.store.since(CODE)) == 1
    page.cookies[TEACHER] = "key"
    for kind, body in acts:
        room_acts.append(kind, **body)
    join(page)
    for kind in (CLOSE, SHOW, "again", DONE):
        room_acts.append(kind, key=(1, 1))
    room_acts.append(REVEAL, key=(1, 1), truth="red")
    assert page.hub.room(CODE).question.state == "open"


def test_who_has_not_joined_neither_sees_nor_answers(page):
    page.hub.append(CODE, ASK, about=ABOUT)
    for cookies in ({}, {STUDENT: "made.up"}, {STUDENT.replace(CODE, "ZZZZZ"): "a.b"}):
        page.cookies.clear()
        page.cookies.update(cookies)
        with pytest.raises(NoRoom):
            room_acts.room()
        room_acts.answer(page.hub.room(CODE).question, "red")
    assert not page.hub.room(CODE).question.answers


def test_a_student_answers_once_from_many_tabs(page):
    page.hub.append(CODE, ASK, about=ABOUT)
    question = page.hub.room(CODE).question
    join(page)
    room_acts.answer(question, "red")
    room_acts.answer(question, "car")
    first = page.cookies[STUDENT]
    join(page)
    room_acts.answer(question, "red")
    assert sorted(page.hub.room(CODE).question.answers.values()) == ["car", "red"]
    stored = json.dumps([dict(event.body) for event in page.hub.store.since(CODE)])
    assert first not in stored


@pytest.mark.parametrize("state", ["open", "closed"])
@pytest.mark.parametrize("teaches", [False, True])
def test_results_are_drawn_of_what_is_shown_alone(page, state, teaches, monkeypatch):
    page.hub.append(CODE, ASK, about=ABOUT)
    page.hub.append(CODE, "answer", key=(1, 1), student="s", value=SECRET)
    if state == "closed":
        page.hub.append(CODE, CLOSE, key=(1, 1))
    join(page)
    if teaches:
        page.cookies[TEACHER] = "key"
    drawn: list[str] = []
    monkeypatch.setattr(room, "results", lambda *given: drawn.append("results") or "")
    box = SimpleNamespace(caption=drawn.append, markdown=drawn.append, html=drawn.append)
    monkeypatch.setattr(room, "st", box)
    monkeypatch.setattr(room, "_draw_answers", lambda question: None)
    monkeypatch.setattr(room, "_draw_acts", lambda question: None)
    now = page.hub.room(CODE)
    room._draw_question(now, now.question)
    assert "results" not in drawn and SECRET not in "".join(drawn)
    assert SECRET not in room_acts.as_csv(now)


def test_answers_in_a_table_are_texts_and_of_nobody(page):
    about = ABOUT | {"choices": ["=1+1", "car"], "text": "*" + escaped(TYPED) + "*"}
    for number in (1, 2):
        page.hub.append(CODE, ASK, about=about)
        for i in range(20):
            value = ("=1+1", "car")[i % 2]
            page.hub.append(CODE, "answer", key=(number, 1), student=f"s{i}", value=value)
        page.hub.append(CODE, CLOSE, key=(number, 1))
        page.hub.append(CODE, REVEAL, key=(number, 1), truth="car")
    head, *rows = csv.reader(io.StringIO(room_acts.as_csv(page.hub.room(CODE))))
    assert head == ["question", "round", "student", "text", "answer", "model"]
    assert {row[3] for row in rows} == {TYPED}
    assert len(rows) == 40 and {row[4] for row in rows} == {"'=1+1", "car"}
    first, second = ({row[2]: row[4] for row in rows if row[0] == number} for number in ("1", "2"))
    assert first != second  # student 3 is another one in each question


# Pictures of the answers

HEADS = [["cross", "Cross-attention", 2, 4]]
PICTURES = {
    "choose": ({"choices": ["<b>red</b>", "car"]}, ["car", "<b>red</b>", "car"], "car"),
    "number": ({}, [0.1, 0.5, 12.0], 3.0),
    "token": ({"choices": ["1 <i>a</i>", "2 b"]}, ["2 b"], "2 b"),
    "head": ({"heads": HEADS}, [["cross", 0, 1], ["cross", 0, 1]], [["cross", 1, 3]]),
    "paint": ({"choices": ["<b>", "b"]}, [[0.2, 0.8], [0.4, 0.6]], [0.1, 0.9]),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_hold_what_was_answered_and_texts_stay_texts(kind):
    about, answers, truth = PICTURES[kind]
    about = {"kind": kind, **about}
    for count, is_revealed in itertools.product((0, 1, 3), (False, True)):
        rounds = [dict(enumerate(answers[:count])), {}]
        read = Markup(results(about, rounds, truth if is_revealed else None))
        assert {tag for tag, _ in read.tags} <= {"div", "small", "span", "i", "b", "sup"}
        text = "".join(text for _, text in read.texts)
        assert f"First: {min(count, len(answers))}" in text and "After the discussion: 0" in text
        says_truth = "✓" in text or "The model: 3" in text or "the model" in text
        assert says_truth or kind == "token" or not is_revealed
        assert is_revealed or ("✓" not in text and "he model" not in text)


def bins(about: dict, answers: list) -> list[int]:
    """The number in each column."""
    html = results({"kind": "number", **about}, [dict(enumerate(answers))], None)
    return [int(count or 0) for count in re.findall(r"line-height:1.3'>(\d*)</span>", html)]


def test_each_number_is_counted_where_it_was_typed_and_none_is_too_large():
    ends = [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert bins({}, [1e308, -1e308]) == bins({}, [5e-324, 0.0]) == ends
    assert bins({"share": True}, [-1e308, 1e306]) == ends
    assert bins({"share": True}, [i / 10 for i in range(10)]) == [1] * 10


# What a student can send: each of it gives a picture or a sentence

FLOATS = some.floats(allow_nan=False, allow_infinity=False).map(repr)
WHOLE = some.integers(-(10**45), 10**45).map(str)
SPECIAL = ["1e308", "-1e308", "1e999", "1/0", "-0", "1,250", "5e-324", "46%", "٣", "²"]
TYPED_NUMBERS = some.one_of(
    FLOATS, WHOLE, some.sampled_from(SPECIAL), some.builds("{}/{}".format, WHOLE, FLOATS),
    some.builds("{}%".format, FLOATS), some.text(max_size=45),
)  # fmt: skip
ROWS = some.lists(
    some.one_of(
        some.floats(), some.floats(0, 1), some.integers(-(10**400), 10**400), some.none(),
        some.text(max_size=3), some.lists(some.floats(0, 1), max_size=2),
    ),
    max_size=4,
)  # fmt: skip
OF_A_HEAD = some.one_of(
    some.just([]),
    some.tuples(some.sampled_from(["cross", "self"]), some.integers(0, 5), some.integers(0, 9)),
).map(list)
SENT = some.one_of(
    some.tuples(some.sampled_from(["number", "share"]), some.lists(TYPED_NUMBERS, max_size=5)),
    some.tuples(some.just("paint"), some.lists(some.one_of(ROWS, FLOATS), max_size=4)),
    some.tuples(some.just("head"), some.lists(OF_A_HEAD, max_size=5)),
    some.tuples(some.sampled_from(["choose", "token"]), some.lists(some.integers(0, 2))),
)


def expected(kind: str, answers: list) -> tuple[list[str], str]:
    """What the picture says of them, by another reading: the counts in their places, or the means
    of painted rows; and of numbers their median."""
    if kind in ("choose", "token"):
        return [str(answers.count(word)) for word in WORDS], ""
    if kind == "head":
        places = [["cross", layer, head] for layer in range(2) for head in range(4)]
        return [str(answers.count(place)) for place in places], ""
    if kind == "paint":
        means = [sum(row[i] for row in answers) / max(len(answers), 1) for i in range(3)]
        return [*map(percent, means)], ""
    with localcontext(prec=2000):
        exact = [Decimal(repr(value)) for value in answers]
        low, high = (0, 1) if kind == "share" else (min(exact), max(exact))
        width = Decimal(high - low) or Decimal(10)
        places = [min(int((value - low) * 10 / width), 9) for value in exact]
        middle = float(median(exact)) + 0.0  # no −0
    text = percent(middle) if kind == "share" else f"{middle:.4g}"
    return [str(places.count(i)) for i in range(10)], text


WORDS = ["1 <i>a</i>", "2 b", "3 b"]
PLACES = {
    "choose": r"<span>(\d+)</span></div>",
    "token": r"<sup>(\d*)</sup>",
    "head": r"%, transparent\);'>(\d*)</span>",
    "paint": r"<span>(\d+%)</span></div>",
}


@pytest.mark.long
@settings(max_examples=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SENT)
def test_whatever_students_send_gives_a_picture_or_a_sentence(page, monkeypatch, sent):
    kind, inputs = sent
    notes = SimpleNamespace(room_problem="")
    for module in (room, room_acts):
        monkeypatch.setattr(module.session, "memo", lambda: notes)
    about = {"text": "", "choices": WORDS, "heads": HEADS, "kind": kind}
    about |= {"kind": "number", "share": True} if kind == "share" else {}
    page.hub.end(CODE)
    page.hub.store.create(CODE, beginning("key"))
    page.hub.append(CODE, ASK, about=about)
    question = page.hub.room(CODE).question
    read = {
        "number": room._number_in, "share": room._number_in, "paint": room._row_in,
        "head": lambda head, about: room._head_in(about),
        "choose": lambda i, about: WORDS[i], "token": lambda i, about: WORDS[i],
    }[kind]  # fmt: skip
    count = 0
    for each in inputs:
        join(page)
        monkeypatch.setattr(room_acts, "selected_head", lambda each=each: each)
        notes.room_problem = ""
        room._answer(question, lambda each=each: read(each, about))
        count += not notes.room_problem
        assert not notes.room_problem or notes.room_problem.endswith((".", ".”"))
        if (mine := page.hub.room(CODE).question.answers.get(room_acts.student())) is not None:
            assert room._shown(about, mine)
    answers = [*page.hub.room(CODE).question.answers.values()]
    assert len(answers) == count
    for act in (CLOSE, SHOW):
        page.hub.append(CODE, act, key=(1, 1))
    now = page.hub.room(CODE)
    assert now.question.state == "shown" and room_acts.as_csv(now).count("\n") == count + 1
    html = results(about, now.question.rounds, None)
    title = "1 answer<" if count == 1 else f"{count} answers<"
    assert title in html and not re.search(r"\b(nan|inf)\b", html)
    truth = answers[:1] if kind == "head" else next(iter(answers), None)
    assert results(about, now.question.rounds, truth)
    if about["kind"] == "number" and not answers:
        return
    counts, middle = expected(kind, answers)
    seen = re.findall(PLACES.get(kind, r"line-height:1.3'>(\d*)</span>"), html)
    assert [text or "0" for text in seen] == counts
    assert not middle or f"Median of the class: {middle}<" in html


def test_files_are_handed_in_once_and_read_again(page):
    join(page)
    for text in ("{}", '{"a": 1}'):
        room_acts.hand_in("1-shares", text)
        assert room_acts.has_handed_in("1-shares")
    assert not room_acts.has_handed_in("2-query")
    with zipfile.ZipFile(io.BytesIO(room_acts.as_zip(page.hub.room(CODE)))) as files:
        assert {name: files.read(name) for name in files.namelist()} == {
            "1-shares-1.json": b'{"a": 1}'
        }


@pytest.mark.long
def test_a_store_that_stops_and_comes_back_loses_nothing(page, tmp_path, monkeypatch):
    """Redis, which writes each event to disk: meanwhile a page shows what it knew."""
    with redis_server(tmp_path) as address:
        hub, unknown = Hub(RedisStore(address)), Hub(RedisStore(address))
        for module in (room, room_acts):
            monkeypatch.setattr(module, "hub", lambda: hub)
        hub.store.create(CODE, beginning("key"))
        page.cookies[TEACHER] = "key"
        room_acts.append(ASK, about=ABOUT)
        join(SimpleNamespace(hub=hub, cookies=page.cookies))
        room_acts.answer(hub.room(CODE).question, "red")
    notes = SimpleNamespace(room_problem="")
    monkeypatch.setattr(room_acts.session, "memo", lambda: notes)
    assert room_acts.room().question.answers == {room_acts.student(): "red"}
    room_acts.answer(room_acts.room().question, "car")
    assert notes.room_problem == AWAY
    assert room_acts.room().question.answers == {room_acts.student(): "red"}
    monkeypatch.setattr(room_acts, "hub", lambda: unknown)
    with pytest.raises(room_acts.Closed, match="cannot be reached"):
        room_acts.room()
    with redis_server(tmp_path):
        assert room_acts.room().question.answers == {room_acts.student(): "red"}
        room_acts.answer(room_acts.room().question, "car")
        assert room_acts.room().question.answers == {room_acts.student(): "car"}
        wait_until(lambda: list(hub.room(CODE).question.answers.values()) == ["car"])
        hub.end(CODE)
        for each in (hub, unknown):
            each._look(CODE)
            wait_until(lambda each=each: each.watcher is None)


def test_a_room_can_ask_every_question_of_the_plan_and_knows_its_answer():
    for question in (slide for slide in plan().slides if slide.kind == "ask"):
        if isinstance(question.answers, tuple):
            assert question.right in (None, *question.answers)
            assert len(question.answers) == len({*question.answers}) > 1
        else:
            assert question.answers in ("word", "number", "share")
            assert isinstance(question.right, str if question.answers == "word" else float | int)


@pytest.mark.long
def test_a_session_without_a_room_makes_nothing_of_rooms(new_page, monkeypatch):
    """No widget is drawn; that no store is opened holds in all tests with `new_page`."""
    drawn = []
    monkeypatch.setattr(room, "draw", lambda *_: drawn.append(True))
    opened = new_page()
    for path in PAGES:
        opened.switch_page(path).run()
        assert not opened.exception and not drawn
        assert not any(key in opened.session_state for key in OF_ROOMS)
