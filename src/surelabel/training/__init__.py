"""Training loop, batch sources and training objective."""

from surelabel.training.batches import Batch, BatchSource, TargetUpdatingSource
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.cut_and_sew_source import CutAndSewBatch, CutAndSewSource
from surelabel.training.feature_batches import FeatureBatches, select_feature_rows, to_tensors
from surelabel.training.image_batches import ImageBatches
from surelabel.training.loop import EpochResult, run_training
from surelabel.training.objective import Objective, mean_over_known
from surelabel.training.weight_averaging import WeightAverage

__all__ = [
    "Batch",
    "BatchSource",
    "Checkpoint",
    "CutAndSewBatch",
    "CutAndSewSource",
    "EpochResult",
    "FeatureBatches",
    "ImageBatches",
    "Objective",
    "TargetUpdatingSource",
    "WeightAverage",
    "mean_over_known",
    "run_training",
    "select_feature_rows",
    "to_tensors",
]
