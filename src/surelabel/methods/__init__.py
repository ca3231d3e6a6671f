"""Methods: ``method(encoder, names, *, settings)``, a module ``features -> scores (n, c)``.

Add one line to ``METHODS`` for a new one. ``SCORE_DOMAINS`` are the values of a setting that all
methods without labels share; see ``TextScorer``.
"""

from surelabel.methods.clip_adapter import ClipAdapter
from surelabel.methods.crops import Crops
from surelabel.methods.dense_regions.dense_regions import DenseRegions
from surelabel.methods.finetune import FineTune
from surelabel.methods.interface import Method, TrainingRecipe, patch_scores
from surelabel.methods.linear import Linear
from surelabel.methods.recover_match.recover_match import RecoverMatch
from surelabel.methods.region_statistics.region_statistics import RegionStatistics
from surelabel.methods.standardized import Standardized
from surelabel.methods.tailor.tailor import Tailor
from surelabel.methods.text_scoring.score_domains import SCORE_DOMAINS
from surelabel.methods.text_scoring.text_scorer import BACKGROUNDS, TextScorer
from surelabel.methods.tiles import Tiles
from surelabel.methods.zero_shot import ZeroShot

__all__ = [
    "BACKGROUNDS",
    "METHODS",
    "SCORE_DOMAINS",
    "ClipAdapter",
    "Crops",
    "DenseRegions",
    "FineTune",
    "Linear",
    "Method",
    "RecoverMatch",
    "RegionStatistics",
    "Standardized",
    "Tailor",
    "TextScorer",
    "Tiles",
    "TrainingRecipe",
    "ZeroShot",
    "patch_scores",
]

METHODS = {
    "clip_adapter": ClipAdapter,
    "crops": Crops,
    "dense_regions": DenseRegions,
    "finetune": FineTune,
    "linear": Linear,
    "recover_match": RecoverMatch,
    "region_statistics": RegionStatistics,
    "standardized": Standardized,
    "tailor": Tailor,
    "tiles": Tiles,
    "zero_shot": ZeroShot,
}
