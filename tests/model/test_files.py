"""Files are replaced whole, and nothing else is touched."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from headlight.model.files import read_within, replace_file, replacing


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """027 for the test."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_a_link_that_was_put_there_is_not_followed(tmp_path):
    other, out = tmp_path / "other.txt", tmp_path / "out.txt"
    other.write_text("precious")
    for name in ("out.txt.new", "out.txt.tmp", ".out.txt.new", "out.new"):
        (tmp_path / name).symlink_to(other)
    before = {path.name for path in tmp_path.iterdir()}
    replace_file(out, "new")
    assert (out.read_text(), other.read_text()) == ("new", "precious")
    assert {path.name for path in tmp_path.iterdir()} == before | {"out.txt"}


def test_what_is_written_aside_never_replaces_what_is_there(tmp_path, monkeypatch):
    """Not even where its name was guessed."""
    other, out = tmp_path / "other.txt", tmp_path / "out.txt"
    other.write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    (tmp_path / ".new-guessed").symlink_to(other)
    with pytest.raises(FileExistsError):
        replace_file(out, "new")
    assert other.read_text() == "precious" and not out.exists()


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask):
    replace_file(tmp_path / "new", "")
    assert permissions(tmp_path / "new") == 0o640
    os.umask(0)
    replace_file(tmp_path / "open", "")
    assert permissions(tmp_path / "open") == 0o666


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path, umask, mode):
    out = tmp_path / "out"
    out.write_text("old")
    out.chmod(mode)
    with replacing(out) as file:
        (aside,) = set(tmp_path.iterdir()) - {out}
        assert permissions(aside) & ~mode == 0  # never open to more readers than the old file
        file.write(b"new")
    assert (out.read_text(), permissions(out)) == ("new", mode)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one_and_its_target_is_written(tmp_path, there):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    if there:
        target.write_text("old")
        target.chmod(0o600)
    (tmp_path / "between").symlink_to("elsewhere/target")
    link.symlink_to("between")
    replace_file(link, "new")
    assert link.is_symlink() and link.readlink().name == "between"
    assert target.read_text() == "new" and not target.is_symlink()
    assert not there or permissions(target) == 0o600
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_old_file(tmp_path, error):
    out = tmp_path / "out"
    out.write_text("old")
    with pytest.raises(type(error)), replacing(out) as file:
        file.write(b"half")
        raise error
    assert out.read_text() == "old" and list(tmp_path.iterdir()) == [out]
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):  # what cannot be renamed leaves nothing
        replace_file(tmp_path / "folder", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "out"}


def test_many_writers_leave_one_whole_file(tmp_path):
    out, texts = tmp_path / "out", [str(i) * 10_000 for i in range(8)]

    def write(text):
        for _ in range(20):
            replace_file(out, text)

    with ThreadPoolExecutor(len(texts)) as pool:
        writers = [pool.submit(write, text) for text in texts]
        while not all(writer.done() for writer in writers):
            assert not out.exists() or out.read_text() in texts
    for writer in writers:
        writer.result()
    assert out.read_text() in texts and list(tmp_path.iterdir()) == [out]


def test_no_more_of_a_file_is_read_than_it_may_have(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_within(file, 5) == b"12345"
    with pytest.raises(ValueError, match=r"file is larger than 0 MB, which is too large\.$"):
        read_within(file, 4)
    (tmp_path / "endless").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for somebody who writes
    for special in ("endless", "pipe", "."):
        with pytest.raises(OSError, match="it is not a regular file"):
            read_within(tmp_path / special, 1000)
    with pytest.raises(FileNotFoundError):
        read_within(tmp_path / "nothing", 5)
