"""Validate the scores and settings that pseudo-labels are computed from."""

from numbers import Integral

import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes


def validate_pseudolabel_scores(scores: Tensor) -> Tensor:
    """Return scores with labels in the last axis, in float32 or wider.

    Raises:
        InputError: If a score is not finite, or there is no label.
    """
    if not scores.shape[-1]:
        raise InputError("scores must have a column for one label or more; got none.")
    n_invalid = int((~scores.isfinite()).sum())
    if n_invalid:
        raise InputError(
            f"scores must be finite; got {format_count(n_invalid, 'non-finite score')}. "
            "Remove the images with NaN or infinity."
        )
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def validate_pseudolabel_image_scores(scores: Tensor) -> Tensor:
    """Return scores ``(n, c)`` in float32 or wider.

    Raises:
        InputError: If the shape is not ``(n, c)``, there is no label, or a score is not finite.
    """
    check_shapes(scores=(scores, "n c"))
    return validate_pseudolabel_scores(scores)


def split_pseudolabel_views(scores: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the scores of whole images ``(n, c)`` and of their parts ``(n, t - 1, c)``.

    The second value is None if there are no parts.

    Raises:
        InputError: If ``scores`` are neither ``(n, c)`` nor ``(n, t, c)`` with one view or more,
            there is no label, or a score is not finite.
    """
    if scores.ndim == 2:
        return validate_pseudolabel_image_scores(scores), None
    sizes = check_shapes(scores=(scores, "n t c"))
    if not sizes["t"]:
        raise InputError("scores must begin with the view of the whole image; got no view.")
    scores = validate_pseudolabel_scores(scores)
    return scores[:, 0], scores[:, 1:] if sizes["t"] > 1 else None


def check_pseudolabel_count(name: str, count: int, minimum: int = 0) -> None:
    """Check that a setting is of an integer type and at least ``minimum``.

    Raises:
        ConfigError: If ``count`` is not an integer, or below ``minimum``.
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < minimum:
        raise ConfigError(
            f"{name} must be a whole number of at least {minimum}, not a fraction; got {count!r}."
        )


def check_pseudolabel_share(name: str, share: float) -> None:
    """Check that a setting is in [0, 1).

    Raises:
        ConfigError: If ``share`` is outside [0, 1).
    """
    if not 0 <= share < 1:
        raise ConfigError(f"{name} must be in [0, 1); got {share!r}.")
