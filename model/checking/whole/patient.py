"""A model under examination: the ids that it is tried on, and how much each row of its output moves
when a token changes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.checking.whole.reader import PAIR, Reader
from headlight.model.checking.whole.watching import Observed, watching

SOURCE, TARGET, PADS = 7, 5, 3  # tokens: lengths that no other size of a small model has
MOVED = 1e-6  # of the logits' spread, in float64: more than the rounding of a step in float32
BETWEEN = 1e-5  # the same for passes of different shapes
COARSE = 100  # times more, where weights are in a lower precision
FEW = 12  # ids of a vocabulary whose first four may be words, too


class Patient:
    """`vocabulary`: how many ids there are; `lengths` of source and target, in tokens.

    src, tgt      (1, length) of ids; tgt is None for a single text
    others        two more, which differ in every token
    read          the text that is written on: the target, or the single text
    least         a row that moves by more depends on what changed
    between       the same between passes of different shapes
    alone         texts must not share a batch
    zeros         matrices that were all zero, and are not for the trials
    mends         what is mended in every pass
    """

    def __init__(
        self, model: nn.Module, reader: Reader, vocabulary: int,
        lengths: tuple[int, int] = (SOURCE, TARGET),
    ):  # fmt: skip
        self.model, self.reader, self.vocabulary = model, reader, vocabulary
        self.alone, self.mends = False, frozenset[str]()
        self.zeros: list[str] = []
        dtype = next((each.dtype for each in model.parameters()), torch.float64)
        slack = 1 if dtype == torch.float64 else COARSE
        self.least, self.between = MOVED * slack, BETWEEN * slack
        self.pair = reader.kind == PAIR
        draw = torch.Generator().manual_seed(0)

        first = 4 if vocabulary > FEW else 1
        free = [i for i in range(first, vocabulary) if i not in reader.specials]

        def two(length: int) -> tuple[Tensor, Tensor]:
            orders = (torch.randperm(len(free), generator=draw) for _ in range(2))
            some = torch.arange(length) % len(free)
            one, other = (torch.tensor(free)[order[some]][None] for order in orders)
            return one, torch.where(one == other, one.flip(1), other)

        self.src, other = two(lengths[0])
        self.tgt, other_tgt = two(lengths[1]) if self.pair else (None, None)
        self.others: tuple[Tensor, Tensor | None] = other, other_tgt
        self.read = self.src if self.tgt is None else self.tgt

    @property
    def own_side(self) -> int:
        """Of the text that is written on: 0 is the source, 1 the target."""
        return int(self.pair)

    def _watch(self, src: Tensor, tgt: Tensor | None, **how: Any):
        more, read = int(self.reader.shifts), src if tgt is None else tgt
        lengths = src.shape[1] + more * (tgt is None), read.shape[1] + more
        return watching(self.model, lengths, **how)

    @torch.no_grad()
    def run(
        self, src: Tensor, tgt: Tensor | None = None, mends: Sequence[str] = (), pads: int = 0
    ) -> Tensor:
        """Logits, (batch, row, output), with some things mended; `pads`: see Watching."""
        tgt = tgt if self.pair else None
        if not (every := self.mends | {*mends}):
            return self.reader(src, tgt)
        with self._watch(src, tgt, mends=every, pads=pads):
            return self.reader(src, tgt)

    def base(self, *mends: str) -> Tensor:
        """Logits of the unchanged texts."""
        return self.run(self.src, self.tgt, mends)

    @torch.no_grad()
    def watch(
        self, src: Tensor | None = None, tgt: Tensor | None = None, mends: Sequence[str] = (),
        output: int = 0,
    ) -> Observed:  # fmt: skip
        """What a pass does, over other texts if some are given."""
        src, tgt = self.src if src is None else src, self.tgt if tgt is None else tgt
        with self._watch(src, tgt, mends=self.mends | {*mends}, output=output) as watch:
            self.reader(src, tgt)
        return watch.seen

    def written(self, ids: Tensor, *mends: str) -> Tensor:
        """Logits with these ids as the text that is written on."""
        if not self.pair:
            return self.run(ids, None, mends)
        return self.run(self.src.expand(len(ids), -1), ids, mends)

    def both(self) -> tuple[Tensor, Tensor | None]:
        """Source and target of a batch of two: our text and the other."""
        src, tgt = self.others
        whole = None if self.tgt is None or tgt is None else torch.cat([self.tgt, tgt])
        return torch.cat([self.src, src]), whole

    def beside(self, other: tuple[Tensor, Tensor | None], at: int) -> Tensor:
        """Logits of ours, (1, row, output), in a batch with another text. `at`: 0 for the first
        place, 1 for the last."""
        (src, tgt), order = other, 1 if at == 0 else -1
        whole = torch.cat([self.src, src][::order])
        if self.tgt is None or tgt is None:
            return self.run(whole)[at : at + 1]
        return self.run(whole, torch.cat([self.tgt, tgt][::order]))[at : at + 1]

    def company(self) -> tuple[float, float]:
        """How much ours moves when its neighbour is another one, and when its place is."""
        src, tgt = self.others
        flipped = src.flip(1), None if tgt is None else tgt.flip(1)
        beside = [[self.beside(texts, at) for texts in (self.others, flipped)] for at in (0, 1)]
        alone = self.base()
        return max(most(*pair) for pair in beside), max(most(alone, pair[0]) for pair in beside)

    def influence(self, side: int, *mends: str) -> Tensor:
        """(row, token): how much row i moves if token j of a side (0: source, 1: target) is another
        one, as a share of the spread of all logits."""
        ids, other = (self.src, self.tgt)[side], self.others[side]
        assert ids is not None and other is not None
        n = ids.shape[1]
        changed = torch.where(torch.eye(n, dtype=torch.bool), other, ids)
        texts: list[Any] = [self.src, self.tgt]
        if self.alone:
            base, outs = self.base(*mends), []
            for i in range(n):
                texts[side] = changed[i : i + 1]
                outs.append(self.run(*texts, mends=mends))
        else:  # the unchanged text in the same batch: the same sums in the same order
            texts[side] = torch.cat([ids, changed])
            whole: Any = (x if x is None else x.expand(n + 1, -1) for x in texts)
            base, *outs = self.run(*whole, mends=mends).split(1)
        return torch.cat([moved(base, out) for out in outs]).T

    @torch.no_grad()
    def first_moved(self, src: Tensor, tgt: Tensor | None, rows: int, length: int) -> str:
        """The first module, in the order in which they run, of which the first `rows` of at least
        `length` rows are others for these texts than for ours; "" if none is."""
        names = {module: name for name, module in self.model.named_modules() if name}
        passes = []
        for texts in ((self.src, self.tgt), (src, tgt)):
            outputs: list[tuple[str, Tensor]] = []

            def keep(module: nn.Module, args: Any, out: Any, kept=outputs) -> None:
                if isinstance(out, Tensor) and out.ndim == 3 and out.is_floating_point():
                    kept.append((names[module], out))

            hooks = [module.register_forward_hook(keep) for module in names]
            try:
                self.reader(*texts)
            finally:
                for hook in hooks:
                    hook.remove()
            passes.append([(name, out) for name, out in outputs if out.shape[1] >= rows])
        for (name, one), (other_name, other) in zip(*passes, strict=False):
            if name != other_name or one.shape[2] != other.shape[2] or one.shape[1] < length:
                continue
            if float(moved(one[:1, :rows], other[:1, :rows]).max()) > self.between:
                return name
        return ""


def moved(one: Tensor, two: Tensor) -> Tensor:
    """(batch, row): the largest change of each row, as a share of the spread of all. Both are
    (batch, row, output)."""
    one, two = one.double(), two.double()
    finite = one[one.isfinite()]
    spread = finite.std() if finite.numel() > 1 else one.new_ones(())
    same = (one == two) | (one.isnan() & two.isnan())
    gap = torch.where(same, 0.0, (one - two).abs().nan_to_num(nan=torch.inf, posinf=torch.inf))
    return gap.amax(-1) / spread.clamp(min=1e-12)


def most(one: Tensor, two: Tensor) -> float:
    """The largest change of all rows."""
    return float(moved(one, two).max())


def share(x: float) -> str:
    """A change in words."""
    return "without bound" if x == float("inf") else f"by {100 * x:.2g}% of the logits' spread"
