"""Interface between batch sources and the training loop."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from surelabel.errors import InputError
from surelabel.records import Features


@dataclass(frozen=True)
class Batch:
    """Batch of images with features and targets.

    Attributes:
        features: Features of n images.
        targets: Targets in [0, 1], ``(n, c)``, for c labels.
        known: True where the target is known, ``(n, c)``.
        weights: Weight of each image in an elementwise loss, ``(n,)``. If None, all weights are
            equal.
        texts: In a batch of pairs, features of c captions, in place of labels. Otherwise, None.
    """

    features: Features
    targets: Tensor
    known: Tensor
    weights: Tensor | None = None
    texts: Features | None = None


class BatchSource(Protocol):
    """Source of training batches. A source may have trainable parameters."""

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the source, which are trained together with the method."""

    def batches(self, generator: torch.Generator, skip: int = 0) -> Generator[Batch]:
        """Yield the batches of one epoch, except the first ``skip`` batches.

        Skipped batches are not computed. All random numbers are sampled from ``generator`` before
        the first batch is computed. A batch without images counts as a batch; it replaces a batch
        whose images cannot be decoded, because the worker processes are killed.
        """

    def __len__(self) -> int:
        """Return the number of batches per epoch."""


@runtime_checkable
class TargetUpdatingBatchSource(BatchSource, Protocol):
    """Batch source that updates its targets during training, with the scores of the method."""

    def update_targets(self, batch: Batch, scores: Tensor) -> None:
        """Update the targets of a batch after the optimizer step.

        The update uses the scores ``(n, c)`` of n images and c labels.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the targets for a checkpoint."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of the targets from a checkpoint."""


def check_training_batch_targets(known: Tensor) -> None:
    """Check that training data have at least one known target.

    Raises:
        InputError: If no target is known.
    """
    if not known.any():
        raise InputError(
            f"Fitting needs at least one known target; all {known.numel()} are unknown. "
            "Check that the dataset has annotations for the labels."
        )


def empty_training_batch(n_classes: int) -> Batch:
    """Return a batch without images, for ``n_classes`` labels."""
    targets = torch.zeros(0, n_classes)
    return Batch(Features(pooled=torch.zeros(0, 0)), targets, known=targets > 0)
