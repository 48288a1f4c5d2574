"""A text whose weights are too many to keep: what the pages show of it, against what they show of
one that is short enough."""

import pandas as pd
import pytest

from headlight.app.components.packing import answers_of, pack_trace
from headlight.app.results import memoize, sweep_results
from headlight.app.results import shown as shown_module
from headlight.app.results.shown import Shown
from headlight.app.state import catalog
from headlight.app.state.pages import HOME, PAGES
from headlight.model import load
from headlight.model.analysis import head_metrics, leak
from headlight.model.analysis.reading import Reading
from headlight.model.masks import Masks
from headlight.model.probing.long_trace import attention_of
from headlight.model.probing.trace import bytes_of_weights, read_of
from tests.app.common import plain_text, unfold
from tests.conftest import long_but
from tests.model.pretrained.folders import write

TEXT = "the dog sees the cat and the cat sees the dog"
# These need the weights of all heads at once.
WHOLE = {
    "gpt2": ("bertviz", "take-away"),
    "en-de": ("bertviz", "take-away"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    write(folder / "gpt2", "gpt2")
    return folder


@pytest.fixture
def models(folder):
    """See tests/conftest.py."""
    return folder


@pytest.fixture
def pages(page, monkeypatch):
    """Opens all pages for a model, each text as a long one or not, and gives what each says."""

    def said_by(page):
        kinds = page.info, page.warning, page.markdown, page.caption, page.dataframe
        values = [plain_text(one.value) for one in page.error]
        values += [one.value for some in kinds for one in some]
        return [one.to_csv() if isinstance(one, pd.DataFrame) else one for one in values]

    def of(name, long, only=PAGES, **more):
        memoize.results_cache().entries.clear()
        monkeypatch.setattr(shown_module, "LARGEST_TRACE", 0 if long else 2**30)
        page.query_params.update(dict(model=name, source=TEXT) | more)
        found = {}
        for key in only:
            page.switch_page(key).run()
            if "all_heads" in more and key == HOME:
                unfold(page)
            assert not page.exception, (key, page.exception)
            found[key] = said_by(page)
        return found

    return of


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gpt2", {}),
        ("en-de", {"causal": "false", "pad_to": "16"}),
    ],
)
@pytest.mark.long
def test_every_page_says_the_same_of_a_long_text(pages, name, more):
    short, long = pages(name, False, **more), pages(name, True, **more)
    for key, said in short.items():
        assert long[key] == said, key


def needed(name, folder, one_layer):
    held = load(name if name == "en-de" else folder / name)
    run = held.run(TEXT)
    texts, sites = read_of(held.model, run), held.model.sites()
    return max(bytes_of_weights([s], texts) for s in sites) if one_layer else bytes_of_weights(
        sites, texts)  # fmt: skip


@pytest.mark.parametrize("name", long_but(["gpt2"], WHOLE))
def test_what_takes_all_weights_at_once_says_so(pages, folder, name, monkeypatch):
    free = needed(name, folder, True) + needed(name, folder, False)  # of which half is taken
    monkeypatch.setattr("headlight.model.probing.trace.available", lambda: free)
    for key, said in pages(name, True).items():
        told = [one for one in said if "The weights of all heads for" in one]
        assert len(told) == (key in WHOLE[name]), (key, told)
        assert all("tokens fit. Your text is still in the box." in one for one in told)


READINGS = [Reading(), Reading(words=True), Reading(special="hide and renormalise", words=True)]


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_drawn_and_measured_is_the_same(folder, name):
    held = load(name if name == "en-de" else folder / name)
    run = held.run(TEXT, masks=Masks(causal=False), changes="all.1.2=temperature:0.5")
    whole, kept = held.trace_run(run), held.long_trace_run(run)
    attention = attention_of(held.model, kept)
    for reading in READINGS:
        both = (pack_trace(one, reading, answers_of(one, held.outputs), attention=attention)
                for one in (whole, kept))  # fmt: skip
        assert len({*both}) == 1, reading
    for kind, ours in head_metrics.measured(kept, attention).items():
        theirs = head_metrics.measured(whole)[kind]
        for number in theirs.numbers:
            assert (ours.numbers[number] == theirs.numbers[number]).all(), number
            assert (ours.uniform[number] == theirs.uniform[number]).all(), number
    found = leak.leaks(kept, attention)
    assert found and [str(one) for one in found] == [str(one) for one in leak.leaks(whole)]


def test_a_large_model_is_not_run_for_an_hour(pages, monkeypatch):
    """What takes one pass for each head or token is told how much that would be."""
    some = (HOME,)
    shown = dict(all_effects="true", all_heads="true")
    said = pages("gpt2", False, some, **shown)
    monkeypatch.setattr(sweep_results, "MAX_SWEEP_WORK", 10**4)
    monkeypatch.setattr(sweep_results, "UNNOTICED_WORK", 10**4)
    less = pages("gpt2", False, some, **shown)
    assert not any("tokens through the model" in str(one) for one in said[HOME])
    assert any("tokens through the model; the limit is" in str(one) for one in less[HOME])
    measured, unmeasured = (any("ablation" in str(one) for one in of[HOME]) for of in (said, less))
    assert measured and not unmeasured


def test_only_weights_that_are_too_many_are_thrown_away(page, monkeypatch):
    """At the limit a trace keeps all."""
    view = catalog.view_of("en-de", "final", "cpu")
    run = view.checkpoint.run(TEXT)
    needed = bytes_of_weights(view.model.sites(), read_of(view.model, run))
    monkeypatch.setattr(shown_module, "LARGEST_TRACE", needed)
    assert Shown(view, run).is_whole
    monkeypatch.setattr(shown_module, "LARGEST_TRACE", needed - 1)
    assert not Shown(view, run).is_whole
