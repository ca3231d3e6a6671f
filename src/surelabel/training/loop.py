"""The only training loop."""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from surelabel.errors import ConfigError
from surelabel.training.averaging import Average
from surelabel.training.batch import Batch, LearningSource, Source
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.objective import Objective
from surelabel.training.pace import groups, schedule

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
    warm_up: float = 0.0,
    averaging: float = 0.0,
    seed: int = 0,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Pass]:
    """Train ``method`` on ``source`` while the step size falls along a cosine.

    Args:
        method: Features to scores; trained in place. One with parts that learn faster or slower
            has ``rates``: the beginning of their parameters' names, and what the step size is
            multiplied with. One that learns through several heads has ``learning(features, targets,
            known) -> (h, n, c)``; the objective is then the mean over them.
        source: Gives the batches. A ``LearningSource`` is told the scores after each step, of
            several heads their mean, and its state is kept with the rest.
        objective: What to make small; unknown labels have no influence on it.
        epochs: Passes over the source.
        learning_rate: Largest step size.
        weight_decay: On matrices only.
        optimizer: ``optimizer(groups, lr=…)``.
        together: Batches whose gradients make one step, for batches that memory cannot hold. What
            compares pictures with each other sees one of them at a time.
        warm_up: Share of all steps in which the step size rises before it falls, in [0, 1).
        averaging: Decay of the exponential mean of the weights (``Average``) that stays at the end,
            in [0, 1); 0 for the weights of the last step. A source's parameters stay as they are.
        seed: Of the order of the pictures.
        checkpoint: Where the state is kept after each pass and every hundredth step of one, so that
            a stopped run goes on.
        progress: Called after each pass with the passes done and their number.

    Returns:
        One entry a pass.

    Raises:
        ConfigError: the loss is no number any more, or a setting is out of its range.
    """
    generator = torch.Generator().manual_seed(seed)
    learner = source if isinstance(source, LearningSource) else None
    trained = optimizer(groups(method, source, learning_rate, weight_decay), lr=learning_rate)
    pace = schedule(trained, epochs * math.ceil(len(source) / together), warm_up)
    place, average = _Place(generator), Average(method, averaging) if averaging else None
    state = {"method": method, "optimizer": trained, "schedule": pace, "place": place}
    state["draws"] = torch.default_generator  # of dropout and the like, on a CPU
    state |= {"source": learner} if learner else {}
    state |= {"average": average} if average else {}
    history = [Pass(*p) for p in checkpoint.resume(state)] if checkpoint else []
    method.train()
    for epoch in range(len(history), epochs):
        generator.set_state(place.begun)
        for several in _several(source.batches(generator, place.steps * together), together):
            trained.zero_grad()
            added, scores = _gradients(method, several, objective)
            trained.step()
            pace.step()
            if average:
                average.move()
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
    if average:
        average.put()
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
        heads = _heads(method, batch)
        loss, penalty = objective.of_heads(heads, batch)
        value = loss if penalty is None else loss + penalty
        (value * (count / max(sum(counts), 1))).backward()
        extra = 0.0 if penalty is None else penalty.item()
        sums += torch.tensor([count * loss.item(), count * extra, count])
        scores.append(heads.detach().mean(0))
    return sums, scores


def _heads(method: nn.Module, batch: Batch) -> Tensor:
    """What a method says of a batch to learn from it, ``(h, n, c)``."""
    learning = getattr(method, "learning", None)
    if learning is None:
        said: Tensor = method(batch.features)
        return said[None]
    heads: Tensor = learning(batch.features, batch.targets, batch.known)
    return heads
