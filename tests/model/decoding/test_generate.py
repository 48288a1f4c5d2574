"""Generation: the same paths as translate and beam_search, the probabilities of the teacher-forced
pass, sampling against its distribution and against Hugging Face's truncation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from headlight.model import load
from headlight.model.checkpoint import SHIPPED
from headlight.model.decoding import generate
from headlight.model.decoding.generate import Beam, Greedy, Sampling, truncated
from headlight.model.decoding.search import beam_search, length_penalty
from headlight.model.masks import Masks
from headlight.model.probing.changes import parse
from headlight.model.probing.run import Run
from headlight.model.probing.trace import CannotRead, ids_of, read_of
from headlight.model.tokenizer import Encoding
from tests.model.common import in_short

TEXT = {"en-de": "A young boy in a red shirt runs on the beach."}
WRITERS = [
    path.name
    for path in sorted(SHIPPED.iterdir())
    if path.name not in ("reviews", "induction", "english")
]
HOWS = [Greedy(), Beam(4), Beam(2, 0.0), Sampling(0.8, 20, 0.9, seed=3)]


def text_of(name):
    return TEXT.get(name, "hello")


def run_of(checkpoint, name="", **more):
    return Run((checkpoint.tokenizer.encode(text_of(name)),), **more)


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("name", in_short(WRITERS, "en-de", "reverse"))
def test_probabilities_are_those_of_the_teacher_forced_pass(name, how):
    checkpoint = load(name)
    found = checkpoint.generate(run_of(checkpoint, name), how)
    target = checkpoint.tokenizer.encoding(found.ids)
    run = Run((checkpoint.tokenizer.encode(text_of(name)), target))
    logits = torch.tensor(checkpoint.trace_run(run).logits).double()
    shares = logits.softmax(dim=-1).numpy()[: len(found.probabilities)]
    assert np.abs(found.probabilities - shares).max() <= 1e-5
    ids = [*found.ids, *([checkpoint.model.config.eos_id] if found.ended else [])]
    assert len(ids) == len(shares)
    assert found.score == pytest.approx(np.log(shares[range(len(ids)), ids]).sum(), abs=1e-4)


UNDER = [  # masks, padding, changes
    (Masks(), 0, ""), (Masks(causal=False), 0, ""), (Masks(memory_padding=False), 30, ""),
    (Masks(), 0, "cross.3=off; encoder=hide:2"), (Masks(), 0, "decoder=mask:none"),
]  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_the_greedy_path_is_the_translation(name):
    checkpoint = load(name)
    for masks, pad_to, line in UNDER if name == "en-de" else UNDER[:1]:
        run = run_of(checkpoint, name, masks=masks, pad_to=pad_to, changes=parse(line))
        found = checkpoint.generate(run)
        assert found.ids == checkpoint.translate(text_of(name), masks, pad_to, line).ids
        assert found.ended or (masks, pad_to, line) != UNDER[0]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("name", in_short(WRITERS, "en-de", "reverse"))
def test_the_winning_beam_is_that_of_beam_search(name, alpha):
    checkpoint = load(name)
    run = run_of(checkpoint, name)
    found = checkpoint.generate(run, Beam(4, alpha))
    texts = read_of(checkpoint.model, Run((*run.texts, Encoding((), (), ()))))
    src = ids_of(checkpoint.model, texts)[0]
    (expected,) = beam_search(checkpoint.model, src, 4, alpha)
    assert list(found.ids) == expected
    best = max(one.score for step in found.beams for one in step if one.ended)
    penalty = length_penalty(len(found.ids) + 1, alpha)
    assert best == pytest.approx(found.score / penalty, abs=1e-4)


def test_candidates_of_beams_are_a_tree_whose_numbers_add_up():
    en_de = load("en-de")
    found = en_de.generate(run_of(en_de, "en-de"), Beam(5))
    rows = {0: ((), 0.0)}  # place → its ids and log-probability
    ended = []
    for length, step in enumerate(found.beams, start=1):
        following = {}
        for one in step:
            ids, before = rows[one.parent]
            assert one.log_probability <= before + 1e-6
            assert one.score == pytest.approx(one.log_probability / length_penalty(length, 0.6))
            if one.ended:
                ended.append((one.score, ids))
            if one.row is not None:
                following[one.row] = ((*ids, one.token), one.log_probability)
        assert len(following) == min(5, len([one for one in step if one.token != 2]))
        scores = [one.log_probability for one in step]
        assert scores == sorted(scores, reverse=True)
        rows = following
    assert max(ended)[1] == found.ids and found.first == 0
    assert found.drawn is found.probabilities and found.nbytes > found.drawn.nbytes


@pytest.mark.parametrize("how", [Greedy(), Beam(3), Sampling(seed=5)], ids=str)
def test_a_beginning_stays_and_the_model_goes_on_from_it(how):
    en_de = load("en-de")
    run = run_of(en_de, "en-de")
    beginning = en_de.tokenizer.encode("Eine Frau").ids
    found = en_de.generate(run, how, beginning)
    assert found.ids[: len(beginning)] == beginning and len(found.ids) > len(beginning)
    again = en_de.generate(run, how, found.ids[: len(beginning) + 2])
    if not isinstance(how, Sampling):
        assert again.ids == found.ids
    assert en_de.generate(run, how, beginning, max_tokens=2).ids == beginning
    with pytest.raises(CannotRead, match="there is room for only 1"):
        en_de.generate(run, how, beginning, max_tokens=1)


@pytest.mark.parametrize("name", ["en-de", "induction", "english"])
def test_a_pad_that_one_begins_with_is_a_token_like_others(name):
    checkpoint = load(name)
    found = checkpoint.generate(run_of(checkpoint, name), beginning=[0, 50])
    seen = checkpoint.trace_run(found.run)
    rows = slice(found.first, found.first + len(found.path))
    shares = torch.tensor(seen.logits[rows]).double().softmax(dim=-1).numpy()
    assert np.abs(found.probabilities - shares).max() <= 1e-5
    wanted = np.log(shares[range(len(found.path)), list(found.path)])
    assert np.abs(seen.log_probabilities[rows] - wanted).max() <= 1e-4


def test_a_classifier_writes_nothing():
    reviews = load("reviews")
    with pytest.raises(CannotRead, match="writes no text"):
        reviews.generate("A good film.")


@pytest.mark.parametrize(
    "how",
    [Sampling(0.7), Sampling(1.3, 10), Sampling(1.0, 0, 0.8), Sampling(0.5, 50, 0.9)],
    ids=str,
)
def test_what_is_drawn_from_is_what_hugging_face_draws_from(how):
    logits = torch.randn(7, 300, generator=torch.Generator().manual_seed(1)).double() * 3
    theirs = TemperatureLogitsWarper(how.temperature)(None, logits)
    if how.top_k:
        theirs = TopKLogitsWarper(how.top_k)(None, theirs)
    if how.top_p < 1:
        theirs = TopPLogitsWarper(how.top_p)(None, theirs)
    assert torch.allclose(truncated(logits, how), theirs.softmax(dim=-1), atol=1e-12)


def test_draws_have_the_frequencies_of_the_truncated_softmax():
    """5,000 first tokens; the same seed gives the same text."""
    en_de = load("en-de")
    run, how = run_of(en_de, "en-de"), Sampling(1.5, 12, 0.99, seed=0)
    first = en_de.generate(run, how)
    assert first.ids == en_de.generate(run, how).ids
    assert first.ids != en_de.generate(run, replace(how, seed=1)).ids
    best = torch.tensor(first.probabilities[0]).topk(50).values  # of all, the sorting takes long
    expected = truncated(best.log(), how).numpy()
    assert np.allclose(expected[expected > 0], np.sort(first.drawn[0][first.drawn[0] > 0])[::-1])
    ids, _ = generate._walk(
        lambda tgt: best.log()[None], torch.zeros(1, 1, dtype=torch.long), (), 5_000, how, -1
    )
    draws = np.bincount(ids, minlength=len(expected))
    possible = expected > 0
    assert draws[~possible].sum() == 0 and possible.sum() > 3
    wanted = expected[possible] * draws.sum()
    statistic = ((draws[possible] - wanted) ** 2 / wanted).sum()
    halves = torch.tensor([(possible.sum() - 1) / 2, statistic / 2], dtype=torch.float64)
    assert torch.special.gammaincc(*halves) > 0.001  # Pearson's test of frequencies
