"""Train a model: `python -m model.train multi30k --data DIR --out FOLDER`."""

import argparse
import json
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from model import checkpoint, presets
from model.data import batches, pad, read_multi30k
from model.masks import Masks
from model.tokenizer import Tokenizer


def rate(step: int, peak: float, warmup: int) -> float:
    """Linear warm-up, then inverse square root (section 5.3), written with its peak."""
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def loss_of(model, batch, smoothing: float, device) -> tuple[torch.Tensor, int]:
    """Summed cross-entropy of a batch and its number of target tokens."""
    config = model.config
    src = pad([src for src, _ in batch], config.pad_id).to(device)
    tgt = pad([tgt for _, tgt in batch], config.pad_id).to(device)
    inputs, labels = tgt[:, :-1], tgt[:, 1:]
    src_mask, tgt_mask, memory_mask = Masks(tgt_padding=False).build(src, inputs, config.pad_id)
    hidden = model.decode(inputs, model.encode(src, src_mask), tgt_mask, memory_mask)
    real = labels != config.pad_id
    loss = F.cross_entropy(
        model.generator(hidden[real]), labels[real], label_smoothing=smoothing, reduction="sum"
    )
    return loss, int(real.sum())


@torch.no_grad()
def validate(model, pairs, max_tokens: int, device) -> float:
    """Mean cross-entropy per target token, in nats."""
    model.eval()
    sums = [loss_of(model, batch, 0.0, device) for batch in batches(pairs, max_tokens)]
    model.train()
    return sum(loss.item() for loss, _ in sums) / sum(tokens for _, tokens in sums)


def average(states: list[dict]) -> dict:
    """The mean of several state dicts."""
    return {name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["multi30k"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--average", type=int, default=5, help="epochs averaged at the end")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    peak, warmup, smoothing, max_tokens = 4e-3, 1000, 0.1, 4096
    torch.manual_seed(args.seed)
    texts = {
        split: list(zip(*read_multi30k(args.data, split), strict=True))
        for split in ("train", "val")
    }
    tokenizer = Tokenizer.train([*texts["train"][0], *texts["train"][1]], vocab_size=6000)
    sizes = dict(
        vocab_size=len(tokenizer), d_model=128, n_heads=4, d_ff=256, dropout=0.3,
        n_encoder_layers=4, n_decoder_layers=4,
    )  # fmt: skip
    model = presets.build("pre_norm", **sizes).to(args.device)
    config = model.config

    def encode(split):
        src, tgt = (tokenizer.encode_batch(list(side)) for side in texts[split])
        return [
            ([*s, config.eos_id], [config.bos_id, *t, config.eos_id])
            for s, t in zip(src, tgt, strict=True)
        ]

    pairs = {split: encode(split) for split in texts}
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    run = args.out / "run"
    run.mkdir(parents=True, exist_ok=True)
    step, first = 0, 1
    last = sorted(run.glob("state-*.pt"))
    if args.resume and last:
        state = torch.load(last[-1])
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        step, first = state["step"], state["epoch"] + 1
    snapshots = {round(2 ** (k / 2)) for k in range(60)}
    model.train()
    for epoch in range(first, args.epochs + 1):
        order = torch.Generator().manual_seed(args.seed * 100_003 + epoch)
        start, total, tokens = time.perf_counter(), 0.0, 0
        for batch in batches(pairs["train"], max_tokens, order):
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = rate(step, peak, warmup)
            loss, count = loss_of(model, batch, smoothing, args.device)
            optimizer.zero_grad()
            (loss / count).backward()
            optimizer.step()
            total, tokens = total + loss.item(), tokens + count
            if step in snapshots:
                torch.save(model.state_dict(), run / f"step-{step:06d}.pt")
        row = {
            "epoch": epoch,
            "step": step,
            "loss": total / tokens,
            "val_loss": validate(model, pairs["val"], max_tokens, args.device),
            "seconds": time.perf_counter() - start,
        }
        with open(args.out / "log.jsonl", "a") as log:
            log.write(json.dumps(row) + "\n")
        print(row, flush=True)
        torch.save(model.state_dict(), run / f"epoch-{epoch:03d}.pt")
        state = {
            "model": model.state_dict(), "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(), "step": step, "epoch": epoch,
        }  # fmt: skip
        torch.save(state, run / "state-new")
        (run / "state-new").replace(run / "state-last.pt")
        files = sorted(run.glob("epoch-*.pt"))[-args.average :]
        averaged = presets.build("pre_norm", **sizes)
        averaged.load_state_dict(average([torch.load(file) for file in files]))
        checkpoint.save(args.out / "averaged", averaged, "pre_norm", tokenizer, row)


if __name__ == "__main__":
    main()
