"""Each attribution against its direct computation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model.analysis import attribution as module
from headlight.model.analysis.attribution import Attribution, attribution
from headlight.model.analysis.reading import words
from headlight.model.probing.capture import view
from headlight.model.probing.changes import parse
from headlight.model.probing.interventions import replace_output
from headlight.model.probing.run import Run
from headlight.model.probing.sites import predicted_side
from headlight.model.probing.sweeps import Score
from headlight.model.probing.trace import ids_of, read_of, trace
from tests.model.common import encoding, hooks, load, random_ids, random_model

CHANCE = torch.Generator().manual_seed(0)
TEXTS = encoding(random_ids(8, generator=CHANCE)), encoding(random_ids(7, generator=CHANCE))
PRESETS = ["paper", "pre_norm", "bloem", "decoder_only", "van_dijck"]


def case(preset, changes=""):
    """Model, run, row, token in float64."""
    model = random_model(preset).double()
    texts = TEXTS[: len(model.sides())]
    row = 0 if predicted_side(model).predicts == "class" else 4
    return model, Run(texts, changes=parse(changes)), row, 1


def log_probability(model, run, row, token):
    return float(torch.tensor(trace(model, run).logits[row]).double().log_softmax(-1)[token])


def single(weights, found, row):
    """The row of weights, (.., query, key), that the prediction is made from, or their mean."""
    return weights.mean(axis=-2) if found.predicted.predicts == "class" else weights[..., row, :]


def direct(model, run, row):
    """Token by token: attention, rollout and value norms by the papers' formulas."""
    found = trace(model, run)
    kinds = set(found.attention)
    kind = "cross" if "cross" in kinds else next(iter(kinds))
    attention = {kind: a.astype(float) for kind, a in found.attention.items()}
    mean = {kind: a.mean(axis=1) for kind, a in attention.items()}

    def down(layers, x):
        for layer in layers:
            x = (0.5 * layer + 0.5 * np.eye(len(layer))) @ x
        return x

    if kind == "cross":
        n = len(found.tgt.ids)
        source = down(mean["encoder"], np.eye(len(found.src.ids)))
        rolled = np.zeros((n, len(source)))
        for own, cross in zip(mean["decoder"], mean["cross"], strict=True):
            rolled = (0.5 * own + 0.5 * np.eye(n)) @ rolled
            rolled = 0.5 * rolled + 0.5 * cross @ source
    else:
        rolled = down(mean[kind], np.eye(mean[kind].shape[-1]))

    norms = []
    for i, site in enumerate(found.kinds[kind]):
        output = model.get_submodule(site.name).output.weight.cpu().numpy()
        size = output.shape[1] // site.n_heads
        sent = np.zeros((*attention[kind].shape[-2:], len(output)))
        for head in range(site.n_heads):
            columns = output[:, head * size : (head + 1) * size]
            for j in range(sent.shape[1]):
                vector = columns @ found.value[kind][i, head, j].astype(float)
                sent[:, j] += attention[kind][i, head, :, j, None] * vector
        norms.append(np.sqrt((sent**2).sum(axis=-1)))
    by_row = (
        attention[kind].mean(axis=(0, 1)),
        attention[kind][0, 1],
        rolled,
        np.mean(norms, axis=0),
    )
    names = module.BY_ATTENTION, module.HEAD, module.ROLLOUT, module.NORMS
    return {n: single(w, found, row) for n, w in zip(names, by_row, strict=True)}, found


def by_word(values, text):
    groups, _ = words(text)
    return [sum(values[start:stop]) for start, stop in groups if text.ids[start] >= 3]


@pytest.mark.parametrize("changes", ["", "all=temperature:1.5"])
@pytest.mark.parametrize("preset", PRESETS)
def test_what_attention_gives(preset, changes):
    model, run, row, token = case(preset, changes)
    found = attribution(model, run, row, token, (0, 1))
    expected, seen = direct(model, run, row)
    text = seen.texts["src" if "src" in seen.texts else "tgt"]
    for name, values in expected.items():
        n = len(found.words)  # of a decoder alone, as far as it has read
        assert np.abs(found.values[name] - by_word(values, text)[:n]).max() <= 1e-6
    assert not any(values.flags.writeable for values in found.values.values())
    assert hooks(model) == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_gradient_times_input_is_what_a_longer_embedding_adds(preset):
    """Central differences: the score as one token's embedding is stretched."""
    model, run, row, token = case(preset)
    texts = read_of(model, run)
    ids = ids_of(model, texts)
    found = module.gradient_times_input(model, run, Score(row, token))
    for side in model.sides():
        embedding = model.get_submodule(side.embedding).token
        for position in range(len(texts[side.name].ids)):

            def score(factor, embedding=embedding, position=position):
                def stretched(output):
                    output = output.clone()
                    output[:, position] *= factor
                    return output

                with replace_output(embedding, stretched), torch.no_grad():
                    logits = model(*ids, *run.masks.build(model, *ids))[0, row]
                return float(logits.log_softmax(-1)[token])

            step = 1e-6
            expected = (score(1 + step) - score(1 - step)) / (2 * step)
            assert found[side.name][position] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("preset", PRESETS)
def test_removal_is_what_a_pass_without_the_token_loses(preset):
    model, run, row, token = case(preset)
    side = "src" if "src" in {side.name for side in model.sides()} else "tgt"
    found = module.removal(model, run, Score(row, token), side)
    kinds = {site.kind for site in model.sites() if site.key_side == side}
    plain = log_probability(model, run, row, token)
    for i, lost in enumerate(found):
        line = "; ".join(f"{kind}=hide:{i + 1}" for kind in kinds)
        without = log_probability(model, Run(run.texts, changes=parse(line)), row, token)
        assert lost == pytest.approx(plain - without, abs=2e-6)  # traces are float32


def test_padding_and_special_tokens_are_no_words():
    reviews = load("reviews")
    text = "a dull film that never comes alive"
    plain, padded = (
        attribution(view(reviews.model), Run((reviews.tokenizer.encode(text),), pad_to=n), 0, 0)
        for n in (0, 16)
    )
    assert plain.words == padded.words == tuple(text.split())
    for name, values in plain.values.items():
        assert np.abs(values - padded.values[name]).max() <= 1e-5


def test_a_decoder_alone_is_explained_by_what_it_has_read():
    model, (text,) = random_model("decoder_only"), TEXTS[:1]
    apart = replace(text, offsets=tuple((3 * i, 3 * i + 2) for i in range(len(text.ids))))
    for row in (2, 4):
        found = attribution(model, Run((apart,)), row, 1)
        assert tuple(map(str.strip, found.words)) == text.tokens[:row]  # <s> is no word


def test_few_words_are_not_ranked():
    en_de = load("en-de")
    run = en_de.run("A man runs.")
    found = attribution(view(en_de.model), run, 1, run.texts[1].ids[1])
    assert len(found.words) == 4 and found.too_few and found.correlations() == {}
    assert found.in_words() == module.TOO_FEW


def test_orders_and_what_they_say_of_attention():
    values = {"attention": [6, 5, 4, 3, 2, 1], "removal": [-6, 5, -4, 3, 2, 1], "other": [0] * 6}
    values["opposite"] = values["attention"][::-1]
    values["near"] = [6, 5, 4, 3, 1, 2]
    found = Attribution(tuple("abcdef"), {k: np.array(v, float) for k, v in values.items()})
    assert found.order("removal") == [0, 1, 2, 3, 4, 5] == found.order("opposite")[::-1]
    rho = found.correlations()
    assert rho["attention", "removal"] == 1 == -rho["attention", "opposite"]
    assert rho["near", "attention"] == pytest.approx(1 - 6 * 2 / (6 * 35))
    assert np.isnan(rho["attention", "other"])
    said = "on the order of the 6 words (ρ = "
    chance = "; up to 0.88 can be chance). "
    assert f"removal agree {said}1.00{chance}Both put “a” first." in found.in_words()
    assert f"do not agree {said}-1.00{chance}“f” comes first by opposite, “a” by removal." in (
        found.in_words("opposite")
    )
    assert "do not agree" in found.in_words("other")
    middling = dict(found.values, some=np.array([6, 1, 2, 3, 4, 5.0]))
    nine = Attribution(
        tuple("abcdefghi"), {k: np.append(v, [0, 0, 0]) for k, v in middling.items()}
    )
    assert "partly agree" in nine.in_words("opposite", "some")
