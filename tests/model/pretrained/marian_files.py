"""A small model as Firefox keeps its translators: a .bin in 8 bits with random weights, and one
SentencePiece model for both languages."""

import io
import struct
from pathlib import Path

import numpy as np

from headlight.model.pretrained.marian_bin import BYTES, CONFIG, FLOAT32, INTGEMM8

SIZES = {"dim-emb": 16, "transformer-heads": 4, "transformer-dim-ffn": 24, "enc-depth": 2,
         "dec-depth": 2}  # fmt: skip
RECIPE = """
type: transformer
transformer-decoder-autoreg: rnn
dec-cell: ssru
dec-cell-base-depth: 2
transformer-ffn-depth: 2
transformer-ffn-activation: relu
transformer-preprocess: ""
transformer-postprocess: dan
tied-embeddings-all: true
"""


def vocabulary(folder: Path, lines: list[str]) -> int:
    """Writes vocab.xxyy.spm; how many tokens it has."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=80, eos_id=0, unk_id=1,
        bos_id=-1, pad_id=-1, hard_vocab_limit=False, character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    (folder / "vocab.xxyy.spm").write_bytes(model.getvalue())
    return len(sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()))


def random_weights(tokens: int, sizes: dict, seed: int = 0) -> dict[str, np.ndarray]:
    """By Marian's names; matrices are (input, output)."""
    chance = np.random.default_rng(seed)
    d_model, d_ff = sizes["dim-emb"], sizes["transformer-dim-ffn"]

    def matrix(*shape):
        return chance.normal(0, 1.5 * shape[0] ** -0.5, shape).astype(np.float32)

    def vector(size, mean=0.0):
        return chance.normal(mean, 0.3, (1, size)).astype(np.float32)

    weights = {
        "Wemb": chance.normal(0, d_model**-0.5, (tokens, d_model)).astype(np.float32),
        "decoder_ff_logit_out_b": vector(tokens),
    }

    def norm(name):
        weights[f"{name}_ln_scale"], weights[f"{name}_ln_bias"] = (
            vector(d_model, 1),
            vector(d_model),
        )

    for stack, depth, attention in (("encoder", "enc-depth", "self"),
                                    ("decoder", "dec-depth", "context")):  # fmt: skip
        for layer in range(1, sizes[depth] + 1):
            name = f"{stack}_l{layer}"
            for part in "qkvo":
                weights[f"{name}_{attention}_W{part}"] = matrix(d_model, d_model)
                weights[f"{name}_{attention}_b{part}"] = vector(d_model)
            norm(f"{name}_{attention}_Wo")
            weights[f"{name}_ffn_W1"] = matrix(d_model, d_ff)
            weights[f"{name}_ffn_b1"] = vector(d_ff)
            weights[f"{name}_ffn_W2"] = matrix(d_ff, d_model)
            weights[f"{name}_ffn_b2"] = vector(d_model)
            norm(f"{name}_ffn_ffn")
            if stack == "decoder":
                weights[f"{name}_rnn_W"] = matrix(d_model, d_model)
                weights[f"{name}_rnn_Wf"] = matrix(d_model, d_model)
                weights[f"{name}_rnn_bf"] = vector(d_model)
                norm(f"{name}_rnn_ffn")
    return weights


def write_bin(file: Path, weights: dict[str, np.ndarray], description: str) -> None:
    """Matrices in 8 bits, what else there is in float32."""
    entries = []
    for name, numbers in weights.items():
        if numbers.shape[0] > 1:
            scale = np.float32(127 / np.abs(numbers).max())
            turned = numbers if name == "Wemb" else numbers.T
            content = np.rint(turned * scale).astype(np.int8).tobytes() + scale.tobytes()
            entries.append((name, INTGEMM8, numbers.shape, content))
        else:
            entries.append((name, FLOAT32, numbers.shape, numbers.tobytes()))
    text = description.encode() + b"\0"
    entries.append((CONFIG, BYTES, (len(text),), text))
    names = [name.encode() + b"\0" for name, *_ in entries]
    padded = [content + bytes(-len(content) % 256) for *_, content in entries]
    head = struct.pack("<QQ", 1, len(entries))
    for name, (_, kind, shape, _), content in zip(names, entries, padded, strict=True):
        head += struct.pack("<4Q", len(name), kind, len(shape), len(content))
    head += b"".join(names)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in entries)
    gap = -(len(head) + 8) % 256
    head += struct.pack("<Q", gap) + bytes(gap)
    file.write_bytes(head + b"".join(padded))


def write_marian(folder: Path, lines: list[str], **changed) -> dict[str, np.ndarray]:
    """A folder; its weights. `changed` are other values of the description, _ for -."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens = vocabulary(folder, lines)
    weights = random_weights(tokens, SIZES)
    values = SIZES | {name.replace("_", "-"): value for name, value in changed.items()}
    text = f"dim-vocabs:\n  - {tokens}\n  - {tokens}\n"
    text += "".join(f"{name}: {value}\n" for name, value in values.items())
    kept = [line for line in RECIPE.splitlines() if line.partition(":")[0] not in values]
    write_bin(folder / "model.xxyy.bin", weights, text + "\n".join(kept) + "\n")
    return weights
