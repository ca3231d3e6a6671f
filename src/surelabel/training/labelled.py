"""Steps from frozen features that lie in memory."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.records import Features
from surelabel.training.batch import Batch, check_known


class Labelled:
    """Frozen features with labels, shuffled anew in each pass.

    Args:
        features: Of ``n`` pictures.
        targets: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        size: Pictures a batch.
    """

    def __init__(self, features: Features, targets: Tensor, known: Tensor, *, size: int):
        check_known(known)
        self._features, self._targets, self._known = features, targets, known
        self._size = size

    def parameters(self) -> list[nn.Parameter]:
        """None: labels are given."""
        return []

    def batches(self, generator: torch.Generator, skip: int = 0) -> Iterator[Batch]:
        """One pass in random order, without its first ``skip`` batches."""
        order = torch.randperm(len(self._targets), generator=generator)
        for rows in order.split(self._size)[skip:]:
            yield Batch(taken(self._features, rows), self._targets[rows], self._known[rows])

    def __len__(self) -> int:
        return math.ceil(len(self._targets) / self._size)


def tensors(*arrays: Any) -> list[Tensor]:
    """Arrays as float32 tensors, what is boolean as it is."""
    made = [torch.as_tensor(a) for a in arrays]
    return [t if t.dtype == torch.bool else t.float() for t in made]


def taken(features: Features, rows: Tensor) -> Features:
    """Only these rows of all that is there of the pictures."""

    def of(part: Tensor | None) -> Tensor | None:
        return None if part is None else part[rows]

    return Features(
        pooled=features.pooled[rows],
        patches=of(features.patches),
        grid=features.grid,
        attention=of(features.attention),
        views=of(features.views),
        layers=features.layers and {k: tokens[rows] for k, tokens in features.layers.items()},
        pixels=of(features.pixels),
        beside=of(features.beside),
    )
