"""This package compares similarity methods on images with captions (VACSR)."""

from surelabel.bench.comparison import BenchComparison
from surelabel.bench.similarity.caption_splits import CaptionSplits, load_caption_splits
from surelabel.bench.similarity.figures import (
    plot_similarity_distributions,
    plot_similarity_noise,
    plot_similarity_uncertainty,
)
from surelabel.bench.similarity.page import similarity_paragraphs
from surelabel.bench.similarity.plan import FULL, QUICK, SimilarityPlan
from surelabel.bench.similarity.results import (
    measure_similarity_results,
    similarity_plan_with_epochs,
)

SIMILARITY = BenchComparison(
    "similarity",
    FULL,
    QUICK,
    measure_similarity_results,
    similarity_paragraphs,
    figures={
        "uncertainty.png": plot_similarity_uncertainty,
        "distributions.png": plot_similarity_distributions,
        "noise.png": plot_similarity_noise,
    },
)

__all__ = [
    "SIMILARITY",
    "CaptionSplits",
    "SimilarityPlan",
    "load_caption_splits",
    "similarity_plan_with_epochs",
]
