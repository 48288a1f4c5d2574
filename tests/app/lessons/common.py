"""What tests of lessons share: models and runs, each once."""

import dataclasses
from functools import cache
from random import Random

from headlight.app.lessons.question import Draw
from headlight.app.lessons.question_types import TYPES
from headlight.app.lessons.sentence_run import SentenceRun
from headlight.model.checkpoint import load

loaded = cache(load)
SENTENCES = {
    "en-de": (
        "Two men are talking while a woman reads the newspaper.",
        "A girl reads a book while two boys play with a dog.",
        "Four men standing near a yellow car.",
        "A man in an orange hat is staring at something.",
    ),
    "en-fr": (
        "A man in a black and white shirt is riding a horse.",
        "Several people standing on a subway platform.",
    ),
    "copy": ("h e a d l i g h t",),
    "reverse": ("a b c d e f g",),
    "sort": ("d a c b e", "q w e r t y u i o p"),
    "induction": ("m a r k e t s m a r k e t s", "f i v e f i v e", "s u n d a y s u n d a"),
    "reviews": ("a gripping story told with wit and great warmth .",),
}


@cache
def run_of(model, sentence):
    return SentenceRun(loaded(model), model, sentence)


def draw_of(run, keys, seed, head="", kind=""):
    rng = Random(f"{keys}/{seed}")
    return Draw(keys, run, rng, run.head(head, kind, rng) if head else None)


def drawn(type_name, keys, run, seed, head="", kind=""):
    """A question without a lesson, and the draw it came from."""
    drawing = draw_of(run, keys, seed, head, kind)
    return TYPES[type_name].draw(drawing), dataclasses.replace(drawing)
