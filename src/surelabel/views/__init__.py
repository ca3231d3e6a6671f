"""Views: parts of an image that are encoded separately, and fusion of their scores.

``FUSIONS``: ``fusion(global_scores (n c), view_scores (n t c), *, settings) -> (n c)``. Add one
line to ``fusions.py`` for a new one. The two maxima take log-odds, the two means of relative
scores take cosines.
"""

from surelabel.views.boxes import Box, crop_and_resize
from surelabel.views.crops import random_crop_boxes
from surelabel.views.feature_subgrids import (
    attention_pool_subgrids,
    last_feature_map,
    mean_pool_subgrids,
)
from surelabel.views.fusions import (
    FUSIONS,
    max_with_dead_band,
    max_with_margin,
    mean,
    mean_of_centred,
    mean_of_standardized,
)
from surelabel.views.relative_scores import center_scores, log_odds_of_softmax, standardize_scores
from surelabel.views.sewing import (
    blend_labels,
    overlay_count_probabilities,
    overlay_size,
    paste_overlays,
    sample_overlay_boxes,
    sample_overlays,
)
from surelabel.views.tile_grid import tile_boxes
from surelabel.views.view_layouts import CropLayout, RegionLayout, TileLayout, ViewLayout

__all__ = [
    "FUSIONS",
    "Box",
    "CropLayout",
    "RegionLayout",
    "TileLayout",
    "ViewLayout",
    "attention_pool_subgrids",
    "blend_labels",
    "center_scores",
    "crop_and_resize",
    "last_feature_map",
    "log_odds_of_softmax",
    "max_with_dead_band",
    "max_with_margin",
    "mean",
    "mean_of_centred",
    "mean_of_standardized",
    "mean_pool_subgrids",
    "overlay_count_probabilities",
    "overlay_size",
    "paste_overlays",
    "random_crop_boxes",
    "sample_overlay_boxes",
    "sample_overlays",
    "standardize_scores",
    "tile_boxes",
]
