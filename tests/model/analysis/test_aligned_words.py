"""How often the chosen heads of `en-fr` link what a word list says belongs together: colours and
their nouns in captions, and negations in everyday sentences."""

import gzip
import os
from itertools import pairwise
from pathlib import Path

import pytest

DATA = os.environ.get("HEADLIGHT_DATA")
LEAST = 0.8
CAPTIONS = "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"
# English, and what it may be in French.
COLOURS = """
black noir noire noirs noires; blue bleu bleue bleus bleues; brown brun brune bruns brunes marron
gray gris grise grises; green vert verte verts vertes; grey gris grise grises; red rouge rouges
orange orange orangé orangée oranges; pink rose roses; white blanc blanche blancs blanches
purple violet violette violets violettes mauve; yellow jaune jaunes"""
NOUNS = """
bike vélo; building bâtiment; car voiture; cat chat; coat manteau; dog chien; dogs chiens
dress robe; grass herbe; hair cheveux; hat chapeau; helmet casque; house maison; man homme
jacket veste blouson; pants pantalon pantalons; shirt chemise maillot haut; shorts short shorts
skirt jupe; truck camion; uniform uniforme tenue; vest gilet; wall mur; water eau; woman femme"""
COLOURS, NOUNS = (
    dict(one.strip().split(" ", 1) for one in of.strip().replace("\n", ";").split(";"))
    for of in (COLOURS, NOUNS)
)

pytestmark = pytest.mark.long


def lines(*path: str) -> list[str]:
    if not DATA:
        pytest.skip("HEADLIGHT_DATA does not name the folder that holds the data sets")
    with gzip.open(Path(DATA, *path), "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def place(words: list[str], wanted: str) -> int | None:
    """Where one of the words stands that a list allows; None if not exactly once."""
    found = [i for i, word in enumerate(words) if word in wanted.split()]
    return found[0] if len(found) == 1 else None


def aligned(model, text: str, target: str):
    """The words of both texts in small letters, and for each target word its source word."""
    weights = model.align(text, target)
    source, written = (
        [word.lower() for word in words] for words in (weights.source, weights.target)
    )
    return source, written, {target: source for source, target in weights.links()}


def test_colours_and_their_nouns_are_linked(en_fr):
    right = []
    for name in CAPTIONS:
        for pair in zip(
            *(lines("multi30k", f"{name}.{of}.gz") for of in ("en", "fr")), strict=True
        ):
            if not COLOURS.keys() & set(pair[0].lower().split()):
                continue
            source, target, links = aligned(en_fr, *pair)
            for i, (colour, noun) in enumerate(pairwise(source)):
                if colour not in COLOURS or noun not in NOUNS:
                    continue
                if source.count(colour) > 1 or source.count(noun) > 1:
                    continue
                at = place(target, COLOURS[colour]), place(target, NOUNS[noun])
                if None not in at:
                    right.append([links[word] for word in at] == [i, i + 1])
    print(f"{sum(right)} of {len(right)}")
    assert len(right) > 100 and sum(right) >= LEAST * len(right)


def test_not_is_linked_with_ne_or_pas(en_fr):
    right = []
    for line in lines("tatoeba", "test.en-fr.tsv.gz"):
        source, target, links = aligned(en_fr, *line.split("\t")[:2])
        negations = [i for i, word in enumerate(source) if word == "not" or word.endswith("n't")]
        negated = [i for i, word in enumerate(target) if word in ("ne", "pas") or word[:2] == "n'"]
        if len(negations) == 1 and negated:
            right.append(any(links[word] == negations[0] for word in negated))
    print(f"{sum(right)} of {len(right)}")
    assert len(right) > 100 and sum(right) >= LEAST * len(right)
