"""Limit a search by number of images, probability of each image, and expected precision."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.errors import InputError, NotFitted
from surelabel.records.calibration_description import calibration_provenance

FIRST_ROWS = 1000  # rows that are ranked first if the number of images has no limit
ROUNDING = 1e-9  # tolerance for rounding errors of the mean probability


@dataclass(frozen=True)
class SearchLimits:
    """Limits of the length of a search result.

    Attributes:
        k: Maximum number of images, >= 1. If None, the number of images has no limit.
        min_probability: Minimum probability that an image matches the query, in [0, 1].
        precision: Minimum mean probability of the images of the result and of those before the
            offset, in [0, 1], which is their expected precision. If None, there is no minimum.
        offset: Number of the best images that are left out, >= 0.

    Raises:
        InputError: If a limit is out of range, or has another type.
    """

    k: int | None = 20
    min_probability: float = 0.0
    precision: float | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if self.k is not None and (not isinstance(self.k, int | np.integer) or self.k < 1):
            raise InputError(
                f"k, the number of images, must be a whole number of at least 1; got {self.k}. "
                "Give a number, or None for all images."
            )
        if not isinstance(self.offset, int | np.integer) or self.offset < 0:
            raise InputError(
                f"offset must be a whole number of at least 0; got {self.offset}. Give the number "
                "of images to leave out."
            )
        _check_share_of_search_limits("min_probability", self.min_probability)
        _check_share_of_search_limits("precision", self.precision)

    @property
    def n_ranked(self) -> int | None:
        """Return ``k`` plus the offset, the number of ranked images, or None without ``k``."""
        return None if self.k is None else self.k + self.offset

    def count_images(self, probabilities: Array) -> int:
        """Return the length of the longest result that satisfies all limits.

        The length includes the images before the offset.

        Args:
            probabilities: Probability that each image matches the query, sorted by decreasing
                probability, ``(n,)``.
        """
        n_images = min(self.n_ranked or len(probabilities), len(probabilities))
        is_valid = probabilities[:n_images] >= self.min_probability
        if self.precision is not None:
            means = np.cumsum(probabilities[:n_images]) / np.arange(1, n_images + 1)
            is_valid &= means >= self.precision - ROUNDING
        return int(is_valid.sum())  # of sorted probabilities, those that are valid come first

    def check_calibration(self, description: str) -> None:
        """Check that the mean probability of images estimates the precision of a search.

        Args:
            description: Description of the calibration of the index.

        Raises:
            NotFitted: If there is a minimum of the precision, and the probabilities were not
                calibrated on images.
        """
        if self.precision is None or calibration_provenance(description) in ("labels", "no labels"):
            return
        raise NotFitted(
            "A minimum precision needs probabilities that are calibrated on images; the "
            f"probabilities of the index have another source: {description}. Calibrate the "
            "recognizer on annotated images (`surelabel calibrate`), and build a new index. A "
            "less reliable alternative without labels is `surelabel index "
            "--calibrate-unlabelled`. A minimum probability of each image needs no calibration."
        )


def _check_share_of_search_limits(name: str, value: Any) -> None:
    """Check that a minimum is None or a number in [0, 1].

    Raises:
        InputError: If the value is out of range or is not a number.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (is_number and isfinite(value) and 0 <= value <= 1):
        raise InputError(f"{name} must be a number in [0, 1]; got {value!r}. Use 0.9 for 90 %.")
