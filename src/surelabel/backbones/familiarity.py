"""How strange pictures are to an encoder whose training pictures are known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from surelabel.errors import DataError
from surelabel.shapes import check_shapes

SIZES = (1, 2, 4, 8, 16, 32, 64)  # pictures in a set
SHRINKAGE = 0.01  # share of the mean variance that is added to every direction
QUANTILE, DRAWS = 0.99, 1000


@dataclass(frozen=True)
class Familiarity:
    """Where the image vectors of training pictures lie.

    Attributes:
        mean: Of the unit vectors, ``(d,)``.
        precision: Inverse of their covariance, ``(d, d)``.
        limits: For each of ``SIZES`` the distance that 99 of 100 sets of that many training-like
            pictures of one theme stay below.
    """

    mean: Tensor
    precision: Tensor
    limits: Sequence[float]

    def distance(self, pooled: Tensor) -> float:
        """Mahalanobis distance between the mean of a set, ``(n, d)``, and all training pictures.

        sqrt((m - mean)' precision (m - mean))        m = mean of the set
        """
        check_shapes(pooled=(pooled, "n d"), mean=(self.mean, "d"))
        offset = pooled.cpu().double().mean(dim=0) - self.mean.double()
        return math.sqrt(max(float(offset @ self.precision.double() @ offset), 0.0))

    def strangeness(self, pooled: Tensor) -> float:
        """The distance as a share of the limit for so many pictures; NaN for none.

        Above 1 the set looks like nothing the encoder knows. One picture says little, eight say
        much: what other worlds have in common stays in the mean, what differs from picture to
        picture averages out.

        Source:
            Hotelling, The Generalization of Student's Ratio, Annals of Mathematical Statistics
            2(3), 1931: T squared, here divided by the number of pictures.

        Differs:
            The limits are measured on sets of one theme, which are narrower than chance.
        """
        if len(pooled) == 0:
            return math.nan
        limit = np.interp(math.log2(len(pooled)), np.log2(SIZES), self.limits)
        return self.distance(pooled) / float(limit)


def familiarity(pooled: Tensor, themes: Sequence[Tensor]) -> Familiarity:
    """Measure where training-like pictures lie, and how far sets of one theme stray.

    Args:
        pooled: Unit vectors that mean and covariance are taken from, ``(n, d)``.
        themes: For each theme unit vectors of other such pictures, ``(k, d)``, best 64 or more.
    """
    covariance = torch.cov(pooled.double().T)
    floor = SHRINKAGE * covariance.diagonal().mean()
    precision = torch.linalg.inv(covariance + floor * torch.eye(len(covariance)).double())
    whole = Familiarity(pooled.double().mean(dim=0).float(), precision.float().contiguous(), ())
    rng = np.random.default_rng(0)
    limits = []
    for size in SIZES:
        drawn = [themes[int(rng.integers(len(themes)))] for _ in range(DRAWS)]
        distances = [
            whole.distance(theme[rng.choice(len(theme), min(size, len(theme)), replace=False)])
            for theme in drawn
        ]
        limits.append(float(np.quantile(distances, QUANTILE)))
    return Familiarity(whole.mean, whole.precision, limits)


def save_familiarity(known: Familiarity, fingerprint: str, file: Path) -> None:
    """Write what is familiar with the fingerprint of the encoder it belongs to."""
    tensors = {
        "mean": known.mean,
        "precision": known.precision,
        "limits": torch.tensor(known.limits, dtype=torch.float64),
    }
    save_file(tensors, file, metadata={"fingerprint": fingerprint})


def load_familiarity(file: Path, fingerprint: str) -> Familiarity:
    """Read what is familiar to the encoder with this fingerprint.

    Raises:
        DataError: it was measured for other weights.
    """
    with safe_open(file, framework="pt") as stored:
        made_for = stored.metadata()["fingerprint"]
        mean, precision, limits = (stored.get_tensor(k) for k in ("mean", "precision", "limits"))
    if made_for != fingerprint:
        raise DataError(
            f"{file.name} was made for weights {made_for}, but the weights here are "
            f"{fingerprint}. Make it again: python training/world.py."
        )
    return Familiarity(mean, precision, limits.tolist())
