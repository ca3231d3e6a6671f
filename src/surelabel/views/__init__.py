"""Views: parts of a picture looked at alone, pictures sewn together, and scores made one again.

``FUSIONS``: ``fusion(global_scores (n c), view_scores (n t c), *, settings) -> (n c)``. Add one
line here for a new one. The two maxima take log-odds, the two means of relative scores cosines.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.views.boxes import Box, cut_out
from surelabel.views.crops import random_crops
from surelabel.views.cuts import Crops, Cut, Regions, Tiles
from surelabel.views.fusion import (
    max_with_dead_band,
    max_with_margin,
    mean,
    mean_of_centred,
    mean_of_standardised,
)
from surelabel.views.relative import centred, log_odds_of_softmax, standardised
from surelabel.views.sewing import (
    blended,
    overlay_boxes,
    overlay_chances,
    overlay_rows,
    overlay_size,
    sewn,
)
from surelabel.views.subgrids import attended, last_map, mean_of_patches
from surelabel.views.tiles import tiles

FUSIONS: dict[str, Callable[..., Tensor]] = {
    "max_with_dead_band": max_with_dead_band,
    "max_with_margin": max_with_margin,
    "mean": mean,
    "mean_of_centred": mean_of_centred,
    "mean_of_standardised": mean_of_standardised,
}

__all__ = [
    "FUSIONS",
    "Box",
    "Crops",
    "Cut",
    "Regions",
    "Tiles",
    "attended",
    "blended",
    "centred",
    "cut_out",
    "last_map",
    "log_odds_of_softmax",
    "max_with_dead_band",
    "max_with_margin",
    "mean",
    "mean_of_centred",
    "mean_of_patches",
    "mean_of_standardised",
    "overlay_boxes",
    "overlay_chances",
    "overlay_rows",
    "overlay_size",
    "random_crops",
    "sewn",
    "standardised",
    "tiles",
]
