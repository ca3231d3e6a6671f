"""Define views, which are separately encoded parts of an image, and the fusion of their scores.

The entries of ``FUSIONS`` are functions
``fusion(global_scores (n c), view_scores (n t c), *, settings) -> (n c)`` for n images, t views of
each image and c labels. To add a fusion, write its function in ``fusions.py`` and add one line to
``FUSIONS``. If the fused score of a label depends on other labels, also add the key to
``LABEL_COMPARING_FUSIONS``. The two fusions with a maximum expect log-odds; ``mean_of_centred`` and
``mean_of_standardized`` expect cosines.
"""

from surelabel.views.boxes import Box, crop_and_resize_box
from surelabel.views.crops import random_crop_boxes
from surelabel.views.feature_subgrids import (
    attention_pool_subgrids,
    last_feature_map_for_subgrids,
    mean_pool_subgrids,
)
from surelabel.views.fusions import (
    FUSIONS,
    LABEL_COMPARING_FUSIONS,
    max_fusion_with_dead_band,
    max_fusion_with_margin,
    mean_fusion,
    mean_fusion_of_centred,
    mean_fusion_of_standardized,
)
from surelabel.views.relative_scores import (
    center_relative_scores,
    relative_log_odds_of_softmax,
    standardize_relative_scores,
)
from surelabel.views.sewing import (
    blend_labels_of_sewing,
    paste_sewing_overlays,
    sample_sewing_overlay_boxes,
    sample_sewing_overlays,
    sewing_overlay_count_probabilities,
    sewing_overlay_size,
)
from surelabel.views.tile_grid import tile_grid_boxes
from surelabel.views.tile_grids import TileGrids
from surelabel.views.view_layouts import CropLayout, RegionLayout, TileLayout, ViewLayout
from surelabel.views.view_vectors import image_and_view_vectors

__all__ = [
    "FUSIONS",
    "LABEL_COMPARING_FUSIONS",
    "Box",
    "CropLayout",
    "RegionLayout",
    "TileGrids",
    "TileLayout",
    "ViewLayout",
    "attention_pool_subgrids",
    "blend_labels_of_sewing",
    "center_relative_scores",
    "crop_and_resize_box",
    "image_and_view_vectors",
    "last_feature_map_for_subgrids",
    "max_fusion_with_dead_band",
    "max_fusion_with_margin",
    "mean_fusion",
    "mean_fusion_of_centred",
    "mean_fusion_of_standardized",
    "mean_pool_subgrids",
    "paste_sewing_overlays",
    "random_crop_boxes",
    "relative_log_odds_of_softmax",
    "sample_sewing_overlay_boxes",
    "sample_sewing_overlays",
    "sewing_overlay_count_probabilities",
    "sewing_overlay_size",
    "standardize_relative_scores",
    "tile_grid_boxes",
]
