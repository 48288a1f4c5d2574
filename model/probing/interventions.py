"""Changes a model while it runs, as capture.py records it: hooks that replace a value within a with
block.

Scores change on the way out of their module, masks on the way into the softmax, so that rows
renormalise by themselves; weights on the way out of it; a head's output on the way into the
output projection; positions on the way out of their table. All work on a view (see capture.py).
Enter them before `capture`, so that it sees what the model used.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from torch import Tensor, nn

from headlight.model.probing.sites import steps_within
from headlight.model.transformer import Embedding, MultiHeadAttention


@contextmanager
def without_rotation(attention: MultiHeadAttention) -> Iterator[None]:
    """Queries and keys stay as they are where rotary positions would turn them."""
    with ExitStack() as hooks:
        for rotation in steps_within(attention.scores).values():
            hooks.enter_context(
                rotation.register_forward_hook(lambda module, inputs, turned: inputs[0])
            )
        yield


@contextmanager
def replace_softmax_inputs(
    attention: MultiHeadAttention,
    change: Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor | None]],
) -> Iterator[None]:
    """Take the softmax of `change(scores, mask)`: scores (batch, heads, query, key), and a
    mask that broadcasts to them, True = may attend."""

    def swap(module, inputs):
        scores, mask = inputs if len(inputs) == 2 else (*inputs, None)
        return change(scores, mask)

    with attention.softmax.register_forward_pre_hook(swap):
        yield


def replace_weights(
    attention: MultiHeadAttention, change: Callable[[Tensor], Tensor]
) -> AbstractContextManager[None]:
    """Use `change(weights)` for the weights, (batch, heads, query, key)."""
    return replace_output(attention.softmax, change)


@contextmanager
def replace_head(
    attention: MultiHeadAttention, head: int | slice, change: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Use `change(output)` for one head's output, (batch, query, d_head), as in
    `torch.zeros_like` to switch the head off; for several, (batch, query, heads, d_head)."""

    def swap(module, inputs):
        heads = inputs[0].unflatten(-1, (attention.n_heads, -1)).clone()
        heads[..., head, :] = change(heads[..., head, :])
        return (heads.flatten(-2),)

    with attention.output.register_forward_pre_hook(swap):
        yield


@contextmanager
def replace_output(module: nn.Module, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace a module's output by `change(output)`."""

    def swap(module, inputs, output):
        return change(output)

    with module.register_forward_hook(swap):
        yield


@contextmanager
def replace_positions(embedding: Embedding, table: Tensor) -> Iterator[None]:
    """Add the rows of `table`, (position, d_model), to the words instead of the model's own."""
    with embedding.position.register_forward_hook(
        lambda module, inputs, output: table[: inputs[0]]
    ):
        yield
