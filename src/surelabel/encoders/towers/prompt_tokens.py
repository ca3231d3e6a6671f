"""Prompt tokens, learned vectors that are inserted into the layers of a frozen tower."""

from collections.abc import Sequence

from torch import Tensor

from surelabel.errors import InputError


def prompts_per_layer(prompts: Tensor | None, *, depth: int, width: int) -> Sequence[Tensor | None]:
    """Return the prompts of each layer, ``(m, w)``, or None for each layer without prompts.

    Args:
        prompts: Prompts of all layers, ``(depth, m, w)``, or None.
        depth: Number of layers.
        width: Width of a token.

    Raises:
        InputError: If the shape does not fit ``depth`` and ``width``.

    Example:
        >>> prompts_per_layer(None, depth=2, width=8)
        [None, None]
    """
    if prompts is None:
        return [None] * depth
    if prompts.ndim != 3 or (prompts.shape[0], prompts.shape[2]) != (depth, width):
        raise InputError(
            f"prompts must have shape ({depth}, m, {width}), m tokens for each layer; "
            f"got {tuple(prompts.shape)}."
        )
    return list(prompts)
