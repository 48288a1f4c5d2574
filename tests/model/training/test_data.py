"""Data files: downloads from a server that misbehaves, files that are broken, batches."""

import gzip
import hashlib
import http.server
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from headlight.model.training import data
from headlight.model.training.data import (
    DataError,
    DataSet,
    batches,
    fetch,
    pad_ids,
    read_lines,
    read_multi30k,
    read_tatoeba,
    read_tsv,
)
from headlight.model.transformer import Config

CONTENT = bytes(range(256)) * 2000


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT, spoilt as the next entry of `server.faults` says."""

    def do_GET(self):
        fault = self.server.faults.pop(0) if self.server.faults else None
        self.server.answered += 1
        if fault == "error":
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        body = {"truncated": CONTENT[:1000], "broken": bytes(len(CONTENT))}.get(fault, CONTENT)
        self.wfile.write(body[:500])
        self.server.halfway.wait(60)
        self.wfile.write(body[500:])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.faults, server.answered, server.halfway = [], 0, threading.Barrier(1)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/"
    right = hashlib.sha256(CONTENT).hexdigest()
    monkeypatch.setitem(data.DATA_SETS, "test", DataSet("", "", address, {"a.bin": right}))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch_and_not_again(server, tmp_path):
    """But a file that is spoilt."""
    (tmp_path / "a.bin").write_bytes(b"spoilt")
    assert fetch("test", tmp_path) == tmp_path
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    fetch("test", tmp_path)
    assert server.answered == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [("truncated", "could not be read"), ("broken", "SHA-256"), ("error", "could not be read")],
)
def test_an_answer_that_is_wrong_leaves_nothing(server, tmp_path, fault, said):
    server.faults[:] = [fault]
    with pytest.raises(DataError, match=said):
        fetch("test", tmp_path)
    assert list(tmp_path.iterdir()) == []
    fetch("test", tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    with pytest.raises(DataError, match="could not be read"):
        fetch("test", tmp_path / "other", address="http://127.0.0.1:9/")


def test_four_downloads_at_once(server, tmp_path):
    server.halfway = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: fetch("test", tmp_path), range(4))) == [tmp_path] * 4
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path))
    assert data.cache_folder("reviews") == tmp_path / "reviews"
    with pytest.raises(DataError, match="data fetch reviews"):
        data.find("reviews", None)


def test_unusual_line_ends_stay_in_the_text_and_a_byte_order_mark_does_not(tmp_path):
    text = "one\u2028still one\x0bstill\r\ntwo\n"
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "a.txt").write_bytes(text.encode(encoding))
        assert read_lines(tmp_path / "a.txt") == ["one\u2028still one\x0bstill", "two"]


def test_unusable_files(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "blank").write_bytes(b"\n \n")
    (tmp_path / "latin").write_bytes("schön\n".encode("latin-1"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"text\n" * 1000)[:30])
    (tmp_path / "no.gz").write_bytes(b"no gzip at all")
    for name, words in {
        "absent": "no file", "empty": "empty", "blank": "empty", "latin": "UTF-8",
        "cut.gz": "cannot be read", "no.gz": "cannot be read",
    }.items():  # fmt: skip
        with pytest.raises(DataError, match=words) as caught:
            read_lines(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


def test_each_source_has_a_target(tmp_path):
    for side, lines in (("en", "a\nb\n"), ("de", "a\n")):
        (tmp_path / f"val.{side}.gz").write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(DataError, match=r"2 en lines but 1 de lines"):
        read_multi30k(tmp_path, "val")
    file = tmp_path / "pairs.tsv"
    file.write_text("a b\tc d\ne\tf\n")
    assert read_tsv(file) == [("a b", "c d"), ("e", "f")]
    for text, words in {
        "a\tb\na\n": "line 2: 1 columns",
        "a\tb\tc\n": "line 1: 3 columns",
        "a\t\n": "the source or the target is empty",
    }.items():
        file.write_text(text)
        with pytest.raises(DataError, match=words):
            read_tsv(file)


def random_pairs(count):
    torch.manual_seed(1)
    lengths = torch.randint(1, 30, (count, 2)).tolist()
    return [([i] * a, [i] * b) for i, (a, b) in enumerate(lengths)]


def test_batches_hold_every_pair_once_and_no_more_tokens_than_allowed():
    """But for a pair that is longer."""
    pairs = random_pairs(500)
    order = torch.Generator().manual_seed(2)
    found = list(batches(pairs, 300, order))
    assert sorted(map(str, pairs)) == sorted(str(pair) for batch in found for pair in batch)
    assert all(max(max(map(len, pair)) for pair in b) * len(b) <= 300 for b in found)
    assert list(batches([([1], [2]), ([1] * 9, [2])], 4)) == [[([1], [2])], [([1] * 9, [2])]]
    again = list(batches(pairs, 300, torch.Generator().manual_seed(2)))
    assert again == found != list(batches(pairs, 300, order))


def test_texts_of_one_length_need_no_padding_token():
    config = Config(9, pad_id=-1)
    assert pad_ids([[1, 2], [2, 3]], config).tolist() == [[1, 2], [2, 3]]
    with pytest.raises(DataError, match=r"^This model has no padding token .*-1.* lengths"):
        pad_ids([[1], [2, 3]], config)


def test_everyday_sentences_are_split_by_their_english_side(tmp_path):
    """The rule once more, over sentences of which some have several translations."""
    english = [f"Sentence {i % 700}." for i in range(1000)]
    german = [f"{text}\tSatz {i}.\tCC-BY" for i, text in enumerate(english)]
    french = [f"{text}\tPhrase {i} ?" for i, text in enumerate(english)]
    short = {
        "deu": ["1\t2", *german[:200], " Go. \tGeh. ", "Go.\tGeh.", "Alone", "\tNiemand"],
        "fra": [*french[:200], "Cut\toff"],
    }
    for name, all_lengths in (("deu", german), ("fra", french)):
        text = "\n".join(short[name]) + "\n"
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        with zipfile.ZipFile(tmp_path / f"{name}-eng.zip", "w") as archive:
            archive.writestr("_about.txt", "Not\tthis")
            archive.writestr(f"{name}.txt", "\n".join(all_lengths[100:]) + "\n")
    data.split_tatoeba(tmp_path)
    for language, more in (("de", 1), ("fr", 0)):
        parts = {
            part: read_tatoeba(tmp_path, part, tgt=language) for part in ("train", "val", "test")
        }
        for part, pairs in parts.items():
            assert pairs and pairs == sorted(set(pairs)), part
            for source, _ in pairs:
                number = int(hashlib.sha1(source.encode()).hexdigest(), 16) % 200
                assert part == ("test" if number < 2 else "val" if number < 4 else "train")
                assert number not in (4, 5)
        everything = {pair for pairs in parts.values() for pair in pairs}
        kept = [int(hashlib.sha1(text.encode()).hexdigest(), 16) % 200 not in (4, 5)
                for text in english]  # fmt: skip
        assert len(everything) == sum(kept) + more  # each pair once, from either file
        assert (("Go.", "Geh.") in everything) == bool(more)
        assert not any(source in ("1", "Cut", "Not", "Alone") for source, _ in everything)
    assert (
        read_tatoeba(tmp_path, "val", "fr", "en")[0][::-1]
        == read_tatoeba(tmp_path, "val", tgt="fr")[0]
    )


def test_an_archive_that_is_none_or_lacks_its_file_is_named(tmp_path):
    file = tmp_path / "deu-eng.zip"
    with pytest.raises(DataError, match=r"^There is no file .*deu-eng\.zip"):
        data.read_zipped_lines(file, "deu.txt")
    file.write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"deu-eng\.zip cannot be read"):
        data.read_zipped_lines(file, "deu.txt")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("other.txt", "x")
    with pytest.raises(DataError, match=r"deu-eng\.zip cannot be read: .*deu\.txt"):
        data.read_zipped_lines(file, "deu.txt")
