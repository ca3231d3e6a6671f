"""This module defines the heat maps of the labels of one image (localization)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array


@dataclass(frozen=True)
class RegionMaps:
    """Heat maps of the labels of one image, on a grid of regions.

    All arrays have the shape ``(down, across)``, for the numbers of rows and columns of the grid.
    The grid of the frozen encoder may differ from the grid of the method.

    Attributes:
        maps: Scores of the regions by label. Only the order of the scores is meaningful.
        strongest_labels: Label with the highest score in each region, among all labels.
        crop_mode: Area that the regions cover: the whole image resized to the grid (``squash``),
            its centre (``center``), or the image with a border (``border``).
        region_weights: Weight of each region. The weights sum to 1. If None, all weights are equal.
        frozen_similarities: Cosine similarities of the regions by label, computed by the frozen
            encoder. If ``maps`` contains the same values, the mapping is empty.
        adapted_similarities: Cosine similarities of the regions by label, computed by the method.
            If the method does not adapt the similarities, the mapping is empty.
    """

    maps: Mapping[str, Array]
    strongest_labels: npt.NDArray[np.str_]
    crop_mode: str = "squash"
    region_weights: Array | None = None
    frozen_similarities: Mapping[str, Array] = field(default_factory=dict)
    adapted_similarities: Mapping[str, Array] = field(default_factory=dict)
