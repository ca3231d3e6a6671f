"""This package contains the training loop, the batch sources and the training objective."""

from surelabel.training.batches import (
    Batch,
    BatchSource,
    TargetUpdatingBatchSource,
    check_training_batch_targets,
)
from surelabel.training.checkpoint import Checkpoint, delete_checkpoint
from surelabel.training.cut_and_sew_source import CutAndSewBatch, CutAndSewSource
from surelabel.training.device_training import check_training_devices, train_on_devices
from surelabel.training.feature_batches import (
    FeatureBatches,
    feature_batch_tensors,
    select_feature_batch_rows,
)
from surelabel.training.image_batches import ImageBatches
from surelabel.training.loop import EpochResult, run_training_loop
from surelabel.training.objective import (
    ElementLoss,
    Objective,
    Regularizer,
    objective_mean_over_known,
)
from surelabel.training.pair_batches import PairBatches
from surelabel.training.penalty_selection import LinearHeads, fit_linear_heads, select_penalties
from surelabel.training.weight_averaging import WeightAverage

__all__ = [
    "Batch",
    "BatchSource",
    "Checkpoint",
    "CutAndSewBatch",
    "CutAndSewSource",
    "ElementLoss",
    "EpochResult",
    "FeatureBatches",
    "ImageBatches",
    "LinearHeads",
    "Objective",
    "PairBatches",
    "Regularizer",
    "TargetUpdatingBatchSource",
    "WeightAverage",
    "check_training_batch_targets",
    "check_training_devices",
    "delete_checkpoint",
    "feature_batch_tensors",
    "fit_linear_heads",
    "objective_mean_over_known",
    "run_training_loop",
    "select_feature_batch_rows",
    "select_penalties",
    "train_on_devices",
]
