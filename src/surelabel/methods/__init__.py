"""Methods: ``method(backbone, names, *, settings)``, then ``features -> scores (n, c)``.

Add one line to ``METHODS`` for a new one. ``SCORE_DOMAINS`` are what methods without labels hold a
name against, a setting that they share; see ``Wording``.
"""

from surelabel.methods.clip_adapter import ClipAdapter
from surelabel.methods.crops import Cropped
from surelabel.methods.dense_regions import DenseRegions
from surelabel.methods.finetune import FineTune
from surelabel.methods.linear import Linear
from surelabel.methods.protocol import Method, Recipe, of_patches
from surelabel.methods.recover_match import RecoverMatch
from surelabel.methods.region_statistics import RegionStatistics
from surelabel.methods.score_domains import SCORE_DOMAINS
from surelabel.methods.standardised import Standardised
from surelabel.methods.tailor import Tailor
from surelabel.methods.tiles import Tiled
from surelabel.methods.wording import BACKGROUNDS, Wording
from surelabel.methods.zero_shot import ZeroShot

__all__ = [
    "BACKGROUNDS",
    "METHODS",
    "SCORE_DOMAINS",
    "ClipAdapter",
    "Cropped",
    "DenseRegions",
    "FineTune",
    "Linear",
    "Method",
    "Recipe",
    "RecoverMatch",
    "RegionStatistics",
    "Standardised",
    "Tailor",
    "Tiled",
    "Wording",
    "ZeroShot",
    "of_patches",
]

METHODS = {
    "clip_adapter": ClipAdapter,
    "crops": Cropped,
    "dense_regions": DenseRegions,
    "finetune": FineTune,
    "linear": Linear,
    "recover_match": RecoverMatch,
    "region_statistics": RegionStatistics,
    "standardised": Standardised,
    "tailor": Tailor,
    "tiles": Tiled,
    "zero_shot": ZeroShot,
}
