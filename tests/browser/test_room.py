"""A lesson in a room: a teacher at the projector, students on laptops, and one with a phone."""

import re
import socket
import time
from contextlib import contextmanager, suppress
from threading import Thread

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Download, expect

from tests.browser.conftest import SIZE, Visit
from tests.conftest import serve

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 780}
IN_CLASS = "learn?picture=In+class"
BACK = 6000  # ms in which a page is back once the server answers
CONNECTED = "[data-test-connection-state=CONNECTED]"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SHOWS = """(text) => {
  const { isSeen, look } = globalThis.headlightStage?.stage?.state ?? {};
  return isSeen && look.line === text;
}"""


@pytest.fixture(scope="module")
def served(models, tmp_path_factory):
    with serve(models, HEADLIGHT_ROOMS=str(tmp_path_factory.mktemp("rooms") / "x")) as address:
        yield address


@contextmanager
def member(chromium, address: str, **options):
    """A browser of its own, with cookies of its own."""
    with chromium.new_context(**{"viewport": SIZE, **options}) as context:
        visit = Visit(context.new_page(), address)
        yield visit
        visit.expect_well()


def line(visit: Visit):
    return visit.page.locator(".st-key-room_line")


def panel(visit: Visit):
    return visit.page.locator(".st-key-room_panel")


def start(teacher: Visit) -> str:
    """Start a room; its code."""
    teacher.open(IN_CLASS)
    teacher.page.get_by_role("button", name="Start a room").click()
    expect(line(teacher)).to_contain_text("0 here")
    teacher.idle().go("Heads")
    return re.search(r"room=(\w+)", teacher.page.url)[1]


def press(visit: Visit, name: str, place=panel) -> Visit:
    place(visit).get_by_role("button", name=name, exact=True).click()
    return visit.idle()


def asked(visit: Visit):
    """Where a question stands: in the place of the finding."""
    return visit.page.locator(".stage .finding")


def expect_source(visit: Visit, text: str) -> None:
    visit.page.wait_for_function(SHOWS, arg=text)


def expect_accessible(visit: Visit, *places: str) -> None:
    """By axe; only what belongs to the room."""
    found = Axe().run(visit.page, context={"include": [[place] for place in places]})
    assert found.violations_count == 0, found.generate_report()


def download(visit: Visit) -> Download:
    with visit.page.expect_download() as downloading:
        line(visit).get_by_role("button", name="Answers").click()
    return downloading.value


def test_a_lesson_in_a_room(chromium, served):
    with (
        member(chromium, served) as teacher,
        member(chromium, served) as first,
        member(chromium, served, color_scheme="dark") as second,
        member(chromium, served, viewport=PHONE) as phone,
    ):
        code = start(teacher)
        students = first, second, phone
        for student in (first, phone):
            student.open(f"room/{code.lower()}")  # by the QR code
        second.open(IN_CLASS)  # by the code, typed
        second.page.get_by_label("Code of a room").fill(f" {code.lower()}")
        second.page.get_by_role("button", name="Join").click()
        expect(line(second)).to_contain_text("joined")
        expect(line(teacher)).to_contain_text("3 here, 3 following")

        line(teacher).get_by_text("Follow me").click()
        teacher.idle()
        teacher.type("A dog runs.")
        for student in students:
            expect_source(student, "A dog runs.")
        teacher.go("Tokenizer")
        for student in students:
            student.page.wait_for_url("**/tokenizer?**")
        teacher.go("Heads")
        for student in students:
            student.page.wait_for_url("**/?**")
            student.idle()

        # Another depth and another word are no new page: the browser goes there.
        state = "headlightStage.stage.state"
        looks = [student.page.evaluate(f"{state}.look.number") for student in students]
        teacher.page.keyboard.press("2")
        teacher.page.locator(".stage .words .w").nth(2).click()
        place = f"[{state}.depth, {state}.row()]"
        for student in students:
            student.page.wait_for_function(
                f"(place) => String({place}) === String(place)", arg=teacher.page.evaluate(place)
            )
        assert looks == [student.page.evaluate(f"{state}.look.number") for student in students]

        # One looks around, and comes back.
        press(second, "Look around", line)
        second.idle().type("A cat sleeps.")
        teacher.type("A dog sleeps.")
        expect_source(first, "A dog sleeps.")
        second.settle()
        expect_source(second, "A cat sleeps.")
        expect(line(teacher)).to_contain_text("3 here, 2 following")
        press(second, "Send my view", line)
        expect(line(second)).to_contain_text("View sent")
        press(teacher, "Views: 1", line)
        view = teacher.page.get_by_role("link", name="View 1").get_attribute("href")
        assert "A+cat+sleeps." in view and "alone" not in view
        teacher.page.keyboard.press("Escape")
        press(second, "Follow", line)
        expect_source(second, "A dog sleeps.")
        press(second, "Look around", line)
        second.idle()
        line(second).get_by_role("button", name="My own view").click()
        expect_source(second, "A cat sleeps.")
        second.idle()
        press(second, "Follow", line)
        expect_source(second, "A dog sleeps.")

        # Nobody is led for a while.
        for state in ("joined", "following"):
            line(teacher).get_by_text("Follow me").click()
            teacher.idle()
            expect(line(first)).to_contain_text(state)

        ask(teacher, "What <b>next</b>?", "red\n<i>car</i>\n")
        for student, choice in zip(students, ("red", "<i>car</i>", "<i>car</i>"), strict=True):
            expect(asked(student)).to_contain_text("What <b>next</b>?")
            press(student, choice)
            expect(panel(student)).to_contain_text(f"Your answer: {choice}")
        expect(panel(teacher)).to_contain_text("3 answered")
        assert "car" not in panel(teacher).inner_text()
        press(teacher, "Close")
        expect(panel(first)).to_contain_text("Closed. Your answer: red")
        press(teacher, "Ask again")
        press(first.idle(), "<i>car</i>")
        expect(panel(teacher)).to_contain_text("1 answered")
        press(teacher, "Close")
        expect_accessible(first, ".st-key-room_line", ".st-key-room_panel")
        press(teacher, "Show answers")
        for student in students:
            expect(panel(student)).to_contain_text("After the discussion: 1")
            assert "✓" not in panel(student).inner_text()
        panel(teacher).get_by_role("combobox").click()
        teacher.page.get_by_role("option", name="<i>car</i>").click()
        press(teacher.idle(), "Reveal")
        for student in students:
            expect(panel(student)).to_contain_text("<i>car</i> ✓")
        for visit in (teacher, second):  # light and dark
            expect_accessible(visit, ".st-key-room_line", ".st-key-room_panel")
        press(teacher, "Show the code", line)
        expect(teacher.page.get_by_alt_text("QR code of this address")).to_be_visible()
        expect_accessible(teacher, ".st-key-room_line")
        teacher.page.keyboard.press("Escape")

        # What is in it, tests/app/test_room_acts.py asks.
        assert download(teacher).path().read_text().count("\n") == 1 + 4

        press(teacher, "End", line)
        teacher.page.get_by_role("button", name="End the room").click()
        teacher.idle()
        expect(line(teacher)).to_have_count(0)
        for student in students:
            expect(line(student)).to_contain_text(f"Room {code} has ended")
        press(first, "Leave", line)
        expect(line(first)).to_have_count(0)


class Wire:
    """What lies between a browser and the server, and can be cut: it passes on all bytes."""

    def __init__(self, address: str):
        self.server = ("127.0.0.1", int(address.rpartition(":")[2]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.ends, self.is_cut = set(), False
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed at the end
            while True:
                browser, _ = self.listener.accept()
                if self.is_cut:
                    browser.close()
                    continue
                server = socket.create_connection(self.server)
                self.ends |= {browser, server}
                for ends in ((browser, server), (server, browser)):
                    Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65536):
                target.sendall(some)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.is_cut = True
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False


def ask(teacher: Visit, text: str, choices: str = "red\ncar") -> None:
    press(teacher, "Ask", line)
    teacher.page.get_by_label("Question").fill(text)
    teacher.page.get_by_label("Choices, one per line").fill(choices)
    teacher.page.get_by_role("button", name="Ask everyone").click()
    teacher.idle()


@pytest.mark.long
def test_a_class_comes_back_after_a_restart(chromium, models, tmp_path):
    environment = {"HEADLIGHT_ROOMS": str(tmp_path / "rooms.sqlite")}
    with (
        serve(models, **environment) as address,
        member(chromium, address) as teacher,
        member(chromium, address) as student,
    ):
        port = int(address.rpartition(":")[2])
        code = start(teacher)
        line(teacher).get_by_text("Follow me").click()
        teacher.idle()
        student.open(f"room/{code}")
        ask(teacher, "Before?")
        press(student, "car")
        expect(panel(teacher)).to_contain_text("1 answered")
        server = next(p for p in psutil.Process().children() if str(port) in p.cmdline())
        server.kill()  # it can tell nobody
        server.wait(20)
        expect(line(student)).to_contain_text("Connection lost")
        with serve(models, port=port, **environment):
            start_again = time.monotonic()
            for visit in (teacher, student):
                visit.page.wait_for_selector(CONNECTED, state="attached", timeout=BACK)
                expect(line(visit)).not_to_contain_text("Connection lost", timeout=BACK)
            assert time.monotonic() - start_again < BACK / 1000
            expect(line(teacher)).to_contain_text("1 here, 1 following")
            expect(panel(teacher)).to_contain_text("1 answered")
            expect(panel(student)).to_contain_text("Your answer: car")
            press(student.idle(), "red")
            teacher.idle().type("A dog runs.")
            expect_source(student, "A dog runs.")
            press(teacher, "Close")
            expect(panel(student)).to_contain_text("Closed. Your answer: red")


@pytest.mark.long
@pytest.mark.parametrize("what", ["the network is gone", "the laptop sleeps", "the tab is hidden"])
def test_a_student_who_was_away_is_where_the_class_is(chromium, served, what):
    """Away for half a minute, in which the teacher asks and goes elsewhere."""
    wire = Wire(served)
    with member(chromium, served) as teacher, member(chromium, wire.address) as student:
        code = start(teacher)
        line(teacher).get_by_text("Follow me").click()
        teacher.idle()
        student.open(f"room/{code}")
        expect(line(teacher)).to_contain_text("1 here, 1 following")
        ask(teacher, "Before?")
        press(student, "car")
        expect(panel(teacher)).to_contain_text("1 answered")
        browser = student.page.context.new_cdp_session(student.page)
        if what == "the tab is hidden":
            student.page.evaluate(HIDE, True)
            expect(line(teacher)).to_contain_text("0 here, 0 following")
        else:
            if what == "the laptop sleeps":
                browser.send("Page.setWebLifecycleState", {"state": "frozen"})
            wire.cut()
            teacher.page.wait_for_timeout(30_000)
        press(teacher, "Done")
        ask(teacher, "Meanwhile?")
        teacher.type("A dog runs.")
        if what == "the tab is hidden":
            student.page.evaluate(HIDE, False)
        else:
            wire.mend()
            browser.send("Page.setWebLifecycleState", {"state": "active"})
        back = time.monotonic()
        expect(asked(student)).to_contain_text("Meanwhile?", timeout=BACK)
        left = BACK - 1000 * (time.monotonic() - back)
        student.page.wait_for_function(SHOWS, arg="A dog runs.", timeout=left)
        print(f"{what}: back after {time.monotonic() - back:.1f} s")
        press(student.idle(), "red")
        expect(panel(teacher)).to_contain_text("1 answered")
    wire.listener.close()


def test_the_question_of_a_lesson_is_covered_for_all_until_it_is_revealed(chromium, served):
    with member(chromium, served) as teacher, member(chromium, served) as student:
        code = start(teacher)
        teacher.open(f"?lesson=1-shares&step_of_lesson=3&room={code}")
        line(teacher).get_by_text("Follow me").click()
        teacher.idle()
        student.open(f"room/{code}")
        press(teacher, "Ask", line)
        teacher.page.get_by_role("button", name="Ask this lesson's question").click()
        teacher.idle()
        expect(panel(student)).to_contain_text("Question 1")
        student.idle()
        lesson = student.page.locator(".st-key-lesson_region")
        veils = "headlightStage.stage.state.part('cross').veil.length"
        covered = student.page.evaluate(veils)
        assert covered
        expect(lesson.get_by_role("button", name="Show me")).to_have_count(0)
        panel(student).locator("[class*=st-key-room_choice] button").first.click()
        expect(panel(teacher)).to_contain_text("1 answered")
        press(teacher, "Close")
        press(teacher, "Reveal")
        expect(panel(student)).to_contain_text("✓")
        student.page.wait_for_function(f"() => {veils} < {covered}")  # of later steps, too
        press(teacher, "Done")
        expect(student.page.get_by_text("Question 1")).to_have_count(0)
        student.idle()
        expect(lesson.get_by_role("button", name="Show me")).to_be_visible()


def test_the_remote_asks_the_questions_of_the_plan_in_the_room(chromium, served):
    veils = "headlightStage.stage.state.part('cross').veil.length"
    with member(chromium, served) as teacher, member(chromium, served) as student:
        code = start(teacher)
        line(teacher).get_by_text("Follow me").click()
        teacher.idle()
        student.open(f"room/{code}")
        teacher.go("Learn")
        student.page.wait_for_url("**/learn?**")
        teacher.page.get_by_text("In class", exact=True).click()
        teacher.settle()
        teacher.page.locator(".st-key-class_steps a.ask").first.click()
        expect(asked(student)).to_contain_text("The next word will be rouge")
        student.settle()
        assert "learn" not in student.page.url and student.page.evaluate(veils) == 1
        assert teacher.page.evaluate(veils) == 1
        expect(teacher.page.get_by_text("The next word will be rouge")).to_have_count(1)
        press(student, "red")
        expect(panel(teacher)).to_contain_text("1 answered")
        teacher.page.keyboard.press("PageDown")  # what is shown now cannot be answered any more
        expect(panel(student)).to_contain_text("Closed. Your answer: red")
        student.settle()
        assert student.page.evaluate(veils) == 0
        press(teacher, "Reveal")
        expect(panel(student)).to_contain_text("red1")  # counted
        teacher.page.keyboard.press("PageUp")  # a question is asked once
        teacher.settle()
        expect(panel(student)).to_contain_text("Question 1")
        teacher.page.keyboard.press("PageDown")
        teacher.settle()
        teacher.page.keyboard.press("PageDown")
        expect(panel(student)).to_contain_text("Question 2")
        press(student.idle(), "No")
        expect(panel(teacher)).to_contain_text("1 answered")
        teacher.page.keyboard.press("Escape")  # the plan is the teacher's own
        expect(teacher.page.locator(".st-key-class_steps")).to_be_visible()
        teacher.settle()
        expect(line(teacher)).to_contain_text(code)
        student.settle()
        assert "learn" not in student.page.url
