"""Alignments by hand: on random translators whose gold is the links of one of their heads."""

import json
import random

import numpy as np
import pytest

from headlight.app.command import main
from headlight.model.analysis import alignment
from headlight.model.analysis.alignment import GOLD, INFLUENCE, pharaoh
from headlight.model.checkpoint import load
from headlight.model.pretrained.command import add
from headlight.model.probing.changes import DRAWN
from headlight.model.surveys.gold_alignments import (
    GoldPair,
    choose_heads,
    error_rate,
    places_of,
    read_gold,
    weights_of,
)
from headlight.model.training.data import DataError
from tests.model.common import in_short
from tests.model.pretrained.folders import FAMILIES, TEXT, write

WORDS = ["the", "dog", "sees", "cat", "and", "12", "cats", "it", ",", "oder", "Hund", "sieht"]
PLANTED, OTHER = (1, 2), (0, 1)  # layer and head, from 0


def added(kind, folder):
    """A model as `pretrained add` leaves it."""
    write(folder / "source", kind)
    return add(str(folder / "source"), folder / "models").folder


def links_of_head(weights, head, shift):
    """Of a gold pair, without asking the code that chooses."""
    of_head = weights.attention.weights[shift][head]
    best = of_head.argmax(axis=-1)
    return {(int(weights.sources[i]), int(weights.targets[j])) for j, i in enumerate(best)}


def write_gold(checkpoint, file, heads, n=12):
    """Random pairs; gold are the links that `heads`, one for each pair, make at the row read."""
    chance, rows = random.Random(1), []
    for number in range(n):
        source, target = (chance.choices(WORDS, k=chance.randint(4, 8)) for _ in range(2))
        empty = GoldPair(number + 1, tuple(source), tuple(target), frozenset())
        links = links_of_head(weights_of(checkpoint, empty), heads[number], 0)
        rows.append({"src_words": source, "tgt_words": target, "alignment": sorted(links)})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def translator(tmp_path):
    return added("marian", tmp_path)


def test_the_head_of_the_first_half_is_chosen_and_measured_on_the_second(
    translator, tmp_path, capsys
):
    checkpoint, gold = load(translator), tmp_path / "gold.jsonl"
    write_gold(checkpoint, gold, [PLANTED] * 6 + [OTHER] * 6)
    pairs = read_gold(gold)
    rest = [weights_of(checkpoint, pair) for pair in pairs[6:]]
    expected = error_rate([frozenset(links_of_head(w, PLANTED, 0)) for w in rest], pairs[6:])
    capsys.readouterr()
    main(["align", str(translator), "--gold", str(gold), "--choose"])
    said = capsys.readouterr().out
    assert "heads by lines 1 to 6: layer 2 head 3 (the word that is read)\n" in said
    assert "lines 7 to 12 (6 pairs)" in said and f"heads      {expected}\n" in said
    kept = load(translator).alignment
    assert kept.heads == [PLANTED] and kept.by == GOLD and kept.together == 1
    main(["align", str(translator), "--gold", str(gold)])
    said = capsys.readouterr().out
    assert "lines 1 to 12" in said and "no chosen heads" not in said
    assert load(translator).card["title"] == "source"  # what `add` noted is still there


def test_links_that_both_directions_have(translator, tmp_path, capsys):
    gold = tmp_path / "gold.jsonl"
    write_gold(load(translator), gold, [PLANTED] * 4, n=4)
    capsys.readouterr()
    main(["align", str(translator), "--gold", str(gold), "--back", str(translator)])
    said = capsys.readouterr().out
    pairs = read_gold(gold)
    one, other = (
        [weights_of(load(translator), pair) for pair in some]
        for some in (pairs, [pair.turned() for pair in pairs])
    )
    both = [
        a.links(a.influence) & frozenset((j, i) for i, j in b.links(b.influence))
        for a, b in zip(one, other, strict=True)
    ]
    assert f"both directions  {error_rate(both, pairs)}\n" in said


def test_without_chosen_heads_it_is_by_influence_and_that_is_said(translator, tmp_path, capsys):
    out, lines = tmp_path / "links.txt", tmp_path / "lines.tsv"
    lines.write_text(f"{TEXT}\tthe cat sees\n{TEXT}\n")
    capsys.readouterr()
    main(["align", str(translator), "--file", str(lines), "--out", str(out)])
    assert capsys.readouterr().err == "no chosen heads: by influence\n"
    checkpoint = load(translator)
    runs = [checkpoint.run(TEXT, "the cat sees"), checkpoint.run(TEXT)]
    expected = [alignment.of_influence(checkpoint.model, run).links() for run in runs]
    assert out.read_text() == "".join(pharaoh(links) + "\n" for links in expected)
    for more in (["--by", "1.2"], ["--row", "read"]):
        with pytest.raises(SystemExit, match="No aligning heads were chosen"):
            main(["align", str(translator), "--file", str(lines), "--out", str(out), *more])
    main(["align", str(translator), TEXT, "--out", str(out), "--by", "1.2", "--row", "read"])
    assert not capsys.readouterr().err


@pytest.mark.parametrize("kind", in_short(FAMILIES, "bert", "llama-groups", "marian"))
def test_an_added_model_is_described_by_a_file_of_sentences(kind, tmp_path, capsys):
    folder, lines = added(kind, tmp_path), tmp_path / "lines.txt"
    with pytest.raises(SystemExit, match=r"names no task. Give a --file of sentences\."):
        main(["describe", str(folder)])
    lines.write_text(f"{TEXT}\nthe cat sees\n")
    capsys.readouterr()
    main(["describe", str(folder), "--file", str(lines)])
    assert "opened on" in capsys.readouterr().out
    checkpoint = load(folder)
    sites = {(site.kind, site.layer): site for site in checkpoint.model.sites()}
    opens = checkpoint.card["opens"]
    assert opens["head"] < sites[opens["kind"], opens["layer"]].n_heads
    assert "domain" not in checkpoint.card  # of its training's text nothing is known
    names = {site.name for site in checkpoint.model.sites()}
    assert {*checkpoint.means} == names | {name + DRAWN for name in names}
    assert checkpoint.trace(TEXT, changes="all.1=mean; all.2=resample").run.changes
    if kind == "marian":
        assert checkpoint.alignment.by == INFLUENCE
    else:
        assert checkpoint.alignment is None
        lines.write_text("a text\tand a target\n")
        with pytest.raises(SystemExit, match="reads one text and no target"):
            main(["describe", str(folder), "--file", str(lines)])


def test_what_cannot_be_described_is_one_sentence(tmp_path):
    folder, lines = added("gpt2", tmp_path), tmp_path / "lines.txt"
    lines.write_text("the dog sees " * 60)
    with pytest.raises(SystemExit, match="None of these sentences fits the model"):
        main(["describe", str(folder), "--file", str(lines)])
    with pytest.raises(SystemExit, match="There is no file"):
        main(["describe", str(folder), "--file", str(tmp_path / "nowhere")])
    assert not (folder / "means.safetensors").exists()
    (folder / "means.safetensors").write_bytes(b"spoilt")
    with pytest.raises(SystemExit, match="cannot be read"):
        main(["describe", str(folder), "--file", str(lines)])


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{",
        "[" * 10**5,
        '{"src_words": "a", "tgt_words": ["b"], "alignment": []}',
        '{"src_words": ["a b "], "tgt_words": ["b"], "alignment": []}',
        '{"src_words": ["a"], "tgt_words": ["b"], "alignment": [[0, 1]]}',
        '{"src_words": ["a"], "tgt_words": ["b"], "alignment": [[0, 0, 0]]}',
    ],
)
def test_a_line_that_is_no_alignment_is_told(tmp_path, line):
    file = tmp_path / "gold.jsonl"
    file.write_text('{"src_words": ["a"], "tgt_words": ["b"], "alignment": [[0, 0]]}\n' + line)
    with pytest.raises(DataError, match="line 2: a line of gold alignments is"):
        read_gold(file)
    file.write_text('{"src_words": ["a"], "tgt_words": ["a"], "alignment": [[0, 0]]}')
    with pytest.raises(SystemExit, match="one pair is not enough"):  # to be halved
        main(["align", "copy", "--gold", str(file), "--choose"])


def test_a_word_of_several_tokens_and_several_words_of_one():
    en_de = load("en-de")
    text = en_de.encode("a well-known dog , 2000,")
    places = places_of(text, ["a", "well-known", "dog", ",", "2000,"])
    assert places.tolist() == [0, 1, 1, 1, 2, 3, 4, 4]  # a hyphen, a comma: words of their own


def test_the_interval_is_that_of_pairs_drawn_again():
    chance = np.random.default_rng(0)
    pairs, found = [], []
    for number in range(1, 41):
        links = frozenset((i, i) for i in range(10))
        pairs.append(GoldPair(number, ("w",) * 10, ("w",) * 10, links))
        right = chance.random(10) < chance.random()
        found.append(frozenset((i if ok else (i + 1) % 10, i) for i, ok in enumerate(right)))
    rate = error_rate(found, pairs)
    drawn = [chance.integers(40, size=40) for _ in range(4000)]
    draws = [
        alignment.error_rate([found[i] for i in some], [pairs[i].links for i in some])
        for some in drawn
    ]
    assert rate.value == alignment.error_rate(found, [pair.links for pair in pairs])
    assert (rate.low, rate.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.012)
    assert str(rate).startswith(f"{100 * rate.value:.1f}% (")


def test_where_nothing_is_linked_nothing_is_chosen(tmp_path):
    reverse = load("reverse")
    weights = weights_of(reverse, GoldPair(1, ("a", "b"), ("b", "a"), frozenset()))
    assert choose_heads([weights]) is None
    linked = weights_of(reverse, GoldPair(1, ("a", "b"), ("b", "a"), frozenset({(0, 1), (1, 0)})))
    assert choose_heads([linked]).words == 2
