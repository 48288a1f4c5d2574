"""All models of the tests of check-ups: those with one fault, and those that are right."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers as T
from torch import nn

from headlight.model.checkpoint import load
from headlight.model.presets import build
from tests.model.checking.whole.zoo import layouts, modern, planted, styles
from tests.model.recording.architectures import NAMES, made


@dataclass(frozen=True)
class Case:
    """`fault`: what it is to be told, one of a few if | stands between; "" if it is right. `also`:
    what else is true of it. `how`: arguments of `checkup`."""

    make: Callable[[], nn.Module]
    fault: str = ""
    also: frozenset[str] = frozenset()
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def faults(self) -> set[str]:
        return {*filter(None, self.fault.split("|"))}


WITHOUT_GRADIENT = "weights without gradient"
GPT = {
    "split": "heads split without transpose", "sdpa no causal": "no causal mask",
    "sdpa dropout": "dropout in eval", "no scale": "√d left out", "by d": "divided by d",
    "by d_model": "√d_model", "times": "multiplied by √d", "upside down": "rows for columns",
    "one too far": "mask one too far", "inverted": "True for False", "weak": "mask too weak",
    "added": "mask added as numbers", "no causal": "no causal mask",
    "after": "zero after the softmax", "always dropout": "dropout in eval",
    "axis queries": "softmax over the wrong axis", "axis heads": "softmax over the wrong axis",
    "one layer open": "causal mask missing in a layer",
    "norm over length": "reads the future elsewhere", "attention unused": "reads nothing before",
    "no residual": "residual left out", "short": "too few positions",
    "same layer": "one layer, many times", "list": "layers not registered",
    "untied": "embeddings not tied", "tiny tokens": "tokens drowned by positions",
    "frozen": "frozen", "batch positions": "positions by batch",
    "no positions": "target without positions", "detached": WITHOUT_GRADIENT,
    "no final norm": "final norm missing", "mean of rows": "reads the future elsewhere",
}  # fmt: skip
TORCH = {
    "batch positions": "positions by batch", "batch_first": "batch and length swapped",
    "no source positions": "source without positions",
    "no target positions": "target without positions", "functional dropout": "dropout in eval",
    "noise": "random in eval", "no diagonal": "without the diagonal",
    "no causal": "no causal mask", "padding inverted": "padding mask inverted",
    "encoder padding": "encoder sees padding",
    "memory padding": "cross-attention sees padding", "no padding": "both see padding",
    "tgt as src": "encoder reads the target", "first layer": "memory of the wrong layer",
    "zero memory": "never reads the source", "first token": "reads a part of the source",
    "detached memory": WITHOUT_GRADIENT, "wrong rows": "reads the future elsewhere",
    "softmax": "returns probabilities", "huge tokens": "positions drowned by tokens",
}  # fmt: skip
SCRATCH = {
    "split": "heads split without transpose", "encoder split": "heads split without transpose",
    "axis": "softmax over the wrong axis", "inverted": "True for False",
    "no cross": "never reads the source", "cross reads target": "never reads the source",
    "no residual": "residual left out", "no causal": "no causal mask", "triu": "rows for columns",
    "no padding": "both see padding", "memory mask": "cross-attention sees padding",
    "src mask missing": "encoder sees padding", "early return": "memory of the wrong layer",
    "cloned layer": "one layer, many times",
}  # fmt: skip
MASKS = {"tgt_mask dropped": "no causal mask", "memory": "cross-attention sees padding"}
POOLED = {
    "no positions": "text without positions", "no padding": "sees padding",
    "inverted": "padding mask inverted", "mean of all": "pooling counts padding",
}  # fmt: skip
ALSO = {  # of the same fault
    "norm over length": {WITHOUT_GRADIENT}, "attention unused": {WITHOUT_GRADIENT},
    "tgt as src": {"never reads the source"}, "first token": {WITHOUT_GRADIENT},
    "wrong rows": {"reads a part of what came before"},
    "inverted": {"padding mask inverted", "NaN"}, "no cross": {WITHOUT_GRADIENT},
}  # fmt: skip


def _planted(make, faults) -> dict[str, Case]:
    return {
        f"{make.__name__}: {name}": Case(
            lambda name=name: make(name), fault, frozenset(ALSO.get(name, ())),
            {"is_tied": True} if name == "untied" else {},
        )
        for name, fault in faults.items()
    }  # fmt: skip


PLANTED = {
    **_planted(planted.MiniGPT, GPT), **_planted(planted.TorchSeq2Seq, TORCH),
    **_planted(planted.Scratch, SCRATCH),
    **_planted(planted.WithMasks, MASKS), **_planted(planted.Pooled, POOLED),
}  # fmt: skip
STYLES = {
    **{f"Net: {name}": Case(lambda name=name: styles.Net(name), fault)
       for name, fault in styles.NET.items()},
    **{f"LM: {name}": Case(lambda name=name: styles.LM(name), fault, how={"kind": "causal"})
       for name, fault in styles.LANGUAGE.items()},
}  # fmt: skip
MODERN = {
    **{f"Modern: {fault}": Case(lambda how=how: modern.Modern(*how), name, how={"kind": "causal"})
       for how, name in modern.MODERN.items() for fault in how[1:]},
    "Targeted: counts padding": Case(lambda: modern.Targeted("counts padding"),
                                     "loss counts padding"),
    **{f"Labelled: {fault}": Case(lambda fault=fault: modern.Labelled(fault), name,
                                  how={"pad": 0})
       for fault, name in modern.LABELLED.items()},
}  # fmt: skip
BERT = {"vocab_size": 50, "intermediate_size": 32, "pad_token_id": 0, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4}  # fmt: skip
OTHERS = {  # of the models that are recorded
    "vit", "whisper",  # read no text
    "Xmod", "Lfm2", "Jamba", "Bamba", "Qwen3Next", "ProphetNet",  # want more than texts
    # Convolutions, blocks, memories: rows read their neighbours; norms that are none; long.
    "ConvBert", "Nystromformer", "Funnel", "XLNet", "Canine", "MobileBert", "PegasusX",
}  # fmt: skip


def two_berts() -> nn.Module:
    configs = T.BertConfig(**BERT), T.BertConfig(**BERT, is_decoder=True, add_cross_attention=True)
    make = T.EncoderDecoderConfig.from_encoder_decoder_configs
    return T.EncoderDecoderModel(make(*configs))


def theirs(name: str) -> nn.Module:
    """A model of transformers with random weights."""
    kind, config = made(name)
    return kind(config)


def preset(name: str, **more: Any) -> Case:
    sizes = {"vocab_size": 40, "d_model": 24, "n_heads": 4, "d_ff": 32} | more
    if name != "decoder_only":
        sizes["n_encoder_layers"] = 2
    if name != "bloem":
        sizes["n_decoder_layers"] = 2
    return Case(lambda: build(name, **sizes))


PRESETS = ("paper", "pre_norm", "annotated", "hyunwoongko", "vanilla", "window", "bloem",
           "decoder_only")  # fmt: skip
CAUSAL = {"kind": "causal"}  # where the name of the class does not say so
RIGHT = {
    **{f"preset {name}": preset(name) for name in PRESETS},
    "preset van_dijck": preset("van_dijck", hidden_size=8),
    "nanoGPT": Case(planted.MiniGPT),
    "nanoGPT, SDPA": Case(lambda: planted.MiniGPT("sdpa")),
    "nanoGPT, one layer": Case(lambda: planted.MiniGPT(layers=1)),
    "nn.Transformer": Case(planted.TorchSeq2Seq),
    "nn.Transformer, −∞": Case(lambda: planted.TorchSeq2Seq("float mask")),
    "nn.Transformer, pre-norm": Case(lambda: planted.TorchSeq2Seq(norm_first=True)),
    "nn.Transformer, N(0, 1)": Case(lambda: planted.TorchSeq2Seq("default embeddings")),
    "by hand": Case(planted.Scratch),
    "by hand, four layers": Case(lambda: planted.Scratch(layers=4)),
    "by hand, masks given": Case(planted.WithMasks),
    "classifier": Case(planted.Pooled),
    "classifier, first row": Case(lambda: planted.Pooled(pool="first")),
    "tagger": Case(planted.TwoWays),
    "trained bf16": Case(lambda: planted.MiniGPT().to(torch.bfloat16)),
    "train mode": Case(lambda: planted.TorchSeq2Seq().train()),
    "batch norms": Case(planted.BatchNormed, how=CAUSAL),
    "learned prompts": Case(planted.Prompted),
    "learned prompts, returned": Case(lambda: planted.Prompted(cut=False)),
    **{f"trained {n}": Case(lambda n=n: load(n).model) for n in ("en-fr", "copy", "reverse")},
    **{name: Case(lambda name=name: theirs(name)) for name in NAMES if name not in OTHERS},
    "BERT, classes": Case(lambda: T.BertForSequenceClassification(T.BertConfig(**BERT))),
    "two BERTs": Case(two_berts),
    **{make.__name__: Case(make) for make in layouts.AS_THEY_ARE},
    "FlatLM": Case(layouts.FlatLM, how=CAUSAL), "Weighs": Case(layouts.Weighs, how=CAUSAL),
    "Net": Case(styles.Net),
    **{f"LM {name}": Case(lambda name=name: styles.LM(name), how=CAUSAL) for name in styles.SOUND},
    "Labelled": Case(modern.Labelled),
    "Targeted": Case(modern.Targeted),
    **{" ".join(("Modern", *how)).strip(): Case(lambda how=how: modern.Modern(*how), how=CAUSAL)
       for how in modern.MODERN_RIGHT},
    "Seq2SeqTransformer": Case(layouts.Seq2SeqTransformer, how={"pad": 1}),
}  # fmt: skip


WRONG = {
    **PLANTED,
    **STYLES,
    **MODERN,
}
