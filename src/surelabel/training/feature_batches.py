"""Compute training batches of frozen features."""

import math
from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.features import FeatureRows, SentenceFeatures
from surelabel.records import Features
from surelabel.training.batches import (
    WHOLE_BATCH,
    Batch,
    BatchPart,
    check_training_batch_targets,
)


class FeatureBatches:
    """Batch source of frozen features with targets, shuffled in each epoch.

    Args:
        features: Features of n images, or of n sentences.
        targets: Targets in [0, 1], ``(n, c)``, for c labels.
        known: True where the target is known, ``(n, c)``.
        batch_size: Number of images per batch.

    Raises:
        InputError: If no target is known.
    """

    def __init__(
        self,
        features: Features | SentenceFeatures | FeatureRows,
        targets: Tensor,
        known: Tensor,
        *,
        batch_size: int,
    ):
        check_training_batch_targets(known)
        self._features, self._targets, self._known = features, targets, known
        self._batch_size = batch_size

    def parameters(self) -> list[nn.Parameter]:
        """Return an empty list, because the targets are constant."""
        return []

    def batches(
        self, generator: torch.Generator, skip: int = 0, part: BatchPart = WHOLE_BATCH
    ) -> Generator[Batch]:
        """Yield the batches of one epoch in random order, except the first ``skip`` batches."""
        order = torch.randperm(len(self._targets), generator=generator)
        for batch_rows in order.split(self._batch_size)[skip:]:
            rows = batch_rows[part.rows(len(batch_rows))]
            yield Batch(
                select_feature_batch_rows(self._features, rows),
                self._targets[rows],
                self._known[rows],
                is_part=part.is_divided(len(batch_rows)),
            )

    def __len__(self) -> int:
        return math.ceil(len(self._targets) / self._batch_size)


def feature_batch_tensors(*arrays: Any) -> list[Tensor]:
    """Convert arrays to float32 tensors, and boolean arrays to boolean tensors."""
    tensors = [torch.as_tensor(array) for array in arrays]
    return [tensor if tensor.dtype == torch.bool else tensor.float() for tensor in tensors]


def select_feature_batch_rows(
    features: Features | SentenceFeatures | FeatureRows, rows: Tensor
) -> Features:
    """Return the features of all kinds for the images or sentences in ``rows``."""
    if not isinstance(features, Features):
        return features.take(rows)

    def select(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor[rows]

    layers = features.layers
    if layers:
        layers = {layer: tokens[rows] for layer, tokens in layers.items()}
    return Features(
        pooled=features.pooled[rows],
        patches=select(features.patches),
        grid=features.grid,
        attention=select(features.attention),
        views=select(features.views),
        layers=layers,
        pixels=select(features.pixels),
        self_aware_sum=select(features.self_aware_sum),
        multi_layer=select(features.multi_layer),
        patch_mask=select(features.patch_mask),
    )
