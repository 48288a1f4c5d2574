"""One teacher-forced pass over one sentence pair, and everything seen on the way."""

from dataclasses import dataclass, fields

import numpy as np
import torch

from model.capture import capture
from model.masks import Masks
from model.tokenizer import SPECIAL, Encoding, special
from model.transformer import Config, Embedding, MaskedSoftmax, Transformer

# The attentions of an encoder-decoder: kind → (stack, sublayer).
KINDS = {
    "encoder": ("encoder", "self_attn"),
    "decoder": ("decoder", "self_attn"),
    "cross": ("decoder", "cross_attn"),
}


class TooLong(ValueError):
    """A sentence longer than the model reads."""

    def __init__(self, side: str, length: int, max_length: int):
        super().__init__(
            f"The {side} is {length:,} tokens long; this model reads at most {max_length:,}."
        )
        self.length, self.max_length = length, max_length


@dataclass(frozen=True)
class Trace:
    """What a model did with one sentence pair. All arrays are read-only float32.

    attention        kind → (layers, heads, query, key), after the mask
    query            kind → (layers, heads, query, d_head); key and value: (.., key, d_head)
    table            side → (position, d_model); side is "src" or "tgt"
    token, embedded  side → (position, d_model): embeddings × √d_model; their sum with the table
    sublayers        module name → (position, d_model), the output of every attention,
                     feed-forward, norm and layer
    logits           (tgt, vocab_size): row i scores the token at i + 1; of a classifier
                     (1, n_classes), and then what concerns the target is absent or empty

    src and tgt are what encoder and decoder read: eos ends the source, bos begins the target,
    padding follows. All arrays of one trace are of one sentence: there is no batch axis.
    """

    src: Encoding
    tgt: Encoding
    masks: Masks
    attention: dict[str, np.ndarray]
    query: dict[str, np.ndarray]
    key: dict[str, np.ndarray]
    value: dict[str, np.ndarray]
    table: dict[str, np.ndarray]
    token: dict[str, np.ndarray]
    embedded: dict[str, np.ndarray]
    sublayers: dict[str, np.ndarray]
    logits: np.ndarray

    def scores(self, kind: str, layer: int, head: int) -> np.ndarray:
        """q·kᵀ / √d_head before the mask, (query, key)."""
        q, k = self.query[kind][layer, head], self.key[kind][layer, head]
        return q @ k.T / np.float32(np.sqrt(q.shape[-1]))

    def most_probable(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and probabilities of the likeliest next tokens (or classes), best first, each
        (tgt, count)."""
        logits = torch.from_numpy(self.logits.copy())
        best = logits.softmax(dim=-1).topk(min(count, logits.shape[-1]))
        return best.indices.numpy(), best.values.numpy()

    def to_dataframe(self) -> "pandas.DataFrame":  # noqa: F821
        """One row for each weight: attention (its kind), layer, head, query_position,
        query_piece, key_position, key_piece, weight.

        Layers, heads and positions count from 1, as on the screen, and weights that a mask
        hides are there, as 0. Text is categorical: about 16 bytes a row.
        """
        import pandas as pd  # here alone: to look inside a model takes no pandas

        from model.tables import blocks, rows

        columns, names = rows(list(blocks([self], [1])))
        del columns["sentence"]
        for name, texts in names.items():
            columns[name] = pd.Categorical.from_codes(columns[name], texts)
        return pd.DataFrame(columns, copy=False)

    @property
    def nbytes(self) -> int:
        held = (getattr(self, field.name) for field in fields(self))
        arrays = (a for h in held for a in (h.values() if isinstance(h, dict) else [h]))
        return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def inputs_of(
    config: Config, src: Encoding, tgt: Encoding, pad_to: int = 0
) -> tuple[Encoding, Encoding]:
    """What encoder and decoder read of two texts: source + eos, bos + target, then padding."""
    pad, bos, eos = map(special, (config.pad_id, config.bos_id, config.eos_id), SPECIAL)
    read = {"source": src + eos, "target": bos + tgt}
    for side, encoding in read.items():
        length = max(len(encoding.ids), pad_to)
        if length > config.max_length:
            raise TooLong(side, length, config.max_length)
        read[side] = encoding + pad * (length - len(encoding.ids))
    return read["source"], read["target"]


@torch.no_grad()
def trace(
    model: Transformer,
    src: Encoding,
    tgt: Encoding,
    masks: Masks = Masks(),
    pad_to: int = 0,
) -> Trace:
    """Run the model once over two texts (without special tokens) and keep what is seen.

    `model` must be the caller's own view. Raises TooLong before any tensor is made.
    """
    config = model.config
    src, tgt = inputs_of(config, src, tgt, pad_to)
    device = model.generator.weight.device
    src_ids, tgt_ids = (torch.tensor([side.ids], device=device) for side in (src, tgt))
    with capture(model, _is_kept) as seen:
        logits = model(src_ids, tgt_ids, *masks.build(src_ids, tgt_ids, config.pad_id))

    def per_layer(part):
        stacked = {}
        for kind, (stack, sublayer) in KINDS.items():
            names = (f"{stack}.layers.{i}" for i in range(len(getattr(model, stack).layers)))
            found = [_heads(model, seen, f"{name}.{sublayer}.{part}") for name in names]
            if found:
                stacked[kind] = read_only(torch.stack(found))
        return stacked

    def per_side(part):
        return {
            # A copy: the positional table is a slice of the model's own.
            side: read_only(seen[name].reshape(-1, config.d_model).clone())
            for side in ("src", "tgt")
            if (name := f"{side}_embedding{part}") in seen
        }

    return Trace(
        src=src,
        tgt=tgt,
        masks=masks,
        attention=per_layer("softmax"),
        query=per_layer("query"),
        key=per_layer("key"),
        value=per_layer("value"),
        table=per_side(".position"),
        token=per_side(".token"),
        embedded=per_side(""),
        sublayers={name: read_only(seen[name][0]) for name in seen if _is_sublayer(name)},
        logits=read_only(logits[0]),
    )


def _is_sublayer(name: str) -> bool:
    """Layers, and the attentions, feed-forwards and norms in and after them."""
    stack, *path = name.split(".")
    parts = ("self_attn", "cross_attn", "feed_forward", "norm")
    whole_layer = len(path) == 2
    return stack in ("encoder", "decoder") and (
        whole_layer or (path and path[-1].startswith(parts))
    )


def _is_kept(name, module) -> bool:
    parts = ("_attn.query", "_attn.key", "_attn.value", "_embedding.token", "_embedding.position")
    return (
        isinstance(module, MaskedSoftmax | Embedding) or name.endswith(parts) or _is_sublayer(name)
    )


def _heads(model, seen, name) -> torch.Tensor:
    """Weights as they are; a projection split into heads: (heads, length, d_head)."""
    if name.endswith("softmax"):
        return seen[name][0]
    attention = model.get_submodule(name.rpartition(".")[0])
    return attention.split(seen[name])[0]


def read_only(tensor: torch.Tensor) -> np.ndarray:
    """float32, on the CPU."""
    array = tensor.float().cpu().numpy()
    array.flags.writeable = False
    return array
