"""How predictions of two labels move together, held against how alike their names are."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.records import Step
from surelabel.shapes import check_shapes

Target = Literal["cosine", "centered", "minmax"]


@dataclass(frozen=True)
class Batch:
    """One step, as the covariance regularizers see it.

    Attributes:
        values: Log-odds where the step has them, scores where not, float32 at least, ``(n, c)``;
            0 where the target is unknown.
        inactive: 1 - y where the target is known, 0 where not, ``(n, c)``.
        seen: 1 where the target is known, 0 where not, ``(n, c)``.
        rows: Pictures with something known, >= 1, ``()``.
        alike: How alike each two names are, ``(c, c)``.
    """

    values: Tensor
    inactive: Tensor
    seen: Tensor
    rows: Tensor
    alike: Tensor


def batch_of(step: Step, target: Target) -> Batch:
    """What the covariance regularizers need of a step.

    Raises:
        InputError: the step has no texts, or its parts differ in shape.
        ConfigError: ``target`` is not one of the three.
    """
    if step.texts is None:
        raise InputError(
            "A covariance regularizer needs the vectors of the names, step.texts (c, d). Got "
            "None; use an encoder of texts, or a regularizer without texts, such as label_pair."
        )
    given = step.scores if step.logits is None else step.logits
    check_shapes(
        z=(given, "n c"),
        targets=(step.targets, "n c"),
        known=(step.known, "n c"),
        texts=(step.texts, "c d"),
    )
    values = given.to(torch.promote_types(given.dtype, torch.float32))
    seen = step.known.to(values.dtype)
    return Batch(
        values=torch.where(step.known, values, 0.0),
        inactive=torch.where(step.known, 1 - step.targets.to(values.dtype), 0.0),
        seen=seen,
        rows=seen.amax(dim=1).sum().clip(min=1) if seen.numel() else seen.new_ones(()),
        alike=likeness(step.texts.detach().to(values), target),
    )


def likeness(texts: Tensor, target: Target) -> Tensor:
    """How alike each two names are, ``(c, c)``, from their vectors ``(c, d)``.

    "cosine" is the cosine; "centered" the cosine after the mean vector is taken off, which may be
    negative; "minmax" the cosine moved and stretched so that the pairs range over [0, 1].
    """
    if target not in ("cosine", "centered", "minmax"):
        raise ConfigError(f'target must be "cosine", "centered" or "minmax". Got {target!r}.')
    if target == "centered":
        texts = texts - texts.mean(dim=0)
    unit = F.normalize(texts, dim=1)
    cosine = unit @ unit.T
    if target != "minmax" or len(texts) < 2:
        return cosine
    pairs = cosine[off_diagonal(cosine)]
    return (cosine - pairs.min()) / (pairs.max() - pairs.min()).clip(min=1e-12)


def correlation(values: Tensor, weights: Tensor, rows: Tensor, epsilon: float) -> Tensor:
    """Correlation of the columns, each about its weighted mean, ``(c, c)``."""
    means = (weights * values).sum(0) / weights.sum(0).clip(min=1e-12)
    apart = weights * (values - means)
    return normalised(apart.T @ apart / rows, epsilon)


def normalised(covariance: Tensor, epsilon: float) -> Tensor:
    """Each entry over the root of the two on the diagonal plus ``epsilon``."""
    variance = covariance.diagonal() + epsilon
    width = torch.where(variance > 0, variance, 1.0).sqrt()
    return covariance / (width[:, None] * width)


def mean_squared_gap(together: Tensor, alike: Tensor, shared: Tensor, least: int) -> Tensor:
    """Mean of the squared gaps over pairs of two labels that share enough, ``()``.

    Args:
        together: How predictions of two labels move together, ``(c, c)``.
        alike: How alike their names are, ``(c, c)``.
        shared: How many pictures speak of both, ``(c, c)``.
        least: A pair with fewer is left out.
    """
    valid = (shared >= least) & off_diagonal(shared)
    gaps = torch.where(valid, together - alike, 0.0)
    return gaps.square().sum() / valid.sum().clip(min=1)


def off_diagonal(square: Tensor) -> Tensor:
    """True where row and column differ."""
    return ~torch.eye(len(square), dtype=torch.bool, device=square.device)
