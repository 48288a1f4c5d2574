"""Laws of the check-up of a whole model."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headlight.model.checking.whole.checkup import check_model
from headlight.model.checking.whole.faults import CONSEQUENCES, FAULTS
from headlight.model.checking.whole.learning import check_decoding, check_loss
from headlight.model.misconceptions import OF_ATTENTION, OF_MASKS
from tests.conftest import ROOT, long_but
from tests.model.checking.whole.cases import RIGHT, WRONG
from tests.model.checking.whole.report import NAMED, outcome, tried
from tests.model.checking.whole.zoo import planted
from tests.model.checking.whole.zoo.modern import Modern

LONGEST = 20  # seconds for one model on a busy machine
SAMPLE = (  # one for each way of naming a fault
    "MiniGPT: split", "MiniGPT: no causal", "MiniGPT: axis heads", "MiniGPT: sdpa dropout",
    "MiniGPT: after", "MiniGPT: no scale", "TorchSeq2Seq: memory padding", "Pooled: mean of all",
    "TorchSeq2Seq: batch_first", "Scratch: no cross", "Scratch: no residual",
    "Modern: half rotated", "Modern: backwards", "Modern: zeros", "Labelled: queries",
)  # fmt: skip
SOUND = ("nanoGPT, SDPA", "nn.Transformer", "Weighs", "by hand, masks given", "tagger")


@pytest.mark.parametrize("name", long_but(SAMPLE, WRONG))
def test_a_fault_is_named(name):
    found = tried(WRONG[name])
    assert outcome(WRONG[name], found) == NAMED, str(found)
    assert found.seconds < LONGEST


@pytest.mark.parametrize("name", long_but(SOUND, RIGHT))
def test_a_right_model_is_not_called_wrong(name):
    found = tried(RIGHT[name])
    assert found and not found.wrong, str(found)
    assert sum(each.state == "right" for each in found.findings) >= 8, str(found)
    assert found.seconds < LONGEST


def global_state():
    return (
        torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled(), torch.is_grad_enabled(),
        vars(F)["has_torch_function"], F.softmax, torch.random.get_rng_state().tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("fault", ["", "padding inverted", "batch_first", "zeros"])
def test_a_check_up_leaves_everything_as_it_was(fault):
    model = Modern("rotary", fault) if fault == "zeros" else planted.TorchSeq2Seq(fault)
    model.train()
    weights = {name: each.clone() for name, each in model.state_dict().items()}
    modes = [(m.training, getattr(m, "batch_first", None)) for m in model.modules()]
    before = global_state()
    check_model(model)
    assert global_state() == before
    assert modes == [(m.training, getattr(m, "batch_first", None)) for m in model.modules()]
    assert all(torch.equal(weights[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None and each.requires_grad for each in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_wrong_finding_says_the_row_the_line_the_cure_and_the_lesson():
    found = check_model(planted.MiniGPT("no causal"))
    (worst,) = (each for each in found.findings if each.state == "wrong")
    row, token = divmod(int(worst.found.triu(1).argmax()), len(worst.found))
    assert f"Row {row + 1} moves by" in worst.case and f"token {token + 1} changes" in worst.case
    assert "planted.py, line" in worst.where and "softmax" in worst.where
    lines = str(worst).split("\n")
    assert FAULTS["no causal mask"].cure in lines[2] and lines[3].endswith("Lesson 4: masks")


def test_the_matrix_of_a_right_model_is_what_is_expected():
    found = check_model(planted.MiniGPT())
    future = next(each for each in found.findings if each.trial == "The future")
    assert torch.equal(future.found > 0, future.expected > 0)


def test_an_adapter_says_how_a_model_is_called():
    swapped = lambda model, src: model(src.T).transpose(0, 1)  # noqa: E731
    assert check_model(planted.LengthFirst(), adapter=swapped, kind="causal")
    found = check_model(planted.LengthFirst(), adapter=lambda model, src: model(src), kind="causal")
    assert "batch and length swapped" in found.wrong


def test_a_model_with_the_length_first_is_called_so():
    found = check_model(planted.LengthFirst(), kind="causal")
    assert found and "(length, batch)" in found.how


@pytest.mark.parametrize("model", [nn.Bilinear(3, 4, 5), nn.Linear(3, 4)])
def test_what_cannot_be_called_is_no_verdict(model):
    found = check_model(model)
    assert found and {each.state for each in found.findings} <= {"cannot tell"}, str(found)
    assert "adapter" in str(found)


class Odd(nn.Module):
    """Returns whatever `of` makes of its logits."""

    def __init__(self, of):
        super().__init__()
        self.of, self.embed, self.out = of, nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, ids):
        return self.of(self.out(self.embed(ids)))


ODD = {
    "None": lambda x: None, "text": lambda x: "x", "nothing": lambda x: (), "a number": torch.sum,
    "flat": torch.flatten, "4 axes": lambda x: x[:, None], "complex": torch.fft.fft,
    "sparse": lambda x: x.to_sparse(), "no numbers": lambda x: x.to("meta"),
    "an error": lambda x: 1 / 0, "one row less": lambda x: x[:, :2], "infinite": lambda x: x / 0,
    "nested": lambda x: torch.nested.nested_tensor([x[0]]), "a lock": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["", "causal"])
@pytest.mark.parametrize("name", ODD)
def test_whatever_a_model_returns_there_is_a_report(name, kind):
    model = Odd(ODD[name])
    if name == "a lock":
        model.lock = threading.Lock()
    found = check_model(model, kind=kind)
    assert found.findings and all(len(line) < 400 for line in str(found).splitlines())


def test_what_is_no_model_or_no_kind_is_refused():
    with pytest.raises(ValueError, match=r"nn\.Module"):
        check_model(planted.MiniGPT)
    with pytest.raises(ValueError, match="Choose from"):
        check_model(planted.MiniGPT(), kind="decoder")


def test_names_lessons_and_consequences_exist():
    lessons = {path.stem for path in (ROOT / "app" / "lessons" / "en").glob("*.md")}
    assert {each.lesson for each in FAULTS.values()} - {""} <= lessons
    assert all(names <= FAULTS.keys() for pair in CONSEQUENCES for names in pair)
    known = {**OF_ATTENTION, **OF_MASKS}
    shared = {"√d left out", "divided by d", "√d_model", "multiplied by √d", "rows for columns"}
    assert shared | {"True for False", "without the diagonal"} <= FAULTS.keys() & known.keys()


def ce(logits, target, **how):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), **how)


def nll(logits, target):
    return F.nll_loss(logits.flatten(0, 1), target.flatten(), ignore_index=0)


LOSSES = {
    "right": (lambda m, s, t: ce(m(s, t[:, :-1]), t[:, 1:], ignore_index=0), []),
    "smoothed": (
        lambda m, s, t: ce(m(s, t[:, :-1]), t[:, 1:], ignore_index=0, label_smoothing=0.1), [],
    ),
    "log-probabilities": (lambda m, s, t: nll(m(s, t[:, :-1]), t[:, 1:]), []),
    "not shifted": (lambda m, s, t: ce(m(s, t), t, ignore_index=0), ["target not shifted"]),
    "shifted twice": (
        lambda m, s, t: ce(m(s, t[:, :-1])[:, :-1], t[:, 2:], ignore_index=0), ["shifted twice"],
    ),
    "padding": (lambda m, s, t: ce(m(s, t[:, :-1]), t[:, 1:]), ["loss counts padding"]),
    "a sum": (
        lambda m, s, t: ce(m(s, t[:, :-1]), t[:, 1:], ignore_index=0, reduction="sum"),
        ["loss does not start at ln V"],
    ),
    "softmax twice": (
        lambda m, s, t: ce(m(s, t[:, :-1]).softmax(-1), t[:, 1:], ignore_index=0),
        ["softmax twice"],
    ),
    "fails": (lambda m, s, t: m.transformer(s), []),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_judged_by_models_that_know_the_answer(name):
    loss, faults = LOSSES[name]
    found = check_loss(loss, 20)
    assert found.faults == faults
    assert ("cannot tell" in str(found)) == (name == "fails")


def test_a_loss_of_one_text_is_judged_too():
    assert not check_loss(
        lambda m, x: ce(m(x[:, :-1]), x[:, 1:], ignore_index=0), 20, pair=False
    ).faults
    found = check_loss(lambda m, x: ce(m(x), x, ignore_index=0), 20, pair=False)
    assert found.wrong == ["target not shifted"]


def greedy(model, src, start=1, stops=True, row=-1, rank=0, most=8):
    ids = torch.tensor([[start]])
    for _ in range(most):
        following = model(src, ids)[:, row].topk(rank + 1).indices[:, rank]
        ids = torch.cat([ids, following[:, None]], 1)
        if stops and int(following) == 2:
            break
    return ids[0].tolist()


@pytest.mark.parametrize(("how", "faults"), [
    ({}, []), ({"stops": False}, ["never stops"]), ({"start": 2}, ["start token missing"]),
    ({"row": 0}, ["reads the wrong row"]), ({"rank": 1}, ["not greedy"]),
])  # fmt: skip
def test_decoding_is_judged_by_a_model_that_knows_the_text(how, faults):
    assert check_decoding(lambda m, s: greedy(m, s, **how)).faults == faults


def beam(model, src, normed, k=3):
    done, live = [], [([1], 0.0)]
    for _ in range(8):
        new = []
        for ids, score in live:
            best = model(src, torch.tensor([ids]))[0, -1].topk(k)
            new += [([*ids, int(i)], score + float(v)) for v, i in zip(*best, strict=True)]
        best = sorted(new, key=lambda each: -each[1])[:k]
        done += [each for each in best if each[0][-1] == 2]
        live = [each for each in best if each[0][-1] != 2]
    return max(done, key=lambda each: each[1] / (len(each[0]) - 1 if normed else 1))[0]


@pytest.mark.parametrize("normed", [True, False])
def test_beams_are_compared_by_length(normed):
    found = check_decoding(lambda m, s: beam(m, s, normed), beams=True)
    assert found.faults == ([] if normed else ["beam prefers short texts"])
