"""Split prompt tokens by layer. Prompt tokens are learned inputs of layers of a frozen tower."""

from collections.abc import Sequence

from torch import Tensor

from surelabel.errors import InputError


def prompt_tokens_per_layer(
    prompts: Tensor | None, *, depth: int, width: int
) -> Sequence[Tensor | None]:
    """Return a list with the ``m`` prompt tokens of each layer, ``(m, w)``.

    If ``prompts`` is None, the list contains None for each layer.

    Args:
        prompts: Prompt tokens of all layers, ``(depth, m, w)``. If None, there are no prompts.
        depth: Number of layers with prompt tokens.
        width: Number of values ``w`` of each token.

    Raises:
        InputError: If the shape of ``prompts`` is not ``(depth, m, width)``.

    Example:
        >>> prompt_tokens_per_layer(None, depth=2, width=8)
        [None, None]
    """
    if prompts is None:
        return [None] * depth
    if prompts.ndim != 3 or (prompts.shape[0], prompts.shape[2]) != (depth, width):
        raise InputError(
            f"prompts must have shape ({depth}, m, {width}), with m tokens for each layer; "
            f"got {tuple(prompts.shape)}."
        )
    return list(prompts)
