"""Detect out-of-distribution images by their Mahalanobis distance to the training images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from surelabel.array_files import open_safetensors
from surelabel.errors import DataError
from surelabel.shapes import check_shapes

SET_SIZES = (1, 2, 4, 8, 16, 32, 64)  # numbers of images in a set
SHRINKAGE = 0.01  # fraction of the mean variance that is added to the variance of each axis
QUANTILE, N_SETS = 0.99, 1000


@dataclass(frozen=True)
class OODDetector:
    """Detector of out-of-distribution sets of images, based on the Mahalanobis distance.

    Attributes:
        mean: Mean of the unit vectors of in-distribution images, ``(d,)``.
        precision: Inverse of the shrunk covariance matrix of these unit vectors, ``(d, d)``.
        limits: Distance threshold for each number of images in ``SET_SIZES``. A limit is the 99th
            percentile of the distances of in-distribution sets. All images of an in-distribution
            set have one theme, such as wild animals.
    """

    mean: Tensor
    precision: Tensor
    limits: Sequence[float]

    def mahalanobis_distance(self, pooled: Tensor) -> float:
        """Return the Mahalanobis distance between the mean of a set and the training mean.

            sqrt((m - mean)' precision (m - mean))

        where m is the mean vector of the set, ``mean`` is the mean vector of the training images,
        and ``precision`` is the inverse of the covariance matrix of the training vectors.

        Args:
            pooled: Unit vectors of the ``n`` images of the set, ``(n, d)``.
        """
        check_shapes(pooled=(pooled, "n d"), mean=(self.mean, "d"))
        offset = pooled.cpu().double().mean(dim=0) - self.mean.double()
        return math.sqrt(max(float(offset @ self.precision.double() @ offset), 0.0))

    def ood_score(self, pooled: Tensor) -> float:
        """Return the out-of-distribution score of a set of images.

        The score is the Mahalanobis distance of the set, divided by the limit for sets with this
        number of images. A set with a score above 1 is out of distribution. Limits are interpolated
        between the numbers in ``SET_SIZES``, and larger sets have the limit of 64 images. The
        detection is more reliable for sets of eight or more images than for single images.

        Args:
            pooled: Unit vectors of the ``n`` images of the set, ``(n, d)``.

        Returns:
            The out-of-distribution score, >= 0. If the set is empty, the score is NaN.

        Source:
            Hotelling, The Generalization of Student's Ratio, Annals of Mathematical Statistics
            2(3), 1931. The squared distance is the statistic T squared of this paper, divided by
            the number of images.

        Differs:
            The covariance matrix is shrunk. The limits are not quantiles of the distribution of T
            squared, but percentiles measured on sets of images with one theme. The mean of a set
            with one theme deviates more from the training mean than the mean of a random set.
        """
        if len(pooled) == 0:
            return math.nan
        limit = np.interp(math.log2(len(pooled)), np.log2(SET_SIZES), self.limits)
        return self.mahalanobis_distance(pooled) / float(limit)


def fit_ood_detector(pooled: Tensor, themes: Sequence[Tensor]) -> OODDetector:
    """Fit an out-of-distribution detector to the vectors of in-distribution images.

    The limit for each number of images is computed from 1,000 sets, which are sampled with seed 0.

    Args:
        pooled: Unit vectors of ``n`` in-distribution images, ``(n, d)``, from which the mean and
            the covariance matrix are computed.
        themes: For each theme, the unit vectors of ``k`` images with this theme, ``(k, d)``. The
            images must be in-distribution images that are not in ``pooled``, and ``k`` should be
            64 or more.
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
    """Write a detector and the fingerprint of its encoder to a safetensors file."""
    tensors = {
        "mean": detector.mean,
        "precision": detector.precision,
        "limits": torch.tensor(detector.limits, dtype=torch.float64),
    }
    save_file(tensors, file, metadata={"fingerprint": fingerprint})


def load_ood_detector(file: Path, fingerprint: str) -> OODDetector:
    """Read an out-of-distribution detector, and check that it was fitted for the encoder.

    Args:
        file: Safetensors file that was written by ``save_ood_detector``.
        fingerprint: Fingerprint of the encoder.

    Raises:
        DataError: If the file cannot be read or is damaged, or if the detector was fitted for an
            encoder with another fingerprint.
    """
    with open_safetensors(file, "pt") as stored:
        stored_fingerprint = stored.metadata()["fingerprint"]
        mean, precision, limits = (stored.get_tensor(k) for k in ("mean", "precision", "limits"))
    if stored_fingerprint != fingerprint:
        raise DataError(
            f"The detector in {file.name} must have the fingerprint of the weights, {fingerprint}; "
            f"got {' '.join(stored_fingerprint.split())[:60]}. "
            "Run python training/out_of_distribution.py."
        )
    return OODDetector(mean, precision, limits.tolist())
