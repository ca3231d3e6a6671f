"""The only training loop."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from surelabel.errors import ConfigError
from surelabel.training.batch import Batch, LearningSource, Source
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.objective import Objective

Optimizer = Callable[..., torch.optim.Optimizer]
KEPT_EVERY = 100  # steps between two checkpoints of a long pass


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
        method: Features to scores; trained in place. One with parts that learn faster or slower
            has ``rates``: the beginning of their parameters' names, and what the step size is
            multiplied with.
        source: Gives the batches. A ``LearningSource`` is told the scores after each step, and its
            state is kept with the rest.
        objective: What to make small; unknown labels have no influence on it.
        epochs: Passes over the source.
        learning_rate: Largest step size.
        weight_decay: On matrices only.
        optimizer: ``optimizer(groups, lr=…)``.
        together: Batches whose gradients make one step, for batches that memory cannot hold. What
            compares pictures with each other sees one of them at a time.
        seed: Of the order of the pictures.
        checkpoint: Where the state is kept after each pass and every hundredth step of one, so that
            a stopped run goes on.
        progress: Called after each pass with the passes done and their number.

    Returns:
        One entry a pass.

    Raises:
        ConfigError: the loss is no number any more.
    """
    generator = torch.Generator().manual_seed(seed)
    learner = source if isinstance(source, LearningSource) else None
    trained = optimizer(_groups(method, source, learning_rate, weight_decay), lr=learning_rate)
    steps = epochs * math.ceil(len(source) / together)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(trained, steps)
    place = _Place(generator)
    state = {"method": method, "optimizer": trained, "schedule": schedule, "place": place}
    state["draws"] = torch.default_generator  # of dropout and the like, on a CPU
    if learner:
        state["source"] = learner
    history = [Pass(*p) for p in checkpoint.resume(state)] if checkpoint else []
    method.train()
    for epoch in range(len(history), epochs):
        generator.set_state(place.begun)
        for several in _several(source.batches(generator, place.steps * together), together):
            trained.zero_grad()
            added, scores = _gradients(method, several, objective)
            trained.step()
            schedule.step()
            if learner:
                _tell(learner, several, scores)
            place.move(added)
            if checkpoint and place.steps % KEPT_EVERY == 0:
                checkpoint.keep(state, history)
        history.append(place.end(generator))
        _check_finite(history)
        if checkpoint:
            checkpoint.keep(state, history)
        if progress:
            progress(epoch + 1, epochs)
    method.eval()
    return history


class _Place:
    """How far a pass has come.

    Attributes:
        begun: State of the generator of the order when the pass began.
        steps: That are done.
        sums: Of loss and penalty over known labels, and their number.
    """

    def __init__(self, generator: torch.Generator):
        self._begin(generator)

    def _begin(self, generator: torch.Generator) -> None:
        self.begun, self.steps = generator.get_state(), 0
        self.sums = torch.zeros(3, dtype=torch.float64)

    def move(self, added: Tensor) -> None:
        """One step on."""
        self.steps += 1
        self.sums += added

    def end(self, generator: torch.Generator) -> Pass:
        """What the pass came to; the next one begins."""
        loss, penalty, count = self.sums.tolist()
        self._begin(generator)
        return Pass(loss / max(count, 1), penalty / max(count, 1))

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _groups(
    method: nn.Module, source: Source, learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    rates: Mapping[str, float] = getattr(method, "rates", {})
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in [*method.named_parameters(), *(("", p) for p in source.parameters())]:
        if parameter.requires_grad:
            decay = weight_decay if parameter.ndim >= 2 else 0.0
            groups.setdefault((_rate(rates, name), decay), []).append(parameter)
    return [
        {"params": parameters, "lr": rate * learning_rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]


def _rate(rates: Mapping[str, float], name: str) -> float:
    """Of the longest beginning that ``name`` has, whole words of it; 1 where it has none."""
    fitting = [part for part in rates if f"{name}.".startswith(f"{part}.")]
    return rates[max(fitting, key=len)] if fitting else 1.0


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


def _tell(source: LearningSource, batches: list[Batch], scores: list[Tensor]) -> None:
    for batch, said in zip(batches, scores, strict=True):
        source.learn(batch, said)


def _gradients(
    method: nn.Module, batches: list[Batch], objective: Objective
) -> tuple[Tensor, list[Tensor]]:
    """Add the gradients of one step up.

    Each batch counts by its known labels, so a loss of elements has the gradient that all of them
    would have as one batch.

    Returns:
        Sums of loss and penalty over known labels, and their number; the scores of each batch.
    """
    counts = [float(batch.known.sum()) for batch in batches]
    sums, scores = torch.zeros(3, dtype=torch.float64), []
    for batch, count in zip(batches, counts, strict=True):
        said = method(batch.features)
        loss, penalty = objective(said, batch)
        value = loss if penalty is None else loss + penalty
        (value * (count / max(sum(counts), 1))).backward()
        extra = 0.0 if penalty is None else penalty.item()
        sums += torch.tensor([count * loss.item(), count * extra, count])
        scores.append(said.detach())
    return sums, scores
