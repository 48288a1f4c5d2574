"""Models that something else wraps, and models in half precision."""

import copy
from datetime import timedelta

import numpy as np
import pytest
import torch
from torch import nn

from headlight.model import record
from headlight.model.recording.weights import CannotRecord
from tests.model.recording.models import ALL, eager, inputs_of, model_of, named, state_of


def assert_same(first, second, within=0.0):
    assert list(first.attention) == list(second.attention)
    for kind, weights in first.attention.items():
        assert np.abs(weights - second.attention[kind]).max() <= within
    names = [
        [site.name.replace("_orig_mod.", "") for site in each.sites] for each in (first, second)
    ]
    assert names[0] == names[1] and first.origin == second.origin


def as_it_was(model, **how):
    before = state_of(model)
    recorded = record(model, **how)
    assert state_of(model) == before
    return recorded


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "adapted"),
    [("llama", "q_proj"), ("bert", "query"), ("bart", "k_proj"), ("gpt2", "c_attn"),
     ("bloom", "query_key_value")],
)  # fmt: skip
def test_adapters_act_merged_or_not(name, adapted):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=[adapted], init_lora_weights=False)
    model, inputs = model_of(name), inputs_of(name)
    with_adapter = peft.get_peft_model(copy.deepcopy(model), config).eval()
    recorded = as_it_was(with_adapter, inputs=inputs)
    merged = copy.deepcopy(with_adapter).merge_and_unload()
    assert_same(recorded, record(merged, inputs=inputs), within=1e-6)
    assert recorded.predicted.predicts == record(model, inputs=inputs).predicted.predicts != ""
    with_adapter.merge_adapter()
    assert_same(record(with_adapter, inputs=inputs), record(merged, inputs=inputs))
    with pytest.raises(AssertionError):  # it does something
        assert_same(recorded, record(model, inputs=inputs), within=0.01)


@pytest.mark.long
@pytest.mark.parametrize("name", ["llama", "bart"])
def test_a_model_that_is_loaded_as_it_runs(name, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    model, cpu = model_of(name), torch.device("cpu")
    plain = record(model, text=[3, 4, 5])
    where = {"execution_device": cpu}
    for placed in (
        accelerate.dispatch_model(copy.deepcopy(model), {"": "cpu"}, force_hooks=True),
        accelerate.cpu_offload(copy.deepcopy(model), **where),
        accelerate.disk_offload(copy.deepcopy(model), str(tmp_path), **where),
    ):
        assert_same(record(placed, text=[3, 4, 5]), plain)


@pytest.mark.long
@pytest.mark.parametrize("name", ["llama", "bart"])
def test_a_compiled_model_runs_as_it_was_written(name):
    model, inputs = model_of(name), inputs_of(name)
    plain, part = record(model, inputs=inputs), copy.deepcopy(model)
    part.model = torch.compile(part.model, backend="eager")
    within = copy.deepcopy(model)
    within.compile(backend="eager")
    for compiled in (torch.compile(model, backend="eager"), part, within):
        compiled(**inputs)
        assert_same(as_it_was(compiled, inputs=inputs), plain)


class Holder(nn.Module):
    """Somebody's own module, with a model of transformers inside."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.head = inner, nn.Linear(97, 3)

    def forward(self, input_ids):
        return self.head(self.inner(input_ids).logits)


def test_a_model_inside_of_another_is_found():
    model = model_of("llama")
    plain = record(model, text=[3, 4, 5])
    assert_same(as_it_was(Holder(model), text=[3, 4, 5]), plain)
    assert_same(record(Holder(model), inputs=(torch.tensor([[3, 4, 5]]),)), plain)
    on_any = record(nn.DataParallel(model), text=[3, 4, 5])  # on a GPU if there is one
    assert_same(on_any, plain, 1e-6)
    assert record(Holder(model), text=[3, 4, 5]).predicted.predicts == ""  # its output is its own
    changed = {"changes": "decoder.1.2=off"}
    first = record(Holder(model), text=[3, 4, 5], **changed)
    assert_same(first, record(model, text=[3, 4, 5], **changed))
    with pytest.raises(CannotRecord, match="BloomForCausalLM can only be read by itself"):
        record(Holder(model_of("bloom")), text=[3, 4, 5])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", named(ALL, {"llama", "bart", "bloom"}))
def test_half_precision_is_its_own(name, dtype):
    model, inputs = model_of(name).to(dtype), inputs_of(name)
    inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
    recorded = as_it_was(model, inputs=inputs)
    with torch.no_grad():
        output = eager(model)(**inputs, output_attentions=True)
    last = output.get("attentions") or output["cross_attentions"]
    theirs = np.stack([layer[0].float().numpy() for layer in last])
    mine = list(recorded.attention.values())[-1]
    assert np.abs(mine - theirs).max() <= 6e-8  # the smallest step of float16


def test_integers_of_torch_are_read():
    model, inputs = model_of("llama"), inputs_of("llama")
    small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    assert_same(record(small, inputs=inputs), record(model, inputs=inputs), within=0.1)


def test_what_holds_no_numbers_is_refused():
    with pytest.raises(CannotRecord, match="device meta"):
        record(model_of("llama").to("meta"), text=[3, 4, 5])
    scripted = torch.jit.trace(nn.MultiheadAttention(8, 2).eval(), (torch.zeros(3, 1, 8),) * 3)
    with pytest.raises(CannotRecord, match="no attention that can be read"):
        record(scripted, inputs=(torch.zeros(3, 1, 8),) * 3)


@pytest.mark.long
def test_a_sharded_model_is_refused(tmp_path):
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group(
        "gloo", store=store, rank=0, world_size=1, timeout=timedelta(0, 30)
    )
    try:
        mesh = distributed.init_device_mesh("cpu", (1,))
        with pytest.raises(CannotRecord, match="sharded"):
            record(fully_shard(model_of("llama"), mesh=mesh), text=[3, 4, 5])
    finally:
        distributed.destroy_process_group()


@pytest.mark.long
def test_a_learned_prefix_is_refused_and_a_learned_prompt_is_shown():
    peft = pytest.importorskip("peft")
    how = {"task_type": "CAUSAL_LM", "num_virtual_tokens": 4}
    with pytest.raises(CannotRecord, match="prefix was learned"):
        prefixed = peft.get_peft_model(model_of("gpt2"), peft.PrefixTuningConfig(**how))
        record(prefixed, text=[3, 4, 5])
    prompted = peft.get_peft_model(model_of("gpt2"), peft.PromptTuningConfig(**how))
    assert record(prompted, text=[3, 4, 5]).attention["decoder"].shape == (3, 4, 7, 7)
