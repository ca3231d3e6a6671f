"""The only training loop."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from surelabel.errors import InputError
from surelabel.records import Features

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Batch:
    """Features of some pictures with their targets ``(n, c)`` and what is known of them."""

    features: Features
    targets: Tensor
    known: Tensor


class Source(Protocol):
    """Where training steps come from; a source may own parameters of its own."""

    def parameters(self) -> list[nn.Parameter]:
        """Parameters to train beside the method's."""

    def batches(self, generator: torch.Generator) -> Iterator[Batch]:
        """One pass."""

    def __len__(self) -> int:
        """Batches a pass."""


class Labelled:
    """Frozen features with labels, shuffled anew in each pass.

    Args:
        features: Of ``n`` pictures.
        targets: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        size: Pictures a batch.
    """

    def __init__(self, features: Features, targets: Tensor, known: Tensor, *, size: int):
        if not known.any():
            raise InputError(
                f"Fitting needs known labels; of {known.numel()} there is none. "
                "Check that the label file and the names agree."
            )
        self._features, self._targets, self._known = features, targets, known
        self._size = size

    def parameters(self) -> list[nn.Parameter]:
        """None: labels are given."""
        return []

    def batches(self, generator: torch.Generator) -> Iterator[Batch]:
        """One pass in random order."""
        order = torch.randperm(len(self._targets), generator=generator)
        for rows in order.split(self._size):
            yield Batch(take(self._features, rows), self._targets[rows], self._known[rows])

    def __len__(self) -> int:
        return math.ceil(len(self._targets) / self._size)


def take(features: Features, rows: Tensor) -> Features:
    """The features of some pictures."""
    return Features(
        pooled=features.pooled[rows],
        patches=None if features.patches is None else features.patches[rows],
        grid=features.grid,
    )


def fit(
    method: nn.Module,
    source: Source,
    *,
    loss: Loss,
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Train ``method`` on ``source`` with AdamW and a cosine step size.

    Args:
        method: Features to scores; trained in place.
        source: Gives the batches.
        loss: One number an element; unknown labels have no influence.
        epochs: Passes over the source.
        learning_rate: Largest step size.
        weight_decay: On matrices only.
        seed: Of the order of the pictures.
        progress: Called after each pass with the passes done and their number.

    Returns:
        Mean loss of each pass, in nats a label.
    """
    generator = torch.Generator().manual_seed(seed)
    trainable = [p for p in method.parameters() if p.requires_grad] + source.parameters()
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
            {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=learning_rate,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(source))
    history = []
    method.train()
    for epoch in range(epochs):
        total = count = 0.0
        for batch in source.batches(generator):
            elements = loss(method(batch.features), batch.targets)
            known = batch.known.to(elements.dtype)
            value = (elements * known).sum() / known.sum().clamp(min=1)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
            total, count = total + value.item() * known.sum().item(), count + known.sum().item()
        history.append(total / max(count, 1))
        if progress:
            progress(epoch + 1, epochs)
    method.eval()
    return history


def tensors(*arrays: Any) -> list[Tensor]:
    """Arrays as float32 tensors, what is boolean as it is."""
    made = [torch.as_tensor(a) for a in arrays]
    return [t if t.dtype == torch.bool else t.float() for t in made]
