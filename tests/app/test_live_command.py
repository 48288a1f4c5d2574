"""`headlight page`: the file that it writes, and what it refuses, in words."""

import json
import shutil

import pytest
from safetensors.torch import save_file

from headlight.app.command import main
from headlight.app.live import lesson as live_lesson
from headlight.app.live.build import CannotHold, page
from headlight.model import checkpoint
from headlight.model.checkpoint import SHIPPED, load


def test_the_command_writes_a_page(tmp_path, capsys):
    out = tmp_path / "copy.html"
    main(["page", "copy", "--out", str(out)])
    assert str(out) in capsys.readouterr().out
    stored = (SHIPPED / "copy" / "model.safetensors").stat().st_size
    assert out.stat().st_size <= 1.4 * stored + 1e6


def test_what_no_page_can_hold_is_refused(tmp_path):
    with pytest.raises(CannotHold, match=r"en-de take 5\.4 MB\. A live page holds at most 3 MB"):
        page("en-de", 3)
    out = ["--out", str(tmp_path / "no.html")]
    for arguments, said in (
        (["en-de", "--most", "3"], "A live page holds at most 3 MB"),
        (["nothing"], "There is no checkpoint nothing"),
        (["copy", "--most", "-1"], "2"),
    ):
        with pytest.raises(SystemExit, match=said):
            main(["page", *arguments, *out])
    folder, pruned = tmp_path / "other", {"card": {"pruned": {"encoder": [[0, 1]]}}}
    folder.mkdir()
    config = json.loads((SHIPPED / "copy" / "config.json").read_text("utf-8"))
    annotated = r"other is built as annotated\. A live page can only run paper"
    refused = (({"preset": "annotated"}, annotated), (pruned, "other has pruned heads"))
    for change, message in refused:
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


def test_the_command_names_what_is_left_out(tmp_path, capsys):
    out, own, no = tmp_path / "masks.html", tmp_path / "own.md", str(tmp_path / "no.html")
    main(["page", "en-de", "--lesson", "4-masks", "--out", str(out)])
    left_out = "Left out, because only the app can show these steps: Count what is"
    assert left_out in capsys.readouterr().out
    shutil.copy(live_lesson.SHIPPED_LESSONS / "1-shares.md", own)
    main(["page", "en-de", "--lesson", str(own), "--out", str(out)])
    for model, name, message in (
        ("en-de", "score", "cannot ask any question of the lesson “The score"),
        ("en-de", "nothing", "There is no lesson “nothing”. Choose from shares, "),
        ("en-de", str(tmp_path / "none.md"), "cannot be read"),
        ("copy", "shares", "is about en-de, not copy"),
    ):
        with pytest.raises(SystemExit, match=message) as refused:
            main(["page", model, "--lesson", name, "--out", no])
    for name, model in live_lesson.CARRIED.items():
        assert f"\n  headlight page {model} --lesson {name} --out " in str(refused.value)
