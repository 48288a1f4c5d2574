"""A link that somebody has made, or a mail program has broken, opens a page: what cannot be meant
is left out, or told in a sentence, within a second of processor time."""

import random
import time
from urllib.parse import parse_qs

import pytest
from streamlit.runtime.scriptrunner import get_script_run_ctx

from headlight.app.export.view import permalink
from headlight.app.state import session
from headlight.app.state.pages import HOME, PAGES
from headlight.app.state.settings import SETTINGS
from tests.app.common import App
from tests.app.test_anything_typed import ALIVE, LETTERS, well

SECONDS = 1
CHOSEN = [
    dict(model="uneven", source="the dog sees\nthe cat", line="the cat", target="Ein Hund",
         kind="decoder", layer=5, head=3, causal=False, pad_to=6, scale="per row", words=True),
    dict(model="uneven", source="the dog", changes="cross.1.2=off; encoder=hide:1; all=mask:none",
         other="the cat", shows="difference", order="entropy", average="heads", least=0.1),
    dict(model="short", source="a man", score_at=2, score_token="man", sweep="tokens"),
    dict(model="classifier", source="the dog sees", step="256", special="hide"),
    dict(model="en-de", source="A dog runs.", other_model="uneven", beginning="Ein", branches="2",
         how="Beam search", at="Softmax", follow="2 dog", weights_of="selected head"),
]  # fmt: skip
LINKS = [permalink(chosen, HOME).removeprefix("?") for chosen in CHOSEN]
ODD = [
    *ALIVE, *LETTERS, "&", "=", "%", "%00", "%ff", "%2", "+", "#", ";", "&&", "model", "-1", "0",
    "99999999999999999999", "1e309", "nan", "true", "x" * 7000,
]  # fmt: skip


def mutated(link: str, chance: random.Random) -> str:
    """With one to five things changed: letters, values, parameters."""
    for _ in range(chance.randint(1, 5)):
        start, end = sorted(chance.choices(range(len(link) + 1), k=2))
        parts = link.split("&")
        match chance.randrange(6):
            case 0:
                link = link[:start] + link[min(end, start + 3) :]
            case 1:
                link = link[:start] + chance.choice(ODD) + link[start:]
            case 2:  # another parameter, or the same again
                link += f"&{chance.choice([*SETTINGS])}={chance.choice(ODD)}"
            case 3:
                one = chance.randrange(len(parts))
                name, _, _ = parts[one].partition("=")
                parts[one] = f"{name}={chance.choice(ODD)}"
                link = "&".join(parts)
            case 4:  # two values in each other's places
                one, other = (chance.choice(parts).partition("=") for _ in range(2))
                link += f"&{one[0]}={other[2]}"
            case 5:
                link = link[:end]
    return link


@pytest.mark.parametrize("number", [16, pytest.param(1000, marks=pytest.mark.long)])
def test_a_mutated_link_opens_a_page(page, number):
    chance, pages = random.Random(number), [entry for key, entry in PAGES.items() if key != HOME]
    longest, refused = 0.0, 0
    page.query_params.update(parse_qs(LINKS[0]))
    page.run()  # imports and loads
    for _ in range(number):
        link = mutated(chance.choice(LINKS), chance)
        page = App()
        page.query_params.update(parse_qs(link, keep_blank_values=True))
        entry = chance.choice(pages)
        start = time.process_time()
        try:
            well(page.run())
            longest = max(longest, time.process_time() - start)
            well(page.switch_page(entry.key).run())
        except BaseException:
            print(entry.key, link[:2000])
            raise
        refused += bool(page.error)
    print(f"{number} links, {refused} with an error in a sentence, longest {longest:.2f} s")
    assert longest <= SECONDS


NUMBERS = {key: s for key, s in SETTINGS.items() if type(s.default) in (int, float)}
BEYOND = ["inf", "-inf", "1e400", "Infinity", "nan", "9" * 400, "-" + "9" * 400, "1e308", "5e-324",
          "-0", "0x10", "٣", "1_0", "2.5", "1e0", " 3", ""]  # fmt: skip


@pytest.mark.parametrize("number", [9, pytest.param(2000, marks=pytest.mark.long)])
def test_numbers_at_their_limits_and_beyond_open_a_page(new_page, number):
    chance, keys = random.Random(number), [*PAGES]
    for turn in range(number):
        values = {
            key: [s.least, s.most, s.least - 1, s.most + 1, *BEYOND] for key, s in NUMBERS.items()
        }
        link = {key: str(chance.choice(some)) for key, some in values.items()}
        if turn < len(BEYOND):  # each everywhere
            link = dict.fromkeys(NUMBERS, BEYOND[turn])
        link |= {"lesson": "1-shares"} if turn % 3 == 0 else {"model": "uneven", "source": "a dog"}
        key = "generate" if turn % 3 == 1 else chance.choice(keys)
        page = new_page()
        page.query_params.update(link)
        try:
            well(page.switch_page(key).run())
        except BaseException:
            print(key, link)
            raise


def test_back_as_the_first_run_of_a_session(page, monkeypatch):
    """After a restart of the server; it used to raise."""

    class Back:
        is_history_navigation = True

        def __getattr__(self, name):
            return getattr(get_script_run_ctx(), name)

    monkeypatch.setattr(session, "get_script_run_ctx", Back)
    page.query_params.update(model="uneven", source="the dog", layer="2")
    well(page.run())
    assert page.session_state["layer"] == 2
