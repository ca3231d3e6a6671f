"""Define the methods, PyTorch modules that compute the scores of labels from features of images.

Each method is constructed by ``method(encoder, names, *, settings)``. To add a method, add one line
to ``METHODS``. The keys of ``SCORE_DOMAINS`` are the values of the setting ``domain`` of
``TextScorer``.
"""

from surelabel.methods.clip_adapter import ClipAdapter
from surelabel.methods.cocoop import CoCoOp
from surelabel.methods.coop import CoOp
from surelabel.methods.coop_matching import CoOpMatching
from surelabel.methods.cosine_projection import CosineProjection
from surelabel.methods.crops import Crops
from surelabel.methods.dense_regions.dense_regions import DenseRegions
from surelabel.methods.dualcoop import DualCoOp
from surelabel.methods.dualcoop_matching import DualCoOpMatching
from surelabel.methods.extra_trees import ExtraTrees
from surelabel.methods.finetune import FineTune
from surelabel.methods.gradient_boosting import GradientBoosting
from surelabel.methods.interface import (
    AddsTrainingLosses,
    EstimatesPairUncertainty,
    EstimatesUncertainty,
    FitsTargets,
    HasModelLink,
    LearnsFromImages,
    LearnsFromTargets,
    LocalizesLabels,
    MatchesRegions,
    Method,
    ScalesLearningRates,
    ScoresPairs,
    SelectsPenalties,
    TrainingRecipe,
    TrainsEncoder,
    TrainsSeveralHeads,
    TunesTexts,
    UsesFitLabels,
    UsesLadder,
    UsesViews,
    check_method_contract,
    copy_method_fit,
    method_is_student,
    pair_variances_with_any_method,
    score_pairs_with_any_method,
    score_patches_with_any_method,
)
from surelabel.methods.kgcoop import KgCoOp
from surelabel.methods.linear import Linear
from surelabel.methods.ml_decoder import MLDecoder
from surelabel.methods.multiple_instance_patches import MultipleInstancePatches
from surelabel.methods.multiple_instance_tiles import MultipleInstanceTiles
from surelabel.methods.probabilistic_embedding import ProbabilisticEmbedding
from surelabel.methods.recover_match.recover_match import RecoverMatch
from surelabel.methods.region_statistics.region_statistics import RegionStatistics
from surelabel.methods.standardized import Standardized
from surelabel.methods.t2i_pal import T2IPAL
from surelabel.methods.tai import TaI
from surelabel.methods.tai_plus import TaIPlus
from surelabel.methods.tailor.tailor import Tailor
from surelabel.methods.text_scoring.score_domains import SCORE_DOMAINS
from surelabel.methods.text_scoring.text_scorer import BACKGROUNDS, TextScorer
from surelabel.methods.tiles import Tiles
from surelabel.methods.variational.variational import Variational
from surelabel.methods.variational_tagger import VariationalTagger
from surelabel.methods.zero_shot import ZeroShot

__all__ = [
    "BACKGROUNDS",
    "METHODS",
    "SCORE_DOMAINS",
    "T2IPAL",
    "AddsTrainingLosses",
    "ClipAdapter",
    "CoCoOp",
    "CoOp",
    "CoOpMatching",
    "CosineProjection",
    "Crops",
    "DenseRegions",
    "DualCoOp",
    "DualCoOpMatching",
    "EstimatesPairUncertainty",
    "EstimatesUncertainty",
    "ExtraTrees",
    "FineTune",
    "FitsTargets",
    "GradientBoosting",
    "HasModelLink",
    "KgCoOp",
    "LearnsFromImages",
    "LearnsFromTargets",
    "Linear",
    "LocalizesLabels",
    "MLDecoder",
    "MatchesRegions",
    "Method",
    "MultipleInstancePatches",
    "MultipleInstanceTiles",
    "ProbabilisticEmbedding",
    "RecoverMatch",
    "RegionStatistics",
    "ScalesLearningRates",
    "ScoresPairs",
    "SelectsPenalties",
    "Standardized",
    "TaI",
    "TaIPlus",
    "Tailor",
    "TextScorer",
    "Tiles",
    "TrainingRecipe",
    "TrainsEncoder",
    "TrainsSeveralHeads",
    "TunesTexts",
    "UsesFitLabels",
    "UsesLadder",
    "UsesViews",
    "Variational",
    "VariationalTagger",
    "ZeroShot",
    "check_method_contract",
    "copy_method_fit",
    "method_is_student",
    "pair_variances_with_any_method",
    "score_pairs_with_any_method",
    "score_patches_with_any_method",
]

METHODS: dict[str, type[Method]] = {
    "clip_adapter": ClipAdapter,
    "cocoop": CoCoOp,
    "coop": CoOp,
    "coop_matching": CoOpMatching,
    "cosine_projection": CosineProjection,
    "crops": Crops,
    "dense_regions": DenseRegions,
    "dualcoop": DualCoOp,
    "dualcoop_matching": DualCoOpMatching,
    "extra_trees": ExtraTrees,
    "finetune": FineTune,
    "gradient_boosting": GradientBoosting,
    "kgcoop": KgCoOp,
    "linear": Linear,
    "ml_decoder": MLDecoder,
    "multiple_instance_patches": MultipleInstancePatches,
    "multiple_instance_tiles": MultipleInstanceTiles,
    "probabilistic_embedding": ProbabilisticEmbedding,
    "recover_match": RecoverMatch,
    "region_statistics": RegionStatistics,
    "standardized": Standardized,
    "t2i_pal": T2IPAL,
    "tai": TaI,
    "tai_plus": TaIPlus,
    "tailor": Tailor,
    "tiles": Tiles,
    "variational": Variational,
    "variational_tagger": VariationalTagger,
    "zero_shot": ZeroShot,
}
