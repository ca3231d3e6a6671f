"""Localization of the labels of one image."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.records import Array


@dataclass(frozen=True)
class RegionMaps:
    """Heat maps of the labels of one image, on a grid of regions.

    All arrays are ``(down, across)``. The grid of the frozen encoder may differ from the grid of
    the method.

    Attributes:
        maps: Label → score of each region; only the order of the scores is meaningful.
        strongest_labels: Label with the highest score in each region, among all labels.
        crop_mode: Area that the regions cover: the whole image resized to the grid (``squash``),
            its centre (``center``), or the image with a border (``border``).
        region_weights: Weight of each region, sum 1; None if all weights are equal.
        frozen_similarities: Label → cosines of the regions, computed by the frozen encoder; empty
            if ``maps`` is the same.
        adapted_similarities: Label → cosines of the regions, computed by the method; empty if it
            does not adapt them.
    """

    maps: Mapping[str, Array]
    strongest_labels: npt.NDArray[np.str_]
    crop_mode: str = "squash"
    region_weights: Array | None = None
    frozen_similarities: Mapping[str, Array] = field(default_factory=dict)
    adapted_similarities: Mapping[str, Array] = field(default_factory=dict)
