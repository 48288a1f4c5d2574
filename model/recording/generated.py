"""The weights that `generate()` of transformers returns, step by step, as one pass."""

from collections.abc import Mapping, Sequence

import numpy as np

from headlight.model.recording.kinds import OF_TRANSFORMERS
from headlight.model.recording.weights import CannotRecord, array_of, layer_of, layers_of


def generated(output: Mapping, row: int) -> tuple[dict[str, list[np.ndarray]], list[str]]:
    """The steps of `generate`, put together to one pass over all that was read: a row for each
    token but the last one written, which nobody read."""
    beams = output.get("beam_indices")
    if beams is not None:
        beams = array_of("beam_indices", beams)
        if not 0 <= row < len(beams):
            raise CannotRecord(f"There is no row {row + 1} among {len(beams)} sequences.")
        beams = beams[row].astype(int)
    found, notes = {}, []
    for name, kind in OF_TRANSFORMERS.items():
        steps = output.get(name)
        if steps is None:
            continue
        if kind == "encoder":  # one pass, of the texts before they were given to beams
            count = len(output["sequences"]) or 1
            size = array_of(name, steps[0]).shape[0]
            found[kind] = layers_of(name, steps, row * size // count)
            continue
        if not isinstance(steps, Sequence) or not steps or not isinstance(steps[0], Sequence):
            raise CannotRecord(f"{name} of generate() should hold the layers of each step.")
        if beams is not None:
            ended = np.flatnonzero(beams < 0)
            steps = steps[: ended[0] if len(ended) else len(beams)]
        rows = [row if beams is None else int(beams[i]) for i in range(len(steps))]
        by_layer = [
            [layer_of(f"{name}, step {i + 1}, layer {j + 1}", layer, at) for j, layer in
             enumerate(step)] for i, (step, at) in enumerate(zip(steps, rows, strict=True))
        ]  # fmt: skip
        depths = {len(step) for step in by_layer}
        if len(depths) > 1:
            raise CannotRecord(f"{name}: its steps have {min(depths)} to {max(depths)} layers.")
        depth = depths.pop()
        # A decoder alone attends to what it has written, too.
        kind = kind or "decoder"
        join = _joined_cross if kind == "cross" else _joined
        found[kind] = [join([step[j] for step in by_layer], name) for j in range(depth)]
    if not found:
        raise CannotRecord(
            "This output of generate() has no weights. Call it with output_attentions=True and "
            "return_dict_in_generate=True."
        )
    return found, notes


def _joined(steps: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Self-attention, step by step (heads, query, key), as one (heads, length, length). With a
    cache a step has the rows of new tokens alone, and without one all. Keys of a cache that keeps
    a window are the last ones; one of a fixed size has room behind them."""
    heads, first = steps[0].shape[:2]
    length = first
    ends = []
    for step in steps[1:]:
        new = step.shape[1] if step.shape[1] <= length else step.shape[1] - length
        cached = (step.shape[1] <= length and step.shape[1] < step.shape[2]) or step.shape[1] == 1
        length += new if cached else max(step.shape[1] - length, 0)
        ends.append(length)
    whole = np.zeros((heads, length, length), steps[0].dtype)
    for step, end in zip(steps, [first, *ends], strict=True):
        if len(step) != heads:
            raise CannotRecord(f"{name}: its steps have {heads} and {len(step)} heads.")
        rows, keys = step.shape[1], min(step.shape[2], end)
        start = end - keys if step.shape[2] <= end else 0
        whole[:, end - rows : end, start : start + keys] = step[:, :, :keys]
    return whole


def _joined_cross(steps: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Cross-attention, step by step, as one (heads, query, key)."""
    rows = [steps[0]]
    seen = steps[0].shape[1]
    for step in steps[1:]:
        if step.shape[2] != steps[0].shape[2]:
            raise CannotRecord(f"{name}: its steps attend to texts of different lengths.")
        new = step.shape[1] if step.shape[1] == 1 else step.shape[1] - seen
        rows.append(step[:, step.shape[1] - new :])
        seen += new
    return np.concatenate(rows, axis=1)
