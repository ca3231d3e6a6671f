"""This module defines the interface between batch sources and the training loop."""

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
        is_part: Whether the batch contains only the images of one of several processes. In this
            case, the complete batch is the concatenation of the parts of all processes.
    """

    features: Features
    targets: Tensor
    known: Tensor
    weights: Tensor | None = None
    texts: Features | None = None
    is_part: bool = False


@dataclass(frozen=True)
class BatchPart:
    """Part of each batch that one of several processes computes.

    A batch with fewer images than processes is not divided. Instead, each process computes all
    images of the batch.

    Attributes:
        index: Number of the process, from 0.
        count: Number of processes, >= 1.

    Example:
        >>> [BatchPart(index, 2).rows(5) for index in (0, 1)]
        [slice(0, 2, None), slice(2, 5, None)]
    """

    index: int = 0
    count: int = 1

    def is_divided(self, n_images: int) -> bool:
        """Return whether a batch of ``n_images`` images is divided among the processes."""
        return 1 < self.count <= n_images

    def rows(self, n_images: int) -> slice:
        """Return the positions of the images of this process in a batch of ``n_images`` images."""
        if not self.is_divided(n_images):
            return slice(0, n_images)
        return slice(n_images * self.index // self.count, n_images * (self.index + 1) // self.count)


WHOLE_BATCH = BatchPart()


class BatchSource(Protocol):
    """Source of training batches. A source may have trainable parameters."""

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the source, which are trained together with the method."""

    def batches(
        self, generator: torch.Generator, skip: int = 0, part: BatchPart = WHOLE_BATCH
    ) -> Generator[Batch]:
        """Yield the batches of one epoch, except the first ``skip`` batches.

        Skipped batches are not computed. All random numbers are sampled from ``generator`` before
        the first batch is computed. If the images of a batch cannot be decoded because the worker
        processes are killed, a batch without images is yielded in its place. If several processes
        train, each process yields its ``part`` of the same batches.
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
            f"Fitting needs at least one known target; all {known.numel()} targets are unknown. "
            "Check that the dataset has annotations for the labels."
        )


def empty_training_batch(n_classes: int, *, is_part: bool = False) -> Batch:
    """Return a batch without images, for ``n_classes`` labels."""
    targets = torch.zeros(0, n_classes)
    return Batch(Features(pooled=torch.zeros(0, 0)), targets, known=targets > 0, is_part=is_part)
