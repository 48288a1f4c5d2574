"""What a student does in class, at random: sentences, masks, heads, changes and sweeps. What each
answer must be follows from what was done, not from what the app says."""

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headlight.app.state import settings
from headlight.model.checkpoint import SHIPPED
from headlight.model.masks import Masks
from tests.load.tab import Lost, Page, Tab

EXAMPLES = SHIPPED.parent / "examples"
PAUSE = 10.0  # seconds between two actions, on average
SENTENCES = 0.6  # share of the actions that are new sentences
SHORTEST, LONGEST = 4, 10  # words
LATE = 60.0  # seconds; a user has long gone
OFF = "=off"


@dataclass(frozen=True)
class Wanted:
    """The view that a student asked for, and whether the effect of each head off."""

    model: str
    source: str
    masks: Masks = Masks()
    off: tuple[str, ...] = ()  # heads that are switched off, as “cross.1.2”
    asks: bool = False

    @property
    def changes(self) -> str:
        return "; ".join(f"{head}{OFF}" for head in self.off)


@dataclass(frozen=True)
class Answer:
    """What came back for it: the weights, how they are shown, what was answered to a question, and
    the line of the model's target."""

    wanted: Wanted
    weights: bytes
    look: str
    more: bytes
    target: str | None


@dataclass
class Record:
    """What happened to a student. `times`: action → seconds of each."""

    times: dict[str, list[float]] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def note(self, action: str, seconds: float) -> None:
        self.times.setdefault(action, []).append(seconds)


class Student:
    """On the stage with its drawer open, with one model."""

    def __init__(self, tab: Tab, model: str, chance: random.Random, record: Record):
        self.tab, self.chance, self.record = tab, chance, record
        self.words = (EXAMPLES / f"{model}.txt").read_text(encoding="utf-8").split()
        self.wanted = Wanted(model, self.sentence())
        self.page: Page | None = None
        self.weights, self.look = b"", ""  # the last that came

    def sentence(self) -> str:
        count = self.chance.randint(SHORTEST, LONGEST)
        return " ".join(self.chance.choices(self.words, k=count))

    async def open(self) -> None:
        self.tab.parameters = {"model": [self.wanted.model], "source": [self.wanted.source]}
        await self.take("opening", self.tab.open())
        await self.take("drawer", self.tab.tell("stage", "choose", {"drawer": True}))
        if "output" in self.tab.ids:  # a classifier writes no target
            self.page = await asyncio.wait_for(self.tab.switch("output"), LATE)

    async def act(self) -> None:
        """One thing that a student does."""
        others = [self.mask, self.switch_head, self.sweep]
        is_sentence = self.chance.random() < SENTENCES
        await (self.type if is_sentence else self.chance.choice(others))()

    async def type(self) -> None:
        self.wanted = replace(self.wanted, source=self.sentence())
        await self.take("sentence", self.tab.type("source", self.wanted.source))

    async def mask(self) -> None:
        keys = [key for key in settings.MASKS if key in self.page.elements]
        if not keys:
            return  # a model of one text that is not padded
        key = self.chance.choice(keys)
        masks = replace(self.wanted.masks, **{key: not getattr(self.wanted.masks, key)})
        self.wanted = replace(self.wanted, masks=masks)
        await self.take("mask", self.tab.switch(key))

    async def switch_head(self) -> None:
        """A head of the first kind off, or on again."""
        kind, layer, head = self.kind, self.chance.randrange(2), self.chance.randrange(2)
        name, before = f"{kind}.{layer + 1}.{head + 1}", self.wanted.off
        off = tuple(h for h in before if h != name) if name in before else (*before, name)
        act = {"what": "off", "kind": kind, "layer": layer, "head": head}
        self.wanted = replace(self.wanted, off=off)
        try:
            await self.take("change", self.tab.tell("stage", "act", act))
        except Lost:  # the act too, unless its effect has reached this side
            box = self.tab.widgets.get(self.tab.ids.get("changes", ""))
            line = box.string_value if box else ""
            off = tuple(part.removesuffix(OFF) for part in line.split("; ") if part)
            self.wanted = replace(self.wanted, off=off)
            raise

    async def sweep(self) -> None:
        """Ask what each head off costs."""
        asked = [{"what": "effect", "of": str(self.wanted)}]
        self.wanted = replace(self.wanted, asks=True)
        await self.take("sweep", self.tab.tell("stage_more", "ask", asked))
        self.wanted = replace(self.wanted, asks=False)

    @property
    def kind(self) -> str:
        """The first kind of attention of the model."""
        length = int.from_bytes(self.weights[:4], "little")
        return json.loads(self.weights[4 : 4 + length])["parts"][0]["kind"]

    async def take(self, action: str, running) -> None:
        """Wait for what an action draws, and note it."""
        page = await asyncio.wait_for(running, LATE)
        self.page = page
        self.record.note(action, page.seconds)
        self.record.errors += [f"exception: {text}" for text in page.exceptions]
        if "stage_run" in page.elements:
            self.weights, self.look = page.bytes_of("stage_run"), page.json_of("stage_look")
        elif "stage_more" not in page.elements:  # a question is answered by its region alone
            self.record.errors.append(f"no weights for {self.wanted}: {page.alerts}")
            return
        target = page.elements.get("target")
        self.record.answers.append(
            Answer(
                self.wanted,
                self.weights,
                self.look,
                page.bytes_of("stage_more") if self.wanted.asks else b"",
                target.text_input.placeholder if target else None,
            )
        )


class Reader:
    """Of the empty page: text, and an answer to it."""

    def __init__(self, tab: Tab, chance: random.Random, record: Record):
        self.tab, self.chance, self.record = tab, chance, record

    async def open(self) -> None:
        await self.take("opening", self.tab.open(), "")

    async def act(self) -> None:
        text = " ".join(self.chance.choices(("a", "dog", "runs", "home"), k=LONGEST))
        await self.take("sentence", self.tab.type("Source sentence", text), text)

    async def take(self, action: str, running, text: str) -> None:
        page = await asyncio.wait_for(running, LATE)
        self.record.note(action, page.seconds)
        if f"<i id='answer'>{text}</i>" not in page.elements["html"].html.body:
            self.record.errors.append(f"another answer than to {text!r}")


async def attend(
    make: Callable[[Record], Student | Reader],
    seconds: float,
    arrival: float,
    chance: random.Random,
) -> Record:
    """A class of so many seconds, with a PAUSE between two actions on average. Arrives within the
    first `arrival` of them."""
    loop, record = asyncio.get_running_loop(), Record()
    end = loop.time() + seconds
    student = make(record)
    await asyncio.sleep(chance.uniform(0, arrival))
    try:
        wait, act = 0.0, student.open
        while wait + loop.time() < end:
            await asyncio.sleep(wait)
            await act()
            wait, act = chance.expovariate(1 / PAUSE), student.act
    except (Lost, TimeoutError, KeyError) as error:
        record.errors.append(f"{type(error).__name__}: {error}")
    finally:
        await student.tab.close()
    return record
