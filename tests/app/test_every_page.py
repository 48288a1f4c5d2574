"""Every page with every model, under changes and comparisons, other masks and other ways of
reading: each two of them meet in some render, since a fault rarely takes three."""

import re
import shutil
from itertools import groupby

import pytest
from allpairspy import AllPairs

from headlight.app.state.options import OTHER, THIS
from headlight.app.state.pages import PAGES
from headlight.app.state.settings import SETTINGS
from headlight.model import checkpoint, load
from headlight.model.presets import PRESETS
from headlight.model.probing.changes import VERBS
from headlight.model.tokenizer import Tokenizer
from tests import odd
from tests.app.common import plain_text
from tests.conftest import LINES
from tests.model.common import random_model
from tests.model.pretrained.folders import FAMILIES, write

MODELS = ("uneven", "classifier", "odd", "alone", "local", *FAMILIES)
OURS = {"odd": odd.NAME, "alone": "decoder_only", "local": "window"}  # name → preset
# Every verb but “mean”, which needs what comes with a trained model.
CHANGES = {
    "none": "",
    "kind": "{kind}.{first}.2=off; {kind}=hide:2; {kind}.{last}.1=uniform; "
    "{kind}.{last}=temperature:2.0; {kind}.{first}.1=weight:3>1:0.9; {kind}.{first}=forbid:4>3; "
    "{kind}.{first}.3=mask:diagonal; {kind}.{first}.3=allow:3>1; {stack}_feed_forward.2=skip",
    "everywhere": "all.1.1=off; all=hide:2; {side}=positions:none",
    "patch": "{kind}.{last}.2=patch; {stack}_residual.1=patch",
}
TEXT, OTHER_TEXT = "the dog sees the cat", "the cat sees the dog"  # of as many tokens
SHOWN = {  # what is shown → changes, which weights, the sentence to compare with
    "as trained": ("none", THIS, ""),
    "after": ("kind", THIS, ""),
    "after, everywhere": ("everywhere", THIS, ""),
    "comparison": ("none", OTHER, OTHER_TEXT),
    "patched": ("patch", THIS, OTHER_TEXT),
}
MASKS = {
    "as trained": {"causal": True, "src_padding": True, "tgt_padding": True, "pad_to": 0},
    "looking ahead": {"causal": False, "src_padding": True, "tgt_padding": True, "pad_to": 0},
    "padding seen": {"causal": True, "src_padding": False, "tgt_padding": False, "pad_to": 16},
}
RENDERS = sorted(
    AllPairs([MODELS, [*PAGES], [*SHOWN], [*MASKS], ["first", "last"]]),
    key=lambda render: (MODELS.index(render[0]), render[2], render[4]),
)
# What it may say instead of taking apart what is no sum, or what is no longer there.
MASKED = ("this key is masked", "there is nothing to rescale")


def test_every_two_meet():
    columns = list(zip(*RENDERS, strict=True))
    for i, first in enumerate(columns):
        for second in columns[:i]:
            pairs = {*zip(first, second, strict=True)}
            assert len(pairs) == len({*first}) * len({*second})
    verbs = set(re.findall(r"=(\w+)", " ".join(CHANGES.values())))
    assert verbs == {*VERBS} - {"mean", "resample", "random", "path"}
    assert {changed for changed, *_ in SHOWN.values()} == {*CHANGES}
    assert {shows for _, shows, _ in SHOWN.values()} == {*SETTINGS["shows"].options}


@pytest.fixture(scope="module")
def models(models, tmp_path_factory):
    """A folder of all MODELS; see tests/conftest.py."""
    folder = tmp_path_factory.mktemp("every")
    for name in ("uneven", "classifier"):
        shutil.copytree(models / name, folder / name)
    for kind in FAMILIES:
        write(folder / kind, kind)
    tokenizer = Tokenizer.train(LINES, vocab_size=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, odd.NAME, odd.ODD)
        for name, preset in OURS.items():
            model = random_model(preset, vocab_size=len(tokenizer))
            checkpoint.save(folder / name, model, preset, tokenizer, {"title": name})
        yield folder


@pytest.mark.parametrize(
    ("name", "renders"),
    [(name, [*group]) for name, group in groupby(RENDERS, key=lambda render: render[0])],
    ids=MODELS,
)
def test_a_page_is_drawn(new_page, models, name, renders):
    model = load(models / name).model
    layers = {}  # by kind
    for site in model.sites():
        layers.setdefault(site.kind, []).append(site.layer + 1)
    kinds, side = [*layers], model.sides()[-1].title
    before = None
    for _, key, shown, masks, which in renders:
        changed, shows, other = SHOWN[shown]
        if (shown, which) != before:  # AppTest cannot choose what the screen before did not offer
            page, before = new_page(), (shown, which)
            page.query_params.update(model=name, source=TEXT, target="ein Hund")
        kind = kinds[0 if which == "first" else -1]
        line = CHANGES[changed].format(
            kind=kind, first=layers[kind][0], last=layers[kind][-1], side=side,
            stack="encoder" if "encoder" in kinds and kind != "decoder" else "decoder",
        )  # fmt: skip
        chosen = {"kind": kind, "changes": line, "shows": shows, "other": other}
        chosen |= MASKS[masks]
        if model.config.pad_id < 0:
            chosen["pad_to"] = 0
        for setting, value in chosen.items():
            page.session_state[setting] = value
        page.switch_page(key).run()
        assert not page.exception, (key, chosen, page.exception[0].value)
        assert all(text.allow_html for text in page.markdown if "<div" in text.value), key
        said = [plain_text(error.value) for error in page.error]
        # A weight is set of a key that another change, or padding, may have masked, or its others.
        assert all(any(part in text for part in MASKED) for text in said), (key, chosen, said)
        assert page.settings["model"] == name and page.settings["kind"] == kind
        now = page.session_state["_memo"].context.values
        assert now["other"] == other and (now["shows"] == shows or shows == THIS), (key, chosen)
        assert page.session_state["changes"] == chosen["changes"]
