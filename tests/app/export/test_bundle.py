"""Evidence packs: what is in them, what they are compared with, and the broken ones."""

import io
import json
import pickle
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.app.export import bundle as bundles
from headlight.app.export.bundle import (
    FILES,
    NUMBERS,
    RECORD,
    Model,
    Unreadable,
    compare,
    make,
    read,
)
from headlight.app.export.view import permalink
from headlight.app.state.pages import HOME
from headlight.model import load
from headlight.model.checkpoint import parameters_sha256, untrained
from tests.app.common import files_of, view_of

MODEL = Model("en-de", "model.safetensors", "0123456789abcdef" * 4)


@pytest.fixture(scope="module")
def trace():
    return load("en-de").trace("A dog runs.", "Ein Hund rennt.")


@pytest.fixture(scope="module")
def pack(trace) -> bytes:
    return make(view_of(trace), MODEL)


@pytest.fixture(scope="module")
def files(pack) -> dict[str, bytes]:
    return files_of(pack)


def zipped(files, compression=zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def test_a_pack_holds_everything_and_says_so(pack, files, trace):
    assert set(files) == FILES
    record = json.loads(files[RECORD])
    assert record["settings"] == view_of(trace).settings
    assert record["model"] == vars(MODEL) and record["versions"]["torch"]
    assert record["permalink"] == permalink(record["settings"], HOME)
    assert "http" not in record["permalink"]
    readme = files["README.txt"].decode()
    assert all(name in readme for name in files if name != "README.txt")
    assert MODEL.sha256 in readme and record["permalink"] in readme
    assert files["head.png"].startswith(b"\x89PNG") and files["page.html"].startswith(b"<!doctype")
    assert make(view_of(trace), MODEL) == pack  # the same view, the same bytes


def test_a_pack_is_read_as_it_was_made(pack, trace, nothing_is_opened):
    found = read(pack)
    assert found.settings == view_of(trace).settings and found.model == MODEL
    assert found.tokens == {"source": trace.src.tokens, "target": trace.tgt.tokens}
    for kind, weights in trace.attention.items():
        assert (found.attention[kind] == weights).all()
    agreement = compare(found, trace, MODEL)
    assert agreement.verdict == "identical" and agreement.largest == 0


def moved(trace, by: float):
    changed = trace.attention["cross"].copy()
    changed[1, 2, 0, 0] += by * (1 if changed[1, 2, 0, 0] < 0.5 else -1)
    return replace(trace, attention=trace.attention | {"cross": changed})


@pytest.mark.parametrize(
    ("by", "verdict"),
    [
        (5e-7, "identical"),
        (5e-5, "same model, different hardware"),
        (5e-4, "different"),
    ],
)
def test_agreement_has_three_degrees(pack, trace, by, verdict):
    agreement = compare(read(pack), moved(trace, by), MODEL)
    assert agreement.verdict == verdict
    assert agreement.largest == pytest.approx(by, rel=0.2)
    named = "Cross-attention, layer 2, head 3" in agreement.explanation[-1]
    assert named == (verdict != "identical")


def test_what_differs_is_said(pack, trace):
    found = read(pack)

    def said(found, trace, model=MODEL):
        agreement = compare(found, trace, model)
        assert agreement.verdict == "different" or model != MODEL
        return agreement.explanation[0]

    other = said(found, trace, replace(MODEL, sha256="f" * 64))
    assert "SHA-256" in other and "ffffffffffff" in other
    tgt = replace(trace.tgt, tokens=(*trace.tgt.tokens[:2], "Katze", *trace.tgt.tokens[3:]))
    other = said(found, replace(trace, texts=trace.texts | {"tgt": tgt}))
    assert "position 3" in other and "“Katze” here" in other
    fewer = {kind: weights[:2] for kind, weights in trace.attention.items()}
    shapes = "has 4 layers of 4 heads in the pack and 2 layers of 4 heads here"
    assert shapes in said(found, replace(trace, attention=fewer))
    lacking = replace(found, attention={"cross": found.attention["cross"]})
    assert "no weights for encoder" in said(lacking, trace)


def test_a_large_view_is_packed_in_part(trace, monkeypatch):
    monkeypatch.setattr(bundles, "LARGEST_NUMBERS", 1000)
    monkeypatch.setattr(bundles, "LARGEST_TABLE", 500)
    monkeypatch.setattr(bundles, "LARGEST_RECORD", 2**16)
    view = view_of(trace, layer=1, head=2)
    kept, left_out, one = bundles.contents(view)
    assert one and "weights.csv" not in kept and len(left_out) == 2
    content = make(view, MODEL)
    monkeypatch.undo()
    found = read(content)
    assert found.head == ("cross", 1, 2)
    assert found.attention["cross"].shape == (1, 1, *trace.attention["cross"].shape[2:])
    assert compare(found, trace, MODEL).verdict == "identical"
    seen = compare(found, moved(trace, 0.01), MODEL)
    assert seen.verdict == "different" and "layer 2, head 3" in seen.explanation[-1]


def test_random_weights_have_a_sum_of_their_own(small_presets):
    like = load("en-de")
    first, again, other = (untrained("annotated", like, seed) for seed in (0, 0, 1))
    sums = [parameters_sha256(one.model) for one in (first, again, other)]
    assert sums[0] == sums[1] != sums[2]
    with torch.no_grad():
        next(again.model.parameters())[0, 0] += 1e-3
    assert parameters_sha256(again.model) != sums[0]


# Broken ones


def recorded(files, **changes) -> bytes:
    record = json.loads(files[RECORD]) | changes
    return zipped(files | {RECORD: json.dumps(record).encode()})


def set_to(files, **changes) -> bytes:
    return recorded(files, settings=json.loads(files[RECORD])["settings"] | changes)


def test_a_pack_of_a_page_that_is_gone_opens_on_what_took_its_place(files):
    assert read(recorded(files, permalink="attention?model=en-de")).page == HOME


def numbered(files, **arrays) -> bytes:
    """With other arrays, or raw bytes, or none."""
    with np.load(io.BytesIO(files[NUMBERS])) as found:
        held = {name: found[name] for name in found}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, array in (held | arrays).items():
            if array is None:
                continue
            if not isinstance(array, bytes):
                file = io.BytesIO()
                np.lib.format.write_array(file, array)
                array = file.getvalue()
            archive.writestr(f"{name}.npy", array)
    return zipped(files | {NUMBERS: made.getvalue()})


def array(files, name="cross"):
    with np.load(io.BytesIO(files[NUMBERS])) as found:
        return found[name].copy()


def with_value(files, value):
    changed = array(files)
    changed[0, 0, 0, 0] = value
    return numbered(files, cross=changed)


def claims(shape, content=b"", descr="<f4") -> bytes:
    """An array whose header says more than there is."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def many_entries() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for i in range(5000):
            archive.writestr(f"{i}", "")
    return made.getvalue()


def twice(files) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, pytest.warns(UserWarning):
        for content in (files[RECORD], b"{}"):
            archive.writestr(RECORD, content)
    return made.getvalue()


def flipped(pack: bytes, at: int) -> bytes:
    return pack[:at] + bytes([pack[at] ^ 0xFF]) + pack[at + 1 :]


def damaged_numbers(files) -> bytes:
    stored = zipped(files, zipfile.ZIP_STORED)
    return flipped(stored, stored.index(files[NUMBERS]) + 500)


def encrypted(files) -> bytes:
    content = bytearray(zipped({RECORD: files[RECORD], NUMBERS: files[NUMBERS]}))
    place = content.index(b"PK\x01\x02")
    content[place + 8] |= 1
    return bytes(content)


class Runs:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


DAMAGED = "evidence.json is damaged"
THIRTY = (1, 1, 3000, 2500)  # MB
BROKEN = {
    "empty": (lambda p, f: b"", "not a ZIP"),
    "text": (lambda p, f: b"hello" * 100, "not a ZIP"),
    "cut in half": (lambda p, f: p[: len(p) // 2], "is incomplete"),
    "cut at the end": (lambda p, f: p[:-1], "is incomplete"),
    "too large": (lambda p, f: b"PK" + bytes(bundles.LARGEST_BUNDLE), "too large"),
    "list of files broken": (lambda p, f: flipped(p, p.rindex(b"PK\x01\x02")), "cannot be read"),
    "many files": (lambda p, f: many_entries(), "more files"),
    "two of one name": (lambda p, f: twice(f), "two files of the same name"),
    "climbs out": (lambda p, f: zipped(f | {"../../x.json": b""}), "does not belong in a pack"),
    "from the root": (lambda p, f: zipped(f | {"/etc/passwd": b""}), "does not belong in a pack"),
    "of Windows": (lambda p, f: zipped(f | {"C:\\x": b""}), "does not belong in a pack"),
    "a stranger": (lambda p, f: zipped(f | {"model.pkl": pickle.dumps(1)}),
                   "does not belong in a pack"),
    "no record": (lambda p, f: zipped({NUMBERS: f[NUMBERS]}), f"lacks {RECORD}"),
    "no numbers": (lambda p, f: zipped({RECORD: f[RECORD]}), f"lacks {NUMBERS}"),
    "encrypted": (lambda p, f: encrypted(f), "damaged or encrypted"),
    "other compression": (lambda p, f: zipped(f, zipfile.ZIP_LZMA), "in an unsupported way"),
    "damaged": (lambda p, f: damaged_numbers(f), "damaged"),
    "bomb": (lambda p, f: zipped(f | {NUMBERS: bytes(2**26)}), "when unpacked"),
    "bomb in the record": (lambda p, f: zipped(f | {RECORD: b" " * 2**24}), "when unpacked"),
    "bomb within": (lambda p, f: zipped(f | {NUMBERS: zipped({"cross.npy": bytes(2**26)})}),
                    "when unpacked"),
    "bombs within, too large together": (
        lambda p, f: zipped(f | {NUMBERS: zipped({f"{kind}.npy": claims(THIRTY, bytes(30_000_000))
                                                  for kind in ("cross", "encoder")})}),
        "when unpacked"),
    "not valid JSON": (lambda p, f: zipped(f | {RECORD: b"{"}), DAMAGED),
    "not UTF-8": (lambda p, f: zipped(f | {RECORD: b"\xff"}), DAMAGED),
    "deep JSON": (lambda p, f: zipped(f | {RECORD: b"[" * 200_000}), DAMAGED),
    "other JSON": (lambda p, f: zipped(f | {RECORD: b"[1]"}), DAMAGED),
    "newer": (lambda p, f: recorded(f, version=3), "another version of Headlight"),
    "no settings": (lambda p, f: recorded(f, settings=None), DAMAGED),
    "a setting missing": (lambda p, f: recorded(f, settings={"kind": "cross"}),
                          "lacks the setting"),
    "layer as text": (lambda p, f: set_to(f, layer="1"), "invalid value for “layer”"),
    "layer 0": (lambda p, f: set_to(f, layer=0), "invalid value for “layer”"),
    "true for a number": (lambda p, f: set_to(f, pad_to=True), "invalid value for “pad_to”"),
    "padding of a million": (lambda p, f: set_to(f, pad_to=10**6), "invalid value for “pad_to”"),
    "NaN": (lambda p, f: set_to(f, pad_to=float("nan")), "invalid value for “pad_to”"),
    "another kind": (lambda p, f: set_to(f, kind="self"), DAMAGED),
    "half a character": (lambda p, f: set_to(f, source="\ud800"), "invalid value for “source”"),
    "a long text": (lambda p, f: set_to(f, source="a" * 200_000), "invalid value for “source”"),
    "no model": (lambda p, f: recorded(f, model={"name": 1}), DAMAGED),
    "no versions": (lambda p, f: recorded(f, versions=[]), DAMAGED),
    "which head": (lambda p, f: recorded(f, numbers_of={"kind": "x"}), DAMAGED),
    "not that head": (lambda p, f: recorded(f, numbers_of={"kind": "cross", "layer": 0, "head": 0}),
                      "does not belong to the head"),
    "numbers are text": (lambda p, f: zipped(f | {NUMBERS: b"1, 2"}), "not a ZIP"),
    "pickle": (lambda p, f: numbered(f, cross=np.array([Runs()])), "pickle"),
    "bare pickle": (lambda p, f: numbered(f, cross=pickle.dumps(Runs())), "cannot be read"),
    "NaN weights": (lambda p, f: with_value(f, np.nan), "between 0 and 1"),
    "infinite weights": (lambda p, f: with_value(f, np.inf), "between 0 and 1"),
    "negative weights": (lambda p, f: with_value(f, -0.1), "between 0 and 1"),
    "float64": (lambda p, f: numbered(f, cross=array(f).astype(float)), "should be float32"),
    "three axes": (lambda p, f: numbered(f, cross=array(f)[0]), "with four axes"),
    "Fortran": (lambda p, f: numbered(f, cross=np.asfortranarray(array(f))), "should be"),
    "a row less": (lambda p, f: numbered(f, cross=array(f)[:, :, 1:]), "tokens"),
    "no tokens": (lambda p, f: numbered(f, source=None), "but there are 0 × "),
    "no weights": (lambda p, f: numbered(f, encoder=None, decoder=None, cross=None), "no weights"),
    "a stranger within": (lambda p, f: numbered(f, other=np.zeros(1)), "does not belong in a pack"),
    "huge shape": (lambda p, f: numbered(f, cross=claims((10**9,) * 4)),
                   "does not match its header"),
    "negative shape": (lambda p, f: numbered(f, cross=claims((-1, -1, 1, 1))), "cannot be read"),
    "a shape of truths": (lambda p, f: numbered(f, cross=claims((True,) * 4, bytes(4))),
                          "cannot be read"),
    "negative tokens": (lambda p, f: numbered(f, source=claims((-5,), descr="<U1")),
                        "cannot be read"),
    "no letters": (lambda p, f: numbered(f, source=claims((5,), descr="<U0")),
                   "does not match its header"),
    "many that are no letters": (lambda p, f: numbered(f, source=claims((10**8,), descr="<U0")),
                                 "does not match its header"),
    "a grid of tokens": (lambda p, f: numbered(f, source=np.array([["a"], ["b"]])),
                         "other than text"),
    "two of one array": (
        lambda p, f: zipped(f | {NUMBERS: zipped({"cross": b"", "cross.npy": b""})}),
        "does not belong in a pack"),
    "other than text": (lambda p, f: numbered(f, source=claims((1,), b"\xff" * 4, "<U1")),
                        "other than text"),
    "a program as header": (
        lambda p, f: numbered(f, cross=claims("__import__('os').abort()")), "cannot be read"),
}  # fmt: skip


def test_a_pack_from_before_a_display_option_opens(files):
    settings = json.loads(files[RECORD])["settings"]
    del settings["colours"]
    assert read(recorded(files, settings=settings)).settings == settings


@pytest.fixture
def nothing_is_opened(monkeypatch, tmp_path):
    """Nor written: a pack is read in memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.open", lambda *args, **more: pytest.fail(f"opened {args[0]}"))
    yield
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pack_gets_a_sentence(pack, files, name, nothing_is_opened):
    breaks, said = BROKEN[name]
    with pytest.raises(Unreadable, match=said) as refused:
        read(breaks(pack, files))
    sentence = str(refused.value)
    assert sentence.endswith(".") and len(sentence) < 250 and sentence.isprintable()


@pytest.mark.parametrize("seed", range(60))
def test_a_pack_with_a_few_bytes_changed_is_refused_or_read(pack, seed):
    random = np.random.default_rng(seed)
    content = bytearray(pack)
    for _ in range(3):
        tail = random.integers(0, min(1500, len(pack))) if seed % 2 else 0
        at = len(pack) - 1 - tail if seed % 2 else random.integers(0, len(pack))
        content[at] = random.integers(0, 256)
    try:
        read(bytes(content))
    except Unreadable as refused:
        assert str(refused).isprintable()
