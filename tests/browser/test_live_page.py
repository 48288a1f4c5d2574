"""The live page in Chromium, and its numbers in Firefox, from file://, without a network: numbers
against PyTorch's, tokens against Hugging Face's, and what a user does with it."""

import base64
import json
import random
import re
import unicodedata
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import repeat

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from safetensors.torch import save_file

from headlight.app.components.packing import answers_of, pack_trace
from headlight.app.components.scripts import script
from headlight.app.live import build
from headlight.app.live.build import CannotHold, page
from headlight.app.server.command import main
from headlight.app.wording import findings
from headlight.model import checkpoint
from headlight.model.analysis.alignment import of_trace, ordinary_words
from headlight.model.analysis.reading import Reading
from headlight.model.analysis.residual import lens
from headlight.model.checkpoint import SHIPPED, load
from headlight.model.decoding.generate import CONTINUATION, Beam, Greedy, Sampling, truncated
from headlight.model.decoding.search import beam_search, greedy_decode
from headlight.model.masks import Masks
from headlight.model.probing.applying import applied
from headlight.model.probing.changes import CannotChange, look_ahead, parse, written
from tests.app.test_packing import weights_of
from tests.browser.conftest import ARGUMENTS, executable
from tests.browser.firefox import launched

pytestmark = pytest.mark.browser
CHECKPOINTS = ("copy", "reverse", "sort", "induction", "en-de", "en-fr", "reviews", "english")
LOGITS, WEIGHTS = 1e-4, 1e-5  # logits relative to the largest, if that is above 1
SWITCHES = ("causal", "src_padding", "tgt_padding", "memory_padding")
VIEWPORT = {"width": 1280, "height": 720}
HOSTILE = "</script><img src=x onerror=document.title='ran'><!-- <script>"
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


@pytest.fixture(scope="module")
def browser(chromium):
    """One that optimises scripts: here they compute."""
    browser = chromium.browser_type.launch(executable_path=executable(), args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of a checkpoint as a file."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def built(name):
        path = folder / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        return path

    return built


class Tab:
    """A tab without a network. `requests` and `errors` hold what a page in it did unasked."""

    def __init__(self, context):
        self.page = context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))

    def open(self, path, fragment="", viewport=VIEWPORT, color_scheme="light"):
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=color_scheme)
        self.page.goto(path.as_uri() + fragment)
        return self.answered()

    def answered(self):
        """The newest question has been answered in full."""
        expect(self.page.locator("html[data-idle]")).to_be_attached()
        return self

    def type(self, text):
        self.page.get_by_label("Text", exact=True).fill(text)
        self.page.keyboard.press("Enter")
        return self.answered()

    def text(self, id):
        return self.page.locator(f"#{id}").inner_text()

    def finding(self):
        return self.page.locator(".message").inner_text()

    def choose(self, label):
        self.page.get_by_text(label, exact=True).click()
        return self.answered()

    def grid(self):
        """The labels of each text, and the pixels of the first kind's tiles."""
        return self.page.evaluate(
            "[[...document.querySelectorAll('.text > div')].map((line) => "
            "[...line.querySelectorAll('span')].map((span) => span.textContent)), "
            "[...document.querySelectorAll('.canvases canvas:first-child')].map((c) => "
            "c.toDataURL())]"
        )

    def leave(self):
        """Make the tab like a new one."""
        self.page.goto("about:blank")
        errors, requests = self.errors.copy(), self.requests.copy()
        self.errors.clear()
        self.requests.clear()
        assert not errors
        assert not [url for url in requests if not url.startswith(("file:", "blob:"))]


@pytest.fixture(scope="module")
def new_tab(browser):
    """A tab, of those left by tests before where there is one: scripts that it has compiled are not
    compiled again, which takes three quarters of the time to open a page."""
    free = []

    @contextmanager
    def new_tab():
        tab = free.pop() if free else Tab(context)
        yield tab
        tab.leave()
        free.append(tab)

    with browser.new_context(offline=True) as context:
        yield new_tab


@pytest.fixture(name="opened")
def opened_in_a_tab(new_tab, file):
    with ExitStack() as tabs:

        def open_(name, fragment="", **options):
            path = file(name) if isinstance(name, str) else name
            return tabs.enter_context(new_tab()).open(path, fragment, **options)

        yield open_


# Numbers


@pytest.fixture(scope="module")
def engine(new_tab, file):
    """What `live_parity.js` offers in the page of a checkpoint: ask(what, **question)."""
    pages = {}

    def of(name):
        if name not in pages:
            pages[name] = tabs.enter_context(new_tab()).open(file(name)).page
            pages[name].evaluate(f"() => {{ {script('../../tests/browser/live_parity.js')} }}")
        tab = pages[name]
        return lambda what, **question: tab.evaluate(
            f"(question) => live.{what}(question)", question
        )

    with ExitStack() as tabs:
        yield of


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


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_numbers_and_texts_are_those_of_pytorch(engine, name):
    compare(name, engine(name), count=2, beams=1, changed=5)


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_200_sentences(engine, name):
    compare(name, engine(name), count=200, beams=50, changed=1)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("profile")) as firefox:
        yield firefox


IDLE = """
  new Promise((idle) => {
    const look = () => (document.documentElement.dataset.idle ? idle() : setTimeout(look, 20));
    look();
  })
"""


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_firefox_computes_the_same(firefox, file, name):
    """Numbers, texts and tokens, by the bars for Chromium; a sentence is typed, a key switches a
    head off."""
    firefox.open(file(name).as_uri())
    firefox.evaluate(IDLE)
    firefox.evaluate(f"(() => {{ {script('../../tests/browser/live_parity.js')} }})()")
    ask = lambda what, **question: firefox.evaluate(f"live.{what}({json.dumps(question)})")  # noqa: E731
    compare(name, ask, count=12, beams=4, changed=2)
    check_tokens(name, ask, [*sentences(name, 40), *strings(500)])
    text = sentences(name, 2)[1]
    firefox.evaluate(
        f"(document.getElementById('source').value = {json.dumps(text)}, "
        "document.getElementById('source').focus())"
    )
    firefox.press("\ue007")  # Enter
    firefox.evaluate(IDLE)
    labels = "[...document.querySelectorAll('.text > div:first-child span')]"
    first = next(iter(load(name).trace(text).texts.values()))
    assert firefox.evaluate(f"{labels}.map((span) => span.textContent)") == list(first.tokens)
    said = lambda id: firefox.evaluate(f"document.getElementById('{id}').textContent")  # noqa: E731
    assert said("written")
    firefox.evaluate("document.querySelector('.stage').focus()")
    firefox.press("o")
    firefox.evaluate(IDLE)
    assert said("state").endswith(" off ×") and said("error") == ""
    assert firefox.errors == []


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


def unpacked(packed):
    """Header and cells of what `pack` packs."""
    length = int.from_bytes(packed[:4], "little")
    header = json.loads(packed[4 : 4 + length])
    del header["id"]
    return header, np.frombuffer(packed, np.uint8, offset=4 + length)


@pytest.mark.parametrize(
    ("name", "shows"), [("en-de", "difference"), ("induction", "before"), ("reviews", "after")]
)
def test_the_grid_gets_what_the_app_packs(engine, name, shows):
    """Labels, spaces, predictions and cells."""
    checkpoint, text = load(name), sentences(name, 1)[0]
    masks, line = Masks(src_padding=False, tgt_padding=False), "all.1.1=off; all.2.2=uniform"
    question = {"source": text, "target": "", "masks": vars(masks), "changes": line, "padTo": 30}
    question |= {"beam": 1, "shows": shows}
    header, cells = unpacked(base64.b64decode(engine(name)("pack", **question)))
    before, after = checkpoint.trace(text, pad_to=30), checkpoint.trace(text, None, masks, 30, line)
    trace = before if shows == "before" else after
    answers = answers_of(trace, checkpoint.outputs)
    packed = pack_trace(trace, Reading(), answers, before if shows == "difference" else None)
    expected, expected_cells = unpacked(packed)
    assert header.pop("signed") == pytest.approx(expected.pop("signed"), abs=1e-5)
    probabilities = [
        [one.pop(1) for row in found["answers"]["rows"] for one in row]
        + [-1 if share is None else share for share in found["answers"].pop("wanted")]
        for found in (header, expected)
    ]
    assert np.allclose(*probabilities, atol=2e-4)
    for part in expected["parts"]:
        assert part.pop("weights") is None
    assert header == expected
    assert np.abs(cells.astype(int) - expected_cells).max() <= 1
    assert ((cells == 0) == (expected_cells == 0)).all()


@pytest.mark.parametrize(
    ("name", "how", "line"),
    [("en-de", Beam(5), "cross.1.2=off"), ("induction", Greedy(), ""), ("copy", Greedy(), "")],
)
def test_a_text_is_written_as_in_the_app(engine, name, how, line):
    """Tokens, their probabilities, those of earlier layers, what each head attends to, beams."""
    checkpoint, text = load(name), sentences(name, 1)[0]
    outputs, beginning = checkpoint.outputs, checkpoint.tokenizer.encode("a").ids[:1]
    run = checkpoint.run(text, "" if checkpoint.writes else None, changes=line)
    written = checkpoint.generate(run, how, beginning, None if checkpoint.writes else CONTINUATION)
    question = {"source": text, "target": "", "masks": vars(Masks()), "changes": line, "padTo": 0}
    question |= {"beam": getattr(how, "width", 1), "beginning": list(beginning)}
    answer = engine(name)("generate", **question)
    assert answer["ids"] == list(written.ids)
    assert [step["chosen"] for step in answer["steps"]] == list(written.path)
    assert answer["written"] == [*written.tokens, *outputs(written.path[len(written.tokens) :])]
    trace = checkpoint.trace_run(written.run)
    rows = slice(written.first, written.first + len(written.path))
    stopped = lens(checkpoint.model, trace, rows)
    for i, step in enumerate(answer["steps"]):
        shares = written.probabilities[i]
        assert step["best"][0][0] == shares.argmax()
        assert np.allclose([share for _, _, share, _ in step["best"]],
                           [shares[id] for id, *_ in step["best"]], atol=1e-4)  # fmt: skip
        preceding = repeat(trace.preceding[written.first + i])
        assert [label for _, label, *_ in step["best"]] == outputs(
            [id for id, *_ in step["best"]], preceding
        )
        assert [label for label, _ in step["lens"]] == outputs(stopped.best[:, i], preceding)
        assert np.allclose([s for _, s in step["lens"]], stopped.probability[:, i], atol=1e-4)
    for kind in answer["kinds"]:
        expected = trace.attention[kind["kind"]].swapaxes(0, 2).swapaxes(1, 2)[rows]
        if kind["kind"] == "encoder":
            assert kind["weights"] == []
        else:
            assert np.abs(weights_of(kind["weights"]) - expected).max() <= 0.0026
    beams, kept = [], {0: trace.preceding[written.first + len(beginning)]}
    for step in written.beams:
        labels = outputs([c.token for c in step], [kept[c.parent] for c in step])
        beams.append([(label, c.ended, c.row is None)
                      for label, c in zip(labels, step, strict=True)])  # fmt: skip
        kept = {c.row: c.token for c in step if c.row is not None}
    assert beams == [[(c["label"], c["fate"] == "ended", c["fate"] != "grew") for c in step]
                     for step in answer["beams"]]  # fmt: skip


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


@pytest.mark.parametrize("name", ["en-de", "reverse"])
def test_words_are_aligned_as_in_the_app(engine, name):
    checkpoint, ask = load(name), engine(name)
    question = {"target": "", "masks": vars(Masks()), "padTo": 0, "beam": 1}
    for text in sentences(name, 3):
        line = f"cross.{checkpoint.alignment.heads[0][0] + 1}=mask:window-1"
        answer = ask("align", source=text, changes=line, **question)
        after, before = (
            checkpoint.alignment.of(of_trace(trace))
            for trace in (checkpoint.trace(text, changes=line), checkpoint.trace(text))
        )
        assert answer["words"] == [list(after.source), list(after.target)]
        assert np.allclose(answer["weights"], after.weights, atol=WEIGHTS)
        links = {tuple(link) for link in answer["links"]}
        assert links == after.links()
        assert {tuple(link) for link in answer["before"]} == before.links() - links != set()


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


# The page


def test_a_sentence_is_read_and_translated(opened):
    tab = opened("en-de")
    checkpoint = load("en-de")
    for text in (sentences("en-de", 1)[0], "Two dogs are running on the beach."):
        tab.type(text)
        trace = checkpoint.trace(text)
        labels, canvases = tab.grid()
        assert labels == [list(trace.texts[side].tokens) for side in ("src", "tgt")]
        assert len(canvases) == 3 and len(set(canvases)) == 3
        target = checkpoint.tokenizer.decode(trace.texts["tgt"].ids[1:])
        assert tab.text("written") == f"Model en-de wrote: {target}"
    shortest = min(map(len, labels))
    box = tab.page.get_by_label("Pad to length")
    for key, state in (("ArrowUp", f"Padded to {shortest + 1} ×"), ("ArrowDown", "As trained")):
        box.press(key)  # what pads nothing is passed over
        assert tab.answered().text("state") == state


def moved(checkpoint, text, line, start):
    """What the app says of the probability that changes move most."""
    traces = [checkpoint.trace(text, changes=changes) for changes in ("", line)]
    (_, *ids), (*tokens,) = traces[0].texts["tgt"].ids, traces[0].texts["tgt"].tokens
    following = [*ids, checkpoint.model.config.eos_id]
    was, now = (
        torch.tensor(trace.logits).softmax(-1)[range(len(following)), following].numpy()
        for trace in traces
    )
    row = int(np.abs(now - was).argmax())
    said = findings.moved(tokens[row], [*tokens, "</s>"][row + 1], was[row], now[row], start)
    return "".join(part for part, _ in said)


def pieces(texts):
    """Words and punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", " ".join(texts))


def test_a_head_off_changes_text_and_probability(opened):
    text = "The woman in the red dress has bought the big house."
    tab = opened("en-de", f"#source={text}&kind=cross&layer=1&head=2")
    trained, tiles = tab.text("written"), tab.grid()[1]
    tab.page.locator(".stage").press("o")
    tab.answered()
    checkpoint = load("en-de")
    line = "cross.1.2=off"
    again = checkpoint.tokenizer.decode(checkpoint.translate(text, changes=line).ids)
    assert tab.text("state") == "Cross 1.2 off ×"
    assert tab.text("written") == f"Model en-de wrote: {again}" != trained
    finding = tab.finding()
    assert finding.startswith("Now it writes: “Die Frau ")
    assert finding.endswith(moved(checkpoint, text, line, findings.FORMER))
    row, token = tab.page.locator(".message em").all_inner_texts()[-2:]
    marked = tab.page.locator("#answers h4").inner_text()  # of the row that is marked
    assert marked in (f"Next token after “{row}”", f"Next token in row “{token}”")
    assert tab.text("numbers") == "Probability of this translation: 6% → 4%"
    deleted, new = (tab.page.locator(f".message {tag}").all_inner_texts() for tag in "sb")
    assert set(pieces(deleted)) <= set(pieces([trained])) and deleted
    assert set(pieces(new)) <= set(pieces([again]))
    assert tab.grid()[1] != tiles
    changed = tab.grid()[1]
    tab.choose("Before")
    assert tab.grid()[1] == tiles and tab.text("written") == trained
    assert tab.page.locator("#answers h4").inner_text() == marked  # to compare
    tab.choose("Difference")
    assert tab.grid()[1] not in (tiles, changed) and "shows=difference" in tab.page.url
    tab.choose("After")
    assert tab.grid()[1] == changed
    for _ in range(3):
        tab.page.get_by_role("button", name="Undo").click()
        tab.answered()
    tab.page.get_by_role("button", name="Undo").click()
    tab.answered()
    assert tab.text("state") == "As trained" and tab.text("written") == trained
    assert tab.grid()[1] == tiles and "attends most to" in tab.finding()
    tab.page.keyboard.press("Control+y")
    tab.answered()
    for key, state in (("u", "As trained"), ("y", "Cross 1.2 off ×"), ("x", "As trained"),
                       ("u", "Cross 1.2 off ×")):  # fmt: skip
        tab.page.keyboard.press(key)
        assert tab.answered().text("state") == state
    assert tab.text("state") == "Cross 1.2 off ×"
    tab.page.get_by_role("button", name="Cross 1.2 off ×").click()
    assert tab.answered().text("state") == "As trained"


def test_masks_tokens_and_cells(opened):
    tab = opened("copy", "#source=a b c")
    page = tab.page
    expect(page.get_by_role("checkbox")).to_have_count(4)
    page.get_by_label("Pad to length").fill("9")
    page.keyboard.press("Enter")
    tab.answered()
    assert tab.grid()[0][0] == ["a", "b", "c", "</s>", *["<pad>"] * 5]
    tiles = tab.grid()[1]
    page.get_by_label("Source padding mask").uncheck()
    tab.answered()
    assert tab.grid()[1][0] != tiles[0]  # the encoder's
    assert "Source padding mask off ×" in tab.text("state")
    page.get_by_label("Causal mask").uncheck()
    where = re.match(
        r"Without the causal mask, the decoder peeks: in its self-attention (\d)\.(\d), ",
        tab.answered().finding(),
    )
    most = page.get_by_role(
        "button", name=f"Select decoder head {where[1]}.{where[2]}, which peeks most"
    )
    most.click()
    picked = page.locator("#picker option:checked")
    expect(picked).to_have_text(f"Decoder self-attention · layer {where[1]} · head {where[2]}")
    expect(most).to_be_disabled()
    page.locator(".text .source span", has_text="b").first.click()
    page.keyboard.press("h")
    tab.answered()
    assert "Encoder “b” hidden ×" in tab.text("state") and "Cross “b” hidden ×" in tab.text("state")
    assert page.locator(".text .source span.hidden").count() == 1
    page.locator(".stage").focus()
    for key in ("Home", "m"):
        page.keyboard.press(key)
    tab.answered()
    assert " 1>1 masked ×" in tab.text("state")


def test_that_nothing_can_be_seen_is_said_of_the_causal_mask_alone(opened):
    why = "while the model writes, there is no next token to see"
    tab = opened("copy", "#source=a b c&causal=false")
    assert f"The translation stays the same: {why}." in tab.finding()
    tab = opened("copy", "#source=a b c&causal=false&changes=encoder.1.1=uniform")
    assert "The translation stays the same. " in tab.finding() and why not in tab.finding()


def test_other_models(opened):
    tab = opened("induction", "#source=q w e r q w e")
    assert tab.text("written").startswith("Continuation: ") and len(tab.grid()[1]) == 1
    tab.type("a b c a b")
    assert tab.grid()[0][0][0] == "<s>"
    tab = opened("reviews", "#source=a wonderful film")
    assert re.fullmatch(r"Class: positive, \d+%", tab.text("written"))
    tab.type("a terrible film")
    assert tab.text("written").startswith("Class: negative, ")
    tab.page.get_by_role("button", name="Switch this head off or on").click()
    tab.answered()
    assert re.fullmatch(r"The class stays negative: \d+% → \d+%\.", tab.finding())


def test_alignment_lines(opened):
    tab = opened("en-de", "#source=A man is sleeping.")
    tab.choose("Alignment")
    lines = tab.page.locator("#lines")
    target = load("en-de").trace("A man is sleeping.").texts["tgt"]
    expect(lines.locator("path.now")).to_have_count(len(ordinary_words(target)))
    expect(tab.page.locator("#grid")).to_be_hidden()
    lines.locator(".frame").press("ArrowRight")
    expect(lines.locator(".status")).to_contain_text("Ein: A ")
    tab.page.reload()
    tab.answered()
    expect(lines).to_be_visible()
    tab.choose("Attention")
    expect(tab.page.locator(".cells canvas").first).to_be_visible()
    expect(opened("reviews").page.locator("#views")).to_be_hidden()


def test_generate(opened):
    tab = opened("en-de", "#source=A man is sleeping.&view=generate")
    generation = tab.page.locator("#generation")
    assert generation.locator(".written span").all_inner_texts()[:2] == ["Ein", "Mann"]
    generation.locator(".frame").press("ArrowRight")
    expect(generation.get_by_role("heading", name="Next token: “Mann”")).to_be_visible()
    generation.get_by_title("Continue with").first.click()
    tab.answered()
    assert generation.locator(".written span").all_inner_texts()[1] != "Mann"
    assert "Your start of the output ×" in tab.text("state") and "beginning=" in tab.page.url
    generation.locator(".strip").nth(4).click()
    assert "layer=2&head=1" in tab.page.url
    expect(generation.locator(".strip.chosen")).to_have_attribute("title", "layer 2 head 1")
    tab.page.get_by_role("button", name="Undo").click()
    tab.answered()
    assert generation.locator(".written span").all_inner_texts()[1] == "Mann"
    bad = opened("copy", "#view=generate&beginning=999999")
    assert "is not a list of this model's token ids" in bad.text("error")


def test_sampling(opened):
    tab = opened("en-de", "#source=A man is sleeping.")
    page, written = tab.page, tab.page.locator("#generation .written span")
    page.get_by_label("Decoding").select_option("Sampling, in Generate")
    tab.answered()
    texts = []
    for label, value in (("Temperature", "5"), ("Seed", "1"), ("Draw from the top k", "1")):
        page.get_by_label(label).fill(value)
        page.keyboard.press("Enter")
        texts.append(tab.answered() and written.all_inner_texts())
    hot, other, greedy = texts
    assert hot != other != greedy and " ".join(greedy).startswith("Ein Mann schläft")
    assert "temperature=5&top_k=1&seed=1" in page.url
    page.reload()
    assert tab.answered() and written.all_inner_texts() == greedy
    tab.choose("Attention")
    assert "schläft" in tab.text("written")


def test_a_link_brings_everything_back(opened):
    tab = opened(
        "copy", "#source=a b c&causal=false&changes=cross.1.1=off&beam=5&pad_to=6&target=a"
    )
    again = opened("copy", "#" + tab.page.url.split("#")[1])
    for id in ("state", "written", "numbers"):
        assert again.text(id) == tab.text(id) != ""
    assert again.finding() == tab.finding() != ""
    assert tab.text("written") == "You typed: a" and "writes" not in tab.finding()
    assert again.grid() == tab.grid()
    assert again.page.url == tab.page.url


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("changes=cross.9.1=off", "has no layer 9"),
        ("changes=sideways=off", "does not apply to “sideways”"),
        ("changes=cross=explode", "does not support “explode”"),
        ("changes=cross=mean", "does not support “mean”"),
        (f"source={'a' * 9000}", "this model reads at most 1023"),
        ("changes=decoder.1.1=weight:1>2:0.5", "masked"),
    ],
)
def test_bad_input_gets_a_sentence(opened, fragment, sentence):
    tab = opened("copy", f"#{fragment}")
    assert sentence in tab.text("error")
    expect(tab.page.locator("#grid")).to_be_hidden()
    tab.page.goto(tab.page.url.split("#")[0] + "#source=a b")
    tab.answered()
    assert tab.text("error") == "" and tab.grid()[0][0] == ["a", "b", "</s>"]


def test_the_newest_sentence_wins(opened):
    tab = opened("en-de")
    box = tab.page.get_by_label("Text", exact=True)
    for text in ("A man is sleeping.", "Two women are talking.", "The dog runs."):
        box.fill(text)
        box.press("Enter")
    tab.answered()
    checkpoint = load("en-de")
    target = checkpoint.translate("The dog runs.")
    assert tab.text("written") == f"Model en-de wrote: {checkpoint.tokenizer.decode(target.ids)}"
    assert tab.grid()[0][0] == ["The", "dog", "runs", ".", "</s>"]


def test_present_enlarges_and_survives_a_reload(opened):
    tab = opened("copy", "#source=a b c", viewport={"width": 1280, "height": 720})
    width = "document.querySelector('.cells canvas').clientWidth"
    size = "parseFloat(getComputedStyle(document.querySelector('.text > div')).fontSize)"
    small, narrow = tab.page.evaluate(size), tab.page.evaluate(width)
    tab.page.get_by_role("button", name="Present").click()
    assert tab.page.evaluate(size) > max(20, small) and tab.page.evaluate(width) > narrow
    tab.page.reload()
    tab.answered()
    assert tab.page.evaluate(size) > 20 and "present=true" in tab.page.url
    for id, key in (("panel", "p"), ("bar", "b")):
        for pressed in (key, "Escape"):
            expect(tab.page.locator(f"#{id}")).to_be_hidden()
            tab.page.keyboard.press(key)
            expect(tab.page.locator(f"#{id}")).to_be_visible()
            main = tab.page.locator("main").bounding_box()
            shown = tab.page.locator(f"#{id}").bounding_box()
            assert main["x"] + main["width"] <= shown["x"] or main["y"] >= shown["height"]
            tab.page.keyboard.press(pressed)
            expect(tab.page.locator(f"#{id}")).to_be_hidden()
    tab.page.locator(".source span").first.click()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#leave")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#panel")).to_be_visible()
    assert tab.page.evaluate(width) == narrow


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_it_is_chosen(opened, scheme):
    tab = opened("copy", color_scheme=scheme)
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    papers = {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 22, 20)"}
    assert tab.page.evaluate(colour) == papers.pop(scheme)
    tab.page.get_by_role("button", name="Light or dark").click()
    assert [tab.page.evaluate(colour)] == [*papers.values()]


@pytest.mark.parametrize("fragment", ["", "#present=true"])
@pytest.mark.parametrize("width", [1280, 1920, 390])
def test_it_opens_with_a_finding_and_nothing_cut(opened, width, fragment):
    """The marked row is a clear one, away from the diagonal. In Present nothing else names the
    head."""
    tab = opened("en-de", fragment, viewport={"width": width, "height": 720})
    head = "Cross-attention, layer 1 head 2: " if fragment else ""
    assert re.match(head + r"gesehen attends most to see \((9\d|100)%\)", tab.finding())
    cut = "(box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight"
    for part in ("h1", "#source", "#strip", "#written", ".message"):
        assert not tab.page.locator(part).evaluate(cut), part


# Safety


def test_markup_is_text_everywhere(opened, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for source in (SHIPPED / "copy").iterdir():
        if source.is_file():
            (folder / source.name).write_bytes(source.read_bytes())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["card"]["title"] = HOSTILE + "{{weights}}"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "examples.txt").write_text(f"{HOSTILE}{{{{data}}}}\na b\n", encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(page(folder), encoding="utf-8")
    tab = opened(file)
    assert tab.page.get_by_label("Text", exact=True).input_value() == f"{HOSTILE}{{{{data}}}}"
    assert tab.text("written") and tab.text("error") == ""
    name = HOSTILE.replace(" ", "%20").replace("#", "%23")
    tab.page.goto(f"{file.as_uri()}#source={name}&target={name}&changes={name}")
    tab.answered()
    assert HOSTILE[:9] in tab.text("error")
    for view, words in (("alignment", "#lines .row"), ("generate", "#generation .source")):
        tab.page.goto(f"{file.as_uri()}#source={name}&view={view}")
        expect(tab.page.locator(words).first).to_be_visible()
        assert "<" in tab.answered().page.locator(words).first.inner_text()
        assert tab.text("error") == ""
    assert tab.page.locator("img").count() == 0
    assert tab.page.title() == f"{HOSTILE}{{{{weights}}}} · Headlight"


def test_the_policy_allows_no_network_and_no_eval(opened, file):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', file("copy").read_text())[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "http" not in re.sub(r"sha256-\S+", "", policy)
    tab = opened("copy")
    outcome = tab.page.evaluate(
        """async () => {
          const run = new Promise((done) => setTimeout(() => done(window.ran ?? "blocked"), 200));
          const script = document.createElement("script");
          script.textContent = "window.ran = 'ran'";
          document.body.append(script);
          return [await run, await fetch("https://example.org").catch(() => "blocked")];
        }"""
    )
    assert outcome == ["blocked", "blocked"]
    tab.errors.clear()  # what the policy says about the two


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(opened, width, scheme):
    size = {"width": width, "height": 720}
    tab = opened("copy", "#source=a b c&changes=cross.1.1=off", viewport=size, color_scheme=scheme)
    for view in ("Attention", "Alignment", "Generate")[: 3 if scheme == "dark" else 1]:
        tab.choose(view)
        found = Axe().run(tab.page)
        assert found.violations_count == 0, found.generate_report()
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


# The command


def test_the_command_writes_a_page(tmp_path, capsys):
    out = tmp_path / "copy.html"
    main(["page", "copy", "--out", str(out)])
    assert str(out) in capsys.readouterr().out
    stored = (SHIPPED / "copy" / "model.safetensors").stat().st_size
    assert out.stat().st_size <= 1.4 * stored + 1e6


def test_share_gives_the_same_page(visit, tmp_path):
    visit.open("?model=copy").menu("share")
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Live page").click()
    assert download.value.suggested_filename == "copy.html"
    download.value.save_as(tmp_path / "copy.html")
    assert (tmp_path / "copy.html").read_text("utf-8") == page("copy")


def test_what_no_page_can_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(CannotHold, match=r"en-de take 5\.4 MB\. A live page holds at most 3 MB"):
        page("en-de", 3)
    with pytest.raises(SystemExit, match="A live page holds at most 3 MB"):
        main(["page", "en-de", "--out", str(tmp_path / "no.html"), "--most", "3"])
    with pytest.raises(SystemExit, match="There is no checkpoint nothing"):
        main(["page", "nothing", "--out", str(tmp_path / "no.html")])
    with pytest.raises(SystemExit):
        main(["page", "copy", "--out", str(tmp_path / "no.html"), "--most", "-1"])
    folder = tmp_path / "other"
    folder.mkdir()
    config = json.loads((SHIPPED / "copy" / "config.json").read_text("utf-8"))
    for change, message in (
        (
            {"preset": "annotated"},
            r"other is built as annotated\. A live page can only run paper",
        ),
        ({"card": {"pruned": {"encoder": [[0, 1]]}}}, "other has pruned heads"),
    ):
        (folder / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
        with pytest.raises(CannotHold, match=message):
            page(folder)
    model = load("copy")
    checkpoint.save(folder, model.model, model.preset, model.tokenizer, model.card)
    weights = {name: tensor.float() for name, tensor in model.model.named_parameters()}
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(CannotHold, match=r"other is stored as F32\. A live page holds weights"):
        page(folder)
    assert not list(tmp_path.glob("no.html"))
