"""Prompts: tokens of one's own that stand within the layers of a frozen tower."""

from collections.abc import Sequence

from torch import Tensor

from surelabel.errors import InputError


def for_each(prompts: Tensor | None, *, depth: int, width: int) -> Sequence[Tensor | None]:
    """Those of each layer, ``(m, w)``, of all of them, ``(depth, m, w)``; None for none.

    Raises:
        InputError: they are for other layers, or of another width.

    Example:
        >>> for_each(None, depth=2, width=8)
        [None, None]
    """
    if prompts is None:
        return [None] * depth
    if prompts.ndim != 3 or (prompts.shape[0], prompts.shape[2]) != (depth, width):
        raise InputError(
            f"prompts must be ({depth}, m, {width}): m tokens of this width for each layer. "
            f"Got {tuple(prompts.shape)}."
        )
    return list(prompts)
