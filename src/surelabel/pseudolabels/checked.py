"""What pseudo-labels are made from, checked once at the border."""

from numbers import Integral

import torch
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes


def fine(scores: Tensor) -> Tensor:
    """The same scores in float32 or finer.

    Raises:
        InputError: a score is not finite, or there is no name.
    """
    if not scores.shape[-1]:
        raise InputError("scores must have a column for one name or more. Got none.")
    if not scores.isfinite().all():
        raise InputError(
            f"scores must be finite numbers. Got {int((~scores.isfinite()).sum())} that are not; "
            "drop those pictures."
        )
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def of_pictures(scores: Tensor) -> Tensor:
    """Scores ``(n, c)`` in float32 or finer.

    Raises:
        InputError: the shape is another, or a score is not finite.
    """
    check_shapes(scores=(scores, "n c"))
    return fine(scores)


def whole_and_parts(scores: Tensor) -> tuple[Tensor, Tensor | None]:
    """Scores of whole pictures ``(n, c)`` and of their parts ``(n, t - 1, c)``, None without any.

    Raises:
        InputError: ``scores`` are neither ``(n, c)`` nor ``(n, t, c)`` with a view or more, or one
            is not finite.
    """
    if scores.ndim == 2:
        return of_pictures(scores), None
    sizes = check_shapes(scores=(scores, "n t c"))
    if not sizes["t"]:
        raise InputError("View scores must begin with the whole picture. Got no view.")
    scores = fine(scores)
    return scores[:, 0], scores[:, 1:] if sizes["t"] > 1 else None


def check_count(name: str, count: int, least: int = 0) -> None:
    """Refuse a count that is no whole number; 1.0 is no count, and never means "all".

    Raises:
        ConfigError: ``count`` is a bool, a float, a text, or below ``least``.
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < least:
        raise ConfigError(
            f"{name} must be a whole number, {least} or more, such as {max(least, 1)}; it counts "
            f"and is never a share. Got {count!r}."
        )


def check_share(name: str, share: float) -> None:
    """Refuse a share outside [0, 1).

    Raises:
        ConfigError: ``share`` is such.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"{name} must be in [0, 1). Got {share!r}.")
