"""What a live page computes, in Node: numbers against PyTorch's, tokens against Hugging Face's, and
bytes, words and samples against the app's."""

import base64
import json
import math
import random
import re
import unicodedata
from functools import cache, partial
from itertools import repeat

import numpy as np
import pytest
import torch

from headlight.app.components.packing import answers_of, pack_trace
from headlight.app.live import build
from headlight.app.live.build import page
from headlight.app.results import word_results
from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.text import findings, formats
from headlight.model.analysis.alignment import ordinary_words
from headlight.model.analysis.reading import Reading
from headlight.model.analysis.residual import lens
from headlight.model.checkpoint import SHIPPED, load
from headlight.model.decoding.generate import CONTINUATION, Beam, Greedy, Sampling, truncated
from headlight.model.decoding.search import beam_search, greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.applying import applied
from headlight.model.probing.changes import CannotChange, look_ahead, parse, written
from headlight.model.probing.head_steps import head_steps
from headlight.model.probing.sweeps import heads_off, sweep

CHECKPOINTS = ("copy", "reverse", "sort", "induction", "en-de", "en-fr", "reviews", "english")
LOGITS, WEIGHTS = 1e-4, 1e-5  # logits relative to the largest, if that is above 1
SWITCHES = ("causal", "src_padding", "tgt_padding", "memory_padding")
LINES = (  # for each kind of attention
    "{k}.1.1=off; {k}.2=off",
    "{k}.1=hide:2; {k}.2.1=temperature:0.5",
    "{k}=mask:window-1",
    "{k}.1.2=mask:strided-2; {k}.2.1=mask:prefix-2",
    "{k}.1=mask:no_first; {k}.2=mask:no_diagonal",
    "{k}.1.1=mask:diagonal; {k}.2.2=mask:none",
    "{k}.2.1=weight:2>1:0.7",
    "{k}.1=forbid:1-2>1,3>2; {k}.2.2=allow:1>2",
    "{k}.1=uniform; {k}.2=mask:causal",
    "{k}.1=skip; all.2.1=temperature:2.0",
    "all=temperature:1e-40",
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Beside a browser that computes too, PyTorch is many times slower with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# Numbers


@pytest.fixture(scope="module")
def engine(node, tmp_path_factory):
    """What `live_engine.js` offers of the page of a checkpoint: ask(what, **question)."""
    folder, evaluate = tmp_path_factory.mktemp("pages"), node.scope("tests/javascript/pages.mjs")

    @cache
    def of(name):
        file = folder / f"{name}.html"
        file.write_text(page(name), encoding="utf-8")
        return partial(ask, evaluate, file)

    return of


def ask(evaluate, file, what, **question):
    """What the page of a file answers."""
    return evaluate("ask", {"file": str(file), "what": what, "question": question})


class Parity:
    """The page's model beside PyTorch's float32 with the same stored weights."""

    def __init__(self, name, ask):
        self.checkpoint, self.ask = load(name), ask
        self.logits = self.weights = 0.0
        self.texts = self.ties = 0

    @cache  # noqa: B019
    def target(self, text):
        return self.checkpoint.tokenizer.decode(self.checkpoint.translate(text).ids)

    def trace(self, text, off="", pad_to=0, line=""):
        masks = Masks(**{name: name != off for name in SWITCHES})
        checkpoint = self.checkpoint
        target = self.target(text) if checkpoint.writes else None
        refused = None
        try:
            trace = checkpoint.trace(text, target, masks, pad_to, line)
        except CannotChange as error:
            refused, trace = error, checkpoint.trace(text, target, masks, pad_to)
        ids = {side: list(encoding.ids) for side, encoding in trace.texts.items()}
        answer = self.ask("trace", ids=ids, masks=vars(masks), line=line)
        if refused:
            assert "error" in answer, (line, refused)
            return
        logits, *weights = (np.frombuffer(base64.b64decode(part), "<f4") for part in answer)
        largest = max(1.0, np.abs(trace.logits).max())
        self.logits = max(self.logits, np.abs(logits - trace.logits.ravel()).max() / largest)
        for site, of_site in zip(checkpoint.model.sites(), weights, strict=True):
            expected = trace.attention[site.kind][site.layer].ravel()
            self.weights = max(self.weights, np.abs(of_site - expected).max())

    def write(self, text, line="", off="", beam=1):
        """The text that the model writes: the same tokens, but where the two best differ by less
        than the bar."""
        checkpoint, model = self.checkpoint, self.checkpoint.model
        masks = Masks(**{name: name != off for name in SWITCHES})
        changes = parse(line)
        ids = list(checkpoint.run(text, "" if checkpoint.writes else None).texts[0].ids)
        if checkpoint.writes:
            ids = [*ids, model.config.eos_id]
            cached = masks.causal and not look_ahead(changes, model.sites())
            search = partial(beam_search, beam=beam) if beam > 1 else greedy_decode
            with applied(model, changes):
                (expected,) = search(model, torch.tensor([ids]), masks=masks, use_cache=cached)
        else:
            ids = [model.config.bos_id, *ids]
            how = Beam(beam) if beam > 1 else Greedy()
            run = checkpoint.run(text, None, masks, 0, line)
            path = checkpoint.generate(run, how, max_tokens=CONTINUATION).path
            expected = [token for token in path if token != model.config.eos_id]
        most = None if checkpoint.writes else CONTINUATION
        answer = self.ask("write", ids=ids, masks=vars(masks), line=line, beam=beam, most=most)
        self.texts += 1
        if answer == list(expected):
            return
        assert checkpoint.writes and self._gap(ids, answer, expected, masks, changes) < LOGITS, (
            text, line, answer, expected,
        )  # fmt: skip
        self.ties += 1

    def _gap(self, ids, answer, expected, masks, changes):
        """Between the two best logits where two targets diverge."""
        model = self.checkpoint.model
        same = [a == b for a, b in zip(answer, expected, strict=False)]
        at = same.index(False) if False in same else len(same)
        src, tgt = torch.tensor([ids]), torch.tensor([[model.config.bos_id, *expected]])
        with applied(model, changes), torch.no_grad():
            row = model(src, tgt, *masks.build(model, src, tgt))[0, at]
        best = row.topk(2).values
        return float(best[0] - best[1]) / max(1.0, float(row.abs().max()))


def sentences(name, count):
    """The examples, then sentences of the other English examples, or random rows of letters."""
    folder = SHIPPED.parent / "examples"
    files = [f"{name}.txt"]
    if name in ("en-de", "en-fr", "reviews"):
        files += ["en-fr.txt", "en-de.txt", "translation.txt", "next-token.txt", "reviews.txt"]
    lines = [line for f in files for line in (folder / f).read_text("utf-8").splitlines()]
    draw = random.Random(1)
    words = sorted({word for line in lines for word in line.split()})
    while len(lines) < count:
        if name in ("en-de", "en-fr", "reviews"):
            lines.append(" ".join(draw.choices(words, k=draw.randint(3, 14))))
        else:
            letters = draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 12))
            lines.append(" ".join(letters * (2 if name == "induction" else 1)))
    return lines[:count]


def compare(name, ask, count, beams, changed):
    """So many sentences, of them `beams` written in other ways too; `changed` lines of changes for
    each sentence, other ones for each checkpoint."""
    parity = Parity(name, ask)
    sites = parity.checkpoint.model.sites()
    kinds = list(dict.fromkeys(site.kind for site in sites))
    switches = sorted({mask for site in sites for mask in site.masks})
    stack = parity.checkpoint.model.sides()[-1].stack
    lines = [line.format(k=kind) for line in LINES for kind in kinds]
    lines.append(f"{stack}_feed_forward.1=skip; all.1.2=off")
    random.Random(0).shuffle(lines)
    first = CHECKPOINTS.index(name) * count * changed
    for i, text in enumerate(sentences(name, count)):
        parity.trace(text)
        parity.trace(text, off=switches[i % len(switches)], pad_to=18 + i % 5)
        for j in range(changed):
            line = lines[(first + i * changed + j) % len(lines)]
            parity.trace(text, pad_to=(i + j) % 2 * 17, line=line)
        if name == "reviews":
            continue
        parity.write(text)
        if i < beams:
            parity.write(text, beam=5)
            parity.write(text, line=f"{kinds[-1]}.1=off; {kinds[0]}.2.1=hide:2")
            parity.write(text, line=f"{kinds[0]}.1=mask:window-2; {kinds[-1]}.2=temperature:0.5")
            parity.write(text, off="causal")
    print(f"{name}: logits {parity.logits:.1e}, weights {parity.weights:.1e}, "
          f"{parity.texts} texts, {parity.ties} ties")  # fmt: skip
    assert parity.logits <= LOGITS
    assert parity.weights <= WEIGHTS


# One of each preset and each kind of tokenizer; `make test-long` takes all of them.
@pytest.mark.parametrize("name", ["copy", "induction", "en-de", "reviews", "english"])
def test_numbers_and_texts_are_those_of_pytorch(engine, name):
    compare(name, engine(name), count=2, beams=1, changed=5)


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_200_sentences(engine, name):
    compare(name, engine(name), count=200, beams=50, changed=1)


def test_lines_of_changes_read_and_write_alike(engine):
    """Both ways: what Python writes, and what it refuses."""
    lines = [line.format(k="cross") for line in LINES]
    lines += ["", " cross.1.2=off ;; encoder=hide:3,1 ", "cross=forbid:3-4>2,1>1-3,2>1-3,1>1"]
    lines += ["decoder.1=weight:2>1:1", "decoder.1=weight:2>1:.5", "cross=temperature:3"]
    refused = ["cross", "cross.0=off", "cross=mask:window", "cross=mask:causal-2", "cross=hide:0",
               "cross=hide:", "cross=weight:2>1:1.5", "cross=temperature:0", "cross=off:1",
               "cross=forbid:2-1>1", "cross=temperature:-1", "cross=temperature:x", "x=__proto__",
               "cross=constructor", "cross=weight:1>1:nan", "cross=mask:toString",
               "cross=forbid:1-999999>1-999999", ";".join(["a=off"] * 301)]  # fmt: skip
    for line in refused:
        with pytest.raises(CannotChange):
            parse(line)
    answers = engine("copy")("lines", lines=lines + refused)
    assert answers[: len(lines)] == [written(parse(line)) for line in lines]
    assert all("error" in answer for answer in answers[len(lines) :])


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"changes": "cross.9.1=off"}, "has no layer 9"),
        ({"changes": "sideways=off"}, "does not apply to “sideways”"),
        ({"changes": "cross=explode"}, "does not support “explode”"),
        ({"changes": "cross=mean"}, "does not support “mean”"),
        ({"source": "a" * 9000}, "this model reads at most 1023"),
        ({"changes": "decoder.1.1=weight:1>2:0.5"}, "masked"),
    ],
)
def test_bad_input_gets_a_sentence(engine, question, sentence):
    whole = {"source": "a b c", "target": "", "changes": "", "padTo": 0, "beam": 1}
    answer = engine("copy")("said", **whole | {"masks": vars(Masks())} | question)
    assert sentence in answer["error"]


def unpacked(packed):
    """Header and cells of what `pack` packs."""
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    del header["id"]
    return header, np.frombuffer(packed, np.uint8, offset=4 + length)


@pytest.mark.parametrize("name", ["en-de", "induction", "reviews"])
def test_the_stage_gets_what_the_app_packs(engine, name):
    """Labels, spaces, predictions and cells; behind them those as trained."""
    checkpoint, text = load(name), sentences(name, 1)[0]
    masks, line = Masks(src_padding=False, tgt_padding=False), "all.1.1=off; all.2.2=uniform"
    question = {"source": text, "target": "", "masks": vars(masks), "changes": line, "padTo": 30}
    sent = base64.b64decode(engine(name)("pack", **question | {"beam": 1}))
    after = checkpoint.trace(text, None, masks, 30, line)
    for trace in (after, checkpoint.trace(text, pad_to=30)):
        packed = pack_trace(trace, Reading(), answers_of(trace, checkpoint.outputs))
        expected, expected_cells = unpacked(packed)
        header, cells = unpacked(sent)
        rest = len(cells) - len(expected_cells)
        cells, sent = cells[: len(expected_cells)], sent[len(sent) - rest :]
        probabilities = [
            [one.pop(1) for row in found["answers"]["rows"] for one in row]
            for found in (header, expected)
        ]
        assert np.allclose(*probabilities, atol=2e-4)
        for part in expected["parts"]:
            assert part.pop("weights") is None
        assert header == expected
        assert np.abs(cells.astype(int) - expected_cells).max() <= 1
        assert ((cells == 0) == (expected_cells == 0)).all()
    assert sent == b""


def arrays(found, names):
    return [np.frombuffer(base64.b64decode(found[name]), "<f4") for name in names]


@pytest.mark.parametrize("name", ["copy", "induction", "reviews"])
def test_what_the_stage_asks_is_answered_as_by_the_app(engine, name):
    """Under a mask and changes: a head's numbers, the lens, what a word needs, every head off."""
    checkpoint, ask, text = load(name), engine(name), sentences(name, 2)[1]
    kinds = list(dict.fromkeys(site.kind for site in checkpoint.model.sites()))
    line = f"{kinds[-1]}.1.1=off; {kinds[0]}.2.1=hide:2"
    question = {"source": text, "target": "", "masks": vars(Masks()), "changes": line}
    read = question | {"padTo": 0, "beam": 1}
    run = checkpoint.run(text, None, Masks(), 0, line)
    trace, model = checkpoint.trace_run(run), checkpoint.model
    for site in (trace.sites[0], trace.sites[-1]):
        place = {"kind": site.kind, "layer": site.layer, "head": 1, "read": read}
        steps = head_steps(model, run, site, 1)
        found = arrays(ask("asked", about="scores", **place), ("scores", "mask", "weights", "v"))
        found += arrays(ask("asked", about="vectors", **place), ("q", "k"))
        expected = (steps.scores, steps.mask, steps.weights, steps.v, *steps.compared)
        for ours, theirs in zip(found, expected, strict=True):
            theirs = theirs.ravel().astype(float)
            assert np.abs(ours - theirs).max() <= LOGITS * max(1, np.abs(theirs).max())
        assert ask("asked", about="scores", **place | {"head": 99}) is None
    found, stopped = ask("asked", about="after", read=read), lens(model, trace)
    assert np.allclose(found["probability"], stopped.probability, atol=LOGITS)
    assert found["settled"] == stopped.settled.tolist()
    assert found["answers"] == [
        checkpoint.outputs(best, trace.preceding) for best in stopped.best.tolist()
    ]
    row = len(stopped.best[0]) // 2
    found = ask("asked", about="needs", row=row, read=read)
    shown = Shown(catalog.view_of(name, "final", "cpu"), run)
    expected = word_results.needs_of(shown, row)
    for field in ("kind", "side", "words", "tokens"):
        assert found[field] == json.loads(json.dumps(getattr(expected, field)))
    for field in ("attention", "probability", "all"):
        assert np.allclose(found[field], getattr(expected, field), atol=LOGITS)
    assert ask("asked", about="needs", row=999, read=read) is None
    for side in trace.sides.values():
        about = {"about": "positions", "side": side.title, "from": 1}
        found = arrays(ask("asked", **about, read=read), ("table", "token", "embedded"))
        parts = trace.table, trace.token, trace.embedded
        for ours, theirs in zip(found, parts, strict=True):
            assert np.abs(ours - theirs[side.name][1:].ravel()).max() <= LOGITS
    found = ask("asked", about="effect", read=read)["effects"]
    for kind, effects in sweep(model, run, heads_off(model)).by_head(trace.kinds).items():
        assert np.allclose(found[kind], effects, atol=20 * LOGITS)  # of a sum over the text
    assert ask("asked", about="why", read=read) is None


def test_a_change_and_its_preview_are_said_of_the_text_that_it_makes(engine):
    checkpoint, ask, text = load("en-de"), engine("en-de"), sentences("en-de", 1)[0]
    line = "cross=mask:window-1"
    question = {"source": text, "target": "", "masks": vars(Masks()), "padTo": 0, "beam": 1}
    was, now = (checkpoint.translate(text, changes=changes).text for changes in ("", line))
    told = ask("said", changes=line, **question)
    assert told["now"] == [list(part) for part in formats.differences(was, now)] != []
    assert told["output"] == now
    trained, changed = (checkpoint.trace(text, changes=changes) for changes in ("", line))
    before, after = np.exp(trained.log_probabilities), np.exp(changed.log_probabilities)
    row = int(np.abs(after - before).argmax())
    tokens = trained.tgt.tokens[row], trained.next_tokens[row]
    moved = findings.moved(*tokens, before[row], after[row], findings.FORMER)
    assert told["rest"] == [list(part) for part in moved]
    preview = ask("preview", changes=line, **question)
    assert preview == {
        "said": [list(part) for part in findings.would([tuple(part) for part in told["said"]])],
        "now": told["now"],
        "rest": told["rest"],
    }
    assert "has no layer 9" in ask("preview", changes="cross.9=off", **question)["why"]
    plain = ask("said", changes="", **question)
    assert plain == {"said": [], "now": [], "rest": [], "output": was}


CHANNEL = """() => void Object.assign(globalThis, { turns: [], MessageChannel: class {
  port1 = {};
  port2 = { postMessage: () => turns.push(() => this.port1.onmessage()) };
} })"""
WORKER = """({ data, weights, read }) => {
  const told = [], send = (id, what, more) => onmessage({ data: { id, what, ...more } });
  const all = (count = 0) => (turns.length ? (turns.shift()(), all(count + 1)) : count);
  let now = 0;
  globalThis.postMessage = ({ id, part }) => told.push([id, Object.keys(part ?? {})[0] ?? ""]);
  send(0, "load", { ...data, weights });
  all();
  const [slow, quick] = [1000, 0].map((tick) => {
    performance.now = () => (now += tick);
    send(1, "read", read);
    while (told.at(-1)[0] !== 1) turns.shift()();
    send(2, "after");
    send(3, "read", read);
    return all();
  });
  delete performance.now;
  return [told, slow > quick];
}"""


def test_a_worker_pauses_for_a_sentence_which_drops_what_was_asked_before(node):
    node.scope()(CHANNEL)
    whole = re.search(r'id="data">(.*?)</script>.*id="weights">(.*?)</script>', page("copy"), re.S)
    read = {"source": "a b", "target": "", "masks": vars(Masks()), "changes": "", "padTo": 0}
    given = {"data": json.loads(whole[1]), "weights": whole[2], "read": read | {"beam": 1}}
    newest = [[1, "run"], [3, "run"], [3, "said"], [3, ""]]
    told = node.scope("app/live/worker.js")(WORKER, given)
    assert told == [[[0, "sites"], *newest, *newest], True]


def words_of(line):
    return " ".join(word for word, _ in line["words"]).replace("(nothing)", "")


@pytest.mark.parametrize(
    ("name", "line"), [("en-de", "cross.1.2=off"), ("induction", ""), ("copy", "")]
)
def test_a_text_is_written_as_in_the_app(engine, name, line):
    """Word by word, with what else each step could have been, and where that leads to."""
    checkpoint, text = load(name), sentences(name, 1)[0]
    outputs, beginning = checkpoint.outputs, checkpoint.tokenizer.encode("a").ids[:1]
    run = checkpoint.run(text, "" if checkpoint.writes else None, changes=line)
    most = None if checkpoint.writes else CONTINUATION
    generate = lambda begun=(): checkpoint.generate(run, Greedy(), begun, most)  # noqa: E731
    read = {"source": text, "target": "", "masks": vars(Masks()), "changes": line, "padTo": 0}
    asked = {"about": "write", "how": "one", "read": read | {"beam": 1}}
    plain, written = generate(), generate(beginning)
    found = engine(name)("asked", beginning=str(beginning[0]), **asked)
    assert [step["id"] for step in found["steps"]] == list(written.path) and found["given"] == 1
    trace = checkpoint.trace_run(written.run)
    for i, step in enumerate(found["steps"]):
        shares, ids = written.probabilities[i], [id for *_, id in step["best"]]
        assert ids[0] == shares.argmax() and ids[step["chosen"]] == step["id"]
        assert np.allclose([share for _, share, _ in step["best"]], shares[ids], atol=LOGITS)
        preceding = repeat(trace.preceding[written.first + i])
        assert [label for label, *_ in step["best"]] == outputs(ids, preceding)
    pieces = "".join(step["added"] for step in found["steps"])
    own, *others = found["text"]
    assert pieces == words_of(own) == written.text
    assert any(is_new for _, is_new in own["words"]) == (written.text != plain.text)
    assert own["probability"] == pytest.approx(math.exp(written.score), abs=LOGITS)
    assert len({words_of(one) for one in found["text"]}) == len(others) + 1 > 1
    for other in others:
        again = generate([*written.path[: other["step"]], other["id"]])
        assert words_of(other) == again.text and other["step"] >= 0
        assert other["probability"] == pytest.approx(math.exp(again.score), abs=LOGITS)
    refused = engine(name)("asked", beginning="999999", **asked)
    assert "is not a list of this model's token ids" in refused["cannot"]


def test_a_beam_search_is_that_of_the_app(engine):
    """Each step's candidates, where they lead to, and all that they end in."""
    checkpoint, text = load("en-de"), sentences("en-de", 1)[0]
    read = {"source": text, "target": "", "masks": vars(Masks()), "changes": "cross.1.2=off"}
    asked = {"about": "write", "how": "beams", "width": 5, "read": read | {"padTo": 0, "beam": 1}}
    found = engine("en-de")("asked", **asked)
    run = checkpoint.run(text, "", changes="cross.1.2=off")
    written = checkpoint.generate(run, Beam(5))
    places, ends = {0: (None, ())}, {}
    for step, nodes in zip(written.beams, found["steps"], strict=True):
        kept, following = [one for one in step if one.ended or one.row is not None], {}
        for place, (one, node) in enumerate(zip(kept, nodes, strict=True)):
            parent, path = places[one.parent]
            path = (*path, one.token)
            assert node["parent"] == parent and node["ended"] == one.ended
            assert node["found"] == (path == written.path[: len(path)])
            assert node["probability"] == pytest.approx(math.exp(one.log_probability), abs=LOGITS)
            if one.row is not None:
                following[one.row] = place, path
            else:
                ends[checkpoint.tokenizer.decode(path[:-1])] = node["probability"]
        places = following
    best, *_ = found["ends"]
    assert best["is_found"] and best["text"] == written.text
    assert all(
        end["probability"] == ends[end["text"]] for end in found["ends"] if end["text"] in ends
    )
    assert found["found"]["probability"] == pytest.approx(math.exp(written.score), abs=LOGITS)
    greedy = checkpoint.generate(run, Greedy())
    assert found["is_same"] == (greedy.text == written.text)
    assert found["greedy"]["probability"] == pytest.approx(math.exp(greedy.score), abs=LOGITS)


def test_texts_that_are_drawn_are_as_probable_as_the_model_says(engine):
    checkpoint, text = load("en-de"), sentences("en-de", 1)[0]
    read = {"source": text, "target": "", "masks": vars(Masks()), "changes": "", "padTo": 0}
    asked = {"about": "write", "how": "sampled", "seed": 3, "read": read | {"beam": 1}}
    drawn = engine("en-de")("asked", temperature=1.0, **asked)["text"]
    assert [line["seed"] for line in drawn] == [*range(3, 11)]
    assert len({words_of(line) for line in drawn}) > 1
    line = max(drawn, key=lambda line: line["probability"])
    trace = checkpoint.trace(text, words_of(line))
    assert line["probability"] == pytest.approx(np.exp(trace.log_probabilities.sum()), rel=0.01)
    cold = engine("en-de")("asked", temperature=0.01, **asked)
    assert cold["same"] == len(cold["text"])


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, 0), (0.6, 3), (2.0, 5)])
def test_tokens_are_drawn_as_often_as_the_app_would(engine, temperature, top_k):
    """Over 8,000 draws the total variation from PyTorch's distribution is what chance gives."""
    logits = torch.linspace(-2, 2, 8).roll(3)
    expected = truncated(logits, Sampling(temperature, top_k)).numpy()
    how = {"temperature": temperature, "topK": top_k, "seed": 7, "count": 8000}
    drawn = engine("copy")("draw", logits=logits.tolist(), **how)
    shares = np.bincount(drawn, minlength=8) / len(drawn)
    assert np.abs(shares - expected).sum() / 2 < 0.03
    assert not shares[expected == 0].any()
    assert drawn == engine("copy")("draw", logits=logits.tolist(), **how)
    assert drawn != engine("copy")("draw", logits=logits.tolist(), **how | {"seed": 8})


# Tokens


def strings(count):
    """Random strings of assigned code points, plain text, emoji, white space, controls and pieces
    of text that tokenizers treat in ways of their own."""
    draw = random.Random(2)
    points = [chr(i) for i in range(0x110000)]
    assigned = [c for c in points if unicodedata.category(c) not in ("Cn", "Cs", "Co")]
    emoji = [c for c in assigned if 0x1F300 <= ord(c) < 0x1FB00] + ["\u200d", "\ufe0f", "🇩", "🏽"]
    spaces = [c for c in assigned if c.isspace()] + ["\ufeff", "\u200b", "\u180e", "\u0085"]
    controls = [c for c in assigned if unicodedata.category(c) in ("Cc", "Cf")]
    plain = list("abcdefghijklmnopqrstuvwxyzABCXYZ    0123456789.,;:!?'’-\"()ßäöüéñ")
    pieces = ["'s", "'ll", "don't", "the", " and", "</s>", "<pad>", "Ġ", "\r\n", "  ", "ein"]
    pools = [assigned, emoji, spaces, controls, plain, pieces]
    mixed = lambda: draw.choice(draw.choice(pools))  # noqa: E731
    return [
        "".join(mixed() if pool is None else draw.choice(pool) for _ in range(draw.randint(0, 24)))
        for pool in draw.choices([*pools, None, None], k=count)
    ]


def check_tokens(name, ask, texts):
    tokenizer = load(name).tokenizer
    for start in range(0, len(texts), 500):
        some = texts[start : start + 500]
        ids = [tokenizer.encode(text).ids for text in some]
        assert ask("encode", texts=some) == [*map(list, ids)]
        expected = [tokenizer.encoding(of_text) for of_text in ids]  # offsets in the decoded text
        decoded, offsets, names = zip(*ask("encoding", texts=some), strict=True)
        assert list(map(tuple, names)) == [tokenizer.encode(text).tokens for text in some]
        assert list(decoded) == [tokenizer.decode(of_text) for of_text in ids]
        assert [[tuple(span) for span in spans] for spans in offsets] == [
            list(encoding.offsets) for encoding in expected
        ]


@pytest.mark.parametrize("name", ["en-de", "reviews"])
def test_tokens_are_those_of_hugging_face(engine, name):
    check_tokens(name, engine(name), [*sentences(name, 40), *strings(300)])


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_tokens_of_20000_strings(engine, name):
    check_tokens(name, engine(name), [*sentences(name, 200), *strings(20_000)])


def test_words_are_those_of_the_app(engine):
    """Of real text: apostrophes, numbers, accents, emoji, spaces."""
    tokenizer = load("en-de").tokenizer
    draw, pieces = random.Random(3), list("aéßZ19  .,'’-!?\u0301🙂שкी中")
    texts = [
        *sentences("en-de", 40),
        "Don't pay 3.14, it's Anna’s 1,000th café – e\u0301té…",
        *("".join(draw.choices(pieces, k=draw.randint(1, 12))) for _ in range(300)),
    ]
    expected = [ordinary_words(tokenizer.encoding(tokenizer.encode(text).ids)) for text in texts]
    answers = engine("en-de")("words", texts=texts)
    for text, words, answer in zip(texts, expected, answers, strict=True):
        assert [(tuple(span), word) for span, word in answer] == words, text


def test_letters_and_spaces_are_those_of_the_library():
    """Where Python's Unicode assigns a code point, the ranges agree with it."""
    for name, categories in (("L", "L"), ("N", "N")):
        ranges = re.findall(r"\\u\{(\w+)\}-\\u\{(\w+)\}", build._characters()[name])
        inside = {point for a, b in ranges for point in range(int(a, 16), int(b, 16) + 1)}
        for point in range(0x110000):
            category = unicodedata.category(chr(point))
            if category not in ("Cn", "Cs"):
                assert (point in inside) == (category[0] in categories), hex(point)
