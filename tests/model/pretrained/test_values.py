"""Whatever stands in a description of a model: it loads, or says what is wrong in one sentence."""

import json
import shutil

import pytest

from headlight.app.command import main as run
from headlight.model.checkpoint import load
from headlight.model.families.values import quoted
from headlight.model.pretrained.command import listed
from headlight.model.pretrained.weights import CannotLoad
from tests.model.common import refusals
from tests.model.pretrained.folders import write

LONG = 10**60


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folders = {}
    for kind in ("minilm", "gpt2", "llama-yarn", "marian"):
        folders[kind] = tmp_path_factory.mktemp("good") / kind
        write(folders[kind], kind)
    return folders


def change(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


BEYOND = {  # folder → values beyond what a field may be, one of each kind
    "minilm": dict(hidden_size=24.0, layer_norm_eps=2, hidden_act=["gelu"], type_vocab_size=0),
    "gpt2": dict(eos_token_id=-2, tie_word_embeddings=0, scale_attn_weights=False, n_inner=0),
    "llama-yarn": dict(rms_norm_eps=-1, num_key_value_heads=3, head_dim=-6, attention_bias="no",
                       max_position_embeddings=2**24 + 1, rope_parameters="yarn"),
    "marian": dict(max_position_embeddings=65_537, encoder_layers="2", decoder_ffn_dim=41,
                   decoder_start_token_id=10**6, scale_embedding=1, decoder_vocab_size=0),
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0}
ROTATIONS = (
    {"rope_theta": 1}, {"factor": 0}, {"factor": float("inf")}, {"beta_fast": -1}, {"beta_slow": 0},
    {"attention_factor": float("nan")}, {"mscale": -1}, {"mscale_all_dim": LONG}, {"truncate": 3},
    {"original_max_position_embeddings": 0}, {"rope_type": []}, {"partial_rotary_factor": LONG},
    {"rope_type": "llama3", "low_freq_factor": 4, "high_freq_factor": 4},
    {"rope_type": "longrope", "long_factor": [0] * 3, "short_factor": [1] * 3},
)  # fmt: skip


def test_what_is_beyond_a_range_is_refused_by_name(good, tmp_path):
    cases = [(kind, name, value) for kind, some in BEYOND.items() for name, value in some.items()]
    cases += [("llama-yarn", "rope_parameters", YARN | one) for one in ROTATIONS]
    folders = {}
    for i, (kind, name, value) in enumerate(cases):
        folders[i] = (shutil.copytree(good[kind], tmp_path / str(i)),)
        change(*folders[i], **{name: value})
    for i, said in refusals(CannotLoad, load, folders):
        _, name, value = cases[i]
        message = said.replace(str(tmp_path), "")
        names = {name, *(value if isinstance(value, dict) else ())}
        names |= {"n_key_heads"} if name == "num_key_value_heads" else set()
        assert any(one in message for one in names), (cases[i], message)
        assert message.endswith(".") and "\n" not in message and len(message) < 300, message


def test_one_broken_folder_leaves_the_others_in_the_list(good, tmp_path, capsys):
    for i, kind in enumerate(good):
        shutil.copytree(good[kind], tmp_path / f"{i}-{kind}")
    for i, values in enumerate((
        {"model_type": {}}, {"model_type": "x" * 5000}, {"hidden_size": LONG}
    )):  # fmt: skip
        shutil.copytree(good["minilm"], tmp_path / f"1-{i}")
        change(tmp_path / f"1-{i}", **values)
    (tmp_path / "1-3").mkdir()
    (tmp_path / "1-3" / "config.json").write_text("1" * 5000)
    run(["pretrained", "list", "--into", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(one.name for one in tmp_path.iterdir())
    assert sum("licence:" in line for line in lines) == 5  # a size is read when it is loaded
    assert max(map(len, lines)) < 400 + 2 * len(str(tmp_path))


def test_a_folder_that_may_not_be_read_is_listed_with_its_reason(good, tmp_path, monkeypatch):
    shutil.copytree(good["gpt2"], tmp_path / "a")
    shutil.copytree(good["gpt2"], tmp_path / "b")
    from headlight.model.pretrained import command

    before = command.layout_of

    def layout_of(path):
        if path.name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return before(path)

    monkeypatch.setattr(command, "layout_of", layout_of)
    first, second = listed(tmp_path)
    assert first == "a  cannot be read: Permission denied." and "licence:" in second


def test_what_is_quoted_is_short():
    for value in (LONG, 10**4000, -(10**4000), "x" * 10**6, ["y" * 99] * 99, {"z" * 99: [LONG]}):
        assert len(quoted(value)) <= 61
    nested = []
    for _ in range(900):
        nested = [nested, nested]
    assert len(quoted(nested)) <= 61
