"""`headlight page`: the file that it writes, and what it refuses, in words."""

import json

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


def test_the_command_names_what_is_left_out(tmp_path, capsys):
    out = tmp_path / "masks.html"
    main(["page", "en-de", "--lesson", "4-masks", "--out", str(out)])
    assert (
        "Left out, because only the app can show these steps: Count what is"
        in capsys.readouterr().out
    )
    own = tmp_path / "own.md"
    own.write_text(
        (live_lesson.SHIPPED_LESSONS / "1-shares.md").read_text("utf-8"), encoding="utf-8"
    )
    main(["page", "en-de", "--lesson", str(own), "--out", str(out)])
    for name, message in {
        "score": "cannot ask any question of the lesson “The score",
        "nothing": "There is no lesson “nothing”. Choose from shares, ",
        str(tmp_path / "none.md"): "cannot be read",
    }.items():
        with pytest.raises(SystemExit, match=message):
            main(["page", "en-de", "--lesson", name, "--out", str(tmp_path / "no.html")])
    with pytest.raises(SystemExit, match="is about en-de, not copy") as refused:
        main(["page", "copy", "--lesson", "shares", "--out", str(tmp_path / "no.html")])
    for name, model in live_lesson.CARRIED.items():
        assert f"\n  headlight page {model} --lesson {name} --out " in str(refused.value)
