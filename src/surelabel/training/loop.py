"""The only training loop."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from surelabel.errors import ConfigError
from surelabel.training.batch import Batch, Source
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.objective import Objective

Optimizer = Callable[..., torch.optim.Optimizer]


class Pass(NamedTuple):
    """What one pass over the source came to, on average over its known labels.

    Attributes:
        loss: Without the regularizer; in nats a label for losses of elements.
        penalty: The weighted regularizer; 0 without one.
    """

    loss: float
    penalty: float


def fit(
    method: nn.Module,
    source: Source,
    *,
    objective: Objective,
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    optimizer: Optimizer = torch.optim.AdamW,
    together: int = 1,
    seed: int = 0,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Pass]:
    """Train ``method`` on ``source`` while the step size falls along a cosine.

    Args:
        method: Features to scores; trained in place.
        source: Gives the batches.
        objective: What to make small; unknown labels have no influence on it.
        epochs: Passes over the source.
        learning_rate: Largest step size.
        weight_decay: On matrices only.
        optimizer: ``optimizer(groups, lr=…)``.
        together: Batches whose gradients make one step, for batches that memory cannot hold. What
            compares pictures with each other sees one of them at a time.
        seed: Of the order of the pictures.
        checkpoint: Where the state is kept after each pass, so that a stopped run goes on.
        progress: Called after each pass with the passes done and their number.

    Returns:
        One entry a pass.

    Raises:
        ConfigError: the loss is no number any more.
    """
    generator = torch.Generator().manual_seed(seed)
    trained = optimizer(_groups(method, source, weight_decay), lr=learning_rate)
    steps = epochs * math.ceil(len(source) / together)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(trained, steps)
    state = {"method": method, "optimizer": trained, "schedule": schedule, "generator": generator}
    state["draws"] = torch.default_generator  # of dropout and the like, on a CPU
    history = [Pass(*p) for p in checkpoint.resume(state)] if checkpoint else []
    method.train()
    for epoch in range(len(history), epochs):
        sums = torch.zeros(3, dtype=torch.float64)
        for several in _several(source.batches(generator), together):
            trained.zero_grad()
            sums += _gradients(method, several, objective)
            trained.step()
            schedule.step()
        loss, penalty, count = sums.tolist()
        history.append(Pass(loss / max(count, 1), penalty / max(count, 1)))
        _check_finite(history)
        if checkpoint:
            checkpoint.keep(state, history)
        if progress:
            progress(epoch + 1, epochs)
    method.eval()
    return history


def _groups(method: nn.Module, source: Source, weight_decay: float) -> list[dict[str, Any]]:
    trainable = [p for p in method.parameters() if p.requires_grad] + source.parameters()
    return [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]


def _check_finite(history: list[Pass]) -> None:
    if not all(map(math.isfinite, history[-1])):
        raise ConfigError(
            f"Fitting left all bounds in pass {len(history)}: the loss is {history[-1].loss} and "
            f"the regularizer {history[-1].penalty}. Take a smaller learning_rate, or a smaller "
            "regularizer_weight."
        )


def _several(batches: Iterator[Batch], together: int) -> Iterator[list[Batch]]:
    while several := list(islice(batches, together)):
        yield several


def _gradients(method: nn.Module, batches: list[Batch], objective: Objective) -> Tensor:
    """Add the gradients of one step up; sums of loss and penalty over known labels, their number.

    Each batch counts by its known labels, so a loss of elements has the gradient that all of them
    would have as one batch.
    """
    counts = [float(batch.known.sum()) for batch in batches]
    sums = torch.zeros(3, dtype=torch.float64)
    for batch, count in zip(batches, counts, strict=True):
        loss, penalty = objective(method(batch.features), batch)
        value = loss if penalty is None else loss + penalty
        (value * (count / max(sum(counts), 1))).backward()
        extra = 0.0 if penalty is None else penalty.item()
        sums += torch.tensor([count * loss.item(), count * extra, count])
    return sums
