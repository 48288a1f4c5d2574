"""Whatever somebody has made of a model's config.json or tokenizer.json, it is read and used, or
refused in a sentence, each within a second of processor time."""

import json
import random
import shutil

import pytest

from headlight.model.pretrained.weights import CannotLoad
from headlight.model.tokenizer import CannotRead
from tests.model.common import under_limits
from tests.model.pretrained.first_use import used
from tests.model.pretrained.folders import TARGET, TEXT, write

FOLDERS = ("bert", "gpt2", "llama-yarn", "llama-groups", "marian")
SECONDS = 1
ODD = [
    None, True, False, 0, -1, 1, 2, 3.5, 64, 10**9, 10**60, 1e-300, 1e300, float("nan"),
    float("inf"), "", "a", "x" * 1000, "</s>", "[UNK]", "(x+x+)+y", "\ud800", [], [0], [[]], {},
    {"a": 1}, [None] * 50,
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folders = {}
    for kind in FOLDERS:
        folders[kind] = tmp_path_factory.mktemp("good") / kind
        write(folders[kind], kind)
    return folders


def places(values, path=()):
    """Where something stands in a JSON document, from its top."""
    items = enumerate(values) if isinstance(values, list) else values.items()
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def mutated(text: str, chance: random.Random) -> str:
    """The document with one to three things changed, or its text."""
    values = json.loads(text)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        every = list(places(values))
        # The words of a vocabulary are the most of it: shallow places come as often as deep ones.
        depth = chance.choice(sorted({len(path) for path in every}))
        *path, last = chance.choice([path for path in every if len(path) == depth])
        inside = values
        for key in path:
            inside = inside[key]
        match chance.randrange(5):
            case 0:
                del inside[last]
            case 1:
                *path, other = chance.choice(every)
                source = values
                for key in (*path, other):
                    source = source[key]
                inside[last] = json.loads(json.dumps(source))  # what stands elsewhere
            case 2 if isinstance(inside, dict):
                inside[f"{last}{chance.choice(['', 's', ' ', 'é'])}"] = inside.pop(last)
            case 3 if isinstance(inside[last], int | float) and chance.random() < 0.8:
                inside[last] *= chance.choice([-1, 0.5, 2, 3, 1000])
            case _:
                inside[last] = chance.choice(ODD)
    text = json.dumps(values)
    if chance.random() < 0.1:
        at = chance.randrange(len(text))
        text = chance.choice([text[:at], text[:at] + "[" * 10**5, text[:at] + text[at + 1 :]])
    return text


@pytest.mark.parametrize("number", [20, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_it_is_used_or_refused(name, number, good, tmp_path):
    chance, refused = random.Random(f"{name} {number}"), 0
    kinds = [kind for kind, folder in good.items() if (folder / name).exists()]
    for i in range(number):
        kind = chance.choice(kinds)
        folder = tmp_path / str(i)
        shutil.copytree(good[kind], folder)
        text = mutated((folder / name).read_text(encoding="utf-8"), chance)
        (folder / name).write_text(text, encoding="utf-8")
        try:
            under_limits(used, folder, TEXT, TARGET, seconds=SECONDS)
        except (CannotLoad, CannotRead) as error:
            message, refused = str(error).replace(str(folder), ""), refused + 1
            assert message.endswith((".", ")")) and "\n" not in message, (kind, message)
            assert len(message) < 500 and "Traceback" not in message, (kind, message)
        except BaseException:
            print(kind, i)
            raise
        shutil.rmtree(folder)
    print(f"{name}: {refused} of {number} refused")
    assert number / 5 < refused < number
