"""Out-of-distribution detection by the Mahalanobis distance to the training images."""

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

SET_SIZES = (1, 2, 4, 8, 16, 32, 64)  # numbers of images in a set
SHRINKAGE = 0.01  # share of the mean variance that is added to the variance of each axis
QUANTILE, N_SETS = 0.99, 1000


@dataclass(frozen=True)
class OODDetector:
    """Mean and covariance of the image vectors of in-distribution images.

    Attributes:
        mean: Mean of the unit vectors, ``(d,)``.
        precision: Inverse of their covariance matrix, ``(d, d)``.
        limits: For each of ``SET_SIZES``, the 99th percentile of the distance of
            in-distribution sets of that many images with one theme.
    """

    mean: Tensor
    precision: Tensor
    limits: Sequence[float]

    def mahalanobis_distance(self, pooled: Tensor) -> float:
        """Return the Mahalanobis distance between the mean of a set and the training mean.

            sqrt((m - mean)' precision (m - mean))        m = mean of the set

        Args:
            pooled: Unit vectors of the images of the set, ``(n, d)``.
        """
        check_shapes(pooled=(pooled, "n d"), mean=(self.mean, "d"))
        offset = pooled.cpu().double().mean(dim=0) - self.mean.double()
        return math.sqrt(max(float(offset @ self.precision.double() @ offset), 0.0))

    def ood_score(self, pooled: Tensor) -> float:
        """Return the distance of a set of images, divided by the limit for its size.

        A set with a score above 1 is out of distribution. Sets of eight images or more are
        detected more reliably than single images, because differences between images average out.

        Args:
            pooled: Unit vectors of the images of the set, ``(n, d)``.

        Returns:
            The out-of-distribution score, >= 0; NaN for an empty set.

        Source:
            Hotelling, The Generalization of Student's Ratio, Annals of Mathematical Statistics
            2(3), 1931: T squared, here divided by the number of images.

        Differs:
            The limits are measured on sets with one theme, whose means deviate more than
            those of random sets.
        """
        if len(pooled) == 0:
            return math.nan
        limit = np.interp(math.log2(len(pooled)), np.log2(SET_SIZES), self.limits)
        return self.mahalanobis_distance(pooled) / float(limit)


def fit_ood_detector(pooled: Tensor, themes: Sequence[Tensor]) -> OODDetector:
    """Estimate mean, covariance and limits from the vectors of in-distribution images.

    Args:
        pooled: Unit vectors for the mean and the covariance, ``(n, d)``.
        themes: For each theme, unit vectors of other in-distribution images, ``(k, d)``; 64
            images or more are best.
    """
    covariance = torch.cov(pooled.double().T)
    ridge = SHRINKAGE * covariance.diagonal().mean()
    precision = torch.linalg.inv(covariance + ridge * torch.eye(len(covariance)).double())
    detector = OODDetector(pooled.double().mean(dim=0).float(), precision.float().contiguous(), ())
    rng = np.random.default_rng(0)
    limits = []
    for size in SET_SIZES:
        sampled = [themes[int(rng.integers(len(themes)))] for _ in range(N_SETS)]
        distances = [
            detector.mahalanobis_distance(
                theme[rng.choice(len(theme), min(size, len(theme)), replace=False)]
            )
            for theme in sampled
        ]
        limits.append(float(np.quantile(distances, QUANTILE)))
    return OODDetector(detector.mean, detector.precision, limits)


def save_ood_detector(detector: OODDetector, fingerprint: str, file: Path) -> None:
    """Write a detector to a safetensors file, with the fingerprint of its encoder."""
    tensors = {
        "mean": detector.mean,
        "precision": detector.precision,
        "limits": torch.tensor(detector.limits, dtype=torch.float64),
    }
    save_file(tensors, file, metadata={"fingerprint": fingerprint})


def load_ood_detector(file: Path, fingerprint: str) -> OODDetector:
    """Read the detector of the encoder with this fingerprint.

    Raises:
        DataError: If the detector was fitted for other weights.
    """
    with safe_open(file, framework="pt") as stored:
        stored_fingerprint = stored.metadata()["fingerprint"]
        mean, precision, limits = (stored.get_tensor(k) for k in ("mean", "precision", "limits"))
    if stored_fingerprint != fingerprint:
        raise DataError(
            f"{file.name} must be fitted for the weights {fingerprint} of this encoder; it was "
            f"fitted for {stored_fingerprint}. Run python training/out_of_distribution.py."
        )
    return OODDetector(mean, precision, limits.tolist())
