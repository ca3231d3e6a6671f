"""This module defines the training loop for all methods."""

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from surelabel.errors import ConfigError, DataError
from surelabel.methods import Method
from surelabel.progress import Progress, report_progress
from surelabel.training.batches import Batch, BatchSource, TargetUpdatingBatchSource
from surelabel.training.checkpoint import Checkpoint, StatefulObject
from surelabel.training.gradient_accumulation import GradientAccumulation
from surelabel.training.learning_rates import learning_rate_parameter_groups, learning_rate_schedule
from surelabel.training.objective import Objective
from surelabel.training.training_processes import TrainingProcesses
from surelabel.training.weight_averaging import WeightAverage

Optimizer = Callable[..., torch.optim.Optimizer]
CHECKPOINT_INTERVAL = 100  # optimizer steps between two checkpoints within an epoch


class EpochResult(NamedTuple):
    """Training loss of one epoch, averaged over the known targets.

    Attributes:
        loss: Loss without the regularizer. For binary cross-entropy, the unit is nats per target.
        penalty: Regularizer multiplied by its weight. If there is no regularizer, the penalty is 0.
    """

    loss: float
    penalty: float


def run_training_loop(
    method: Method,
    source: BatchSource,
    *,
    objective: Objective,
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    optimizer: Optimizer = torch.optim.AdamW,
    accumulation_steps: int = 1,
    warm_up: float = 0.0,
    ema_decay: float = 0.0,
    seed: int = 0,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    processes: TrainingProcesses | None = None,
) -> list[EpochResult]:
    """Train a method in place on batches; return loss and penalty of each epoch.

    The learning rate has a linear warm-up and a cosine decay.

    Args:
        method: Module that computes scores from features. If the method is an instance of
            ``ScalesLearningRates``, its modules have different learning rates. If the method is an
            instance of ``TrainsSeveralHeads``, the objective is averaged over the heads. For
            batches of pairs, the method is an instance of ``ScoresPairs``.
        source: Source of the batches. A ``TargetUpdatingBatchSource`` receives the scores after
            each step, averaged over heads. The state of such a source is part of the checkpoint.
        objective: Loss and regularizers. Unknown targets are ignored.
        epochs: Number of epochs.
        learning_rate: Peak learning rate.
        weight_decay: Weight decay of parameters with two or more axes.
        optimizer: Function ``optimizer(groups, lr=…)`` that returns a PyTorch optimizer for groups
            of parameters.
        accumulation_steps: Number of batches whose gradients are accumulated for one optimizer
            step. Losses and regularizers that compare images are computed for each batch
            separately.
        warm_up: Fraction of the steps with linear warm-up of the learning rate, in [0, 1).
        ema_decay: Decay of the exponential moving average of the weights (``WeightAverage``), in
            [0, 1). At the end, the average replaces the weights. If 0, the weights of the last step
            remain. Parameters of the source are not averaged.
        seed: Seed of the random numbers of ``source``: the order of the images, and the
            augmentation if there is one.
        checkpoint: Checkpoint from which an interrupted run resumes. The checkpoint is saved after
            each epoch and after every hundredth step of an epoch.
        progress: Function called after each epoch with the number of finished epochs and the total
            number of epochs.
        processes: Processes that train together, each with its part of each batch. The first
            process saves checkpoints and reports progress. If None, there is one process.

    Returns:
        Loss and penalty of each epoch.

    Raises:
        ConfigError: If the loss or the regularizer of an epoch is infinite or NaN, or if
            ``warm_up`` or ``ema_decay`` is out of range.
        DataError: If no image with a known target could be decoded in an epoch, or if the
            checkpoint is damaged or belongs to another run.
        InputError: If the memory of a device is exhausted by one image.
    """
    processes = processes or TrainingProcesses()
    generator = torch.Generator().manual_seed(seed)
    updating_source = source if isinstance(source, TargetUpdatingBatchSource) else None
    groups = learning_rate_parameter_groups(method, source, learning_rate, weight_decay)
    torch_optimizer = optimizer(groups, lr=learning_rate)
    steps = epochs * math.ceil(len(source) / accumulation_steps)
    schedule = learning_rate_schedule(torch_optimizer, steps, warm_up)
    epoch_progress = _TrainingLoopEpoch(generator)
    average = WeightAverage(method, ema_decay) if ema_decay else None
    state: dict[str, StatefulObject | torch.Generator] = {
        "method": method,
        "optimizer": torch_optimizer,
        "schedule": schedule,
        "epoch_progress": epoch_progress,
        "random_generator": torch.default_generator,  # used by dropout on a CPU
    }
    state |= {"source": updating_source} if updating_source else {}
    state |= {"weight_average": average} if average else {}
    history = [EpochResult(*result) for result in checkpoint.resume(state)] if checkpoint else []
    method.train()
    gradients = GradientAccumulation(method, objective, torch_optimizer, processes, seed)
    for epoch in range(len(history), epochs):
        generator.set_state(epoch_progress.generator_state)
        n_finished = epoch_progress.steps * accumulation_steps
        with closing(_training_loop_batches(source, generator, n_finished, processes)) as batches:
            for step_batches in _group_training_loop_batches(batches, accumulation_steps):
                sums, scores = gradients.compute(step_batches, epoch, epoch_progress.steps)
                torch_optimizer.step()
                schedule.step()
                if average:
                    average.update()
                if updating_source:
                    _update_targets_in_training_loop(updating_source, step_batches, scores)
                epoch_progress.add_step(sums)
                is_interval = epoch_progress.steps % CHECKPOINT_INTERVAL == 0
                if checkpoint and processes.is_first and is_interval:
                    checkpoint.save(state, history)
        history.append(epoch_progress.finish(generator))
        _check_training_loop_losses(history)
        if checkpoint and processes.is_first:
            checkpoint.save(state, history)
        if processes.is_first:
            report_progress(progress, epoch + 1, epochs, "epochs")
    if average:
        average.copy_to_method()
    method.eval()
    return history


class _TrainingLoopEpoch:
    """Number of steps and sums of losses within an unfinished epoch.

    Attributes:
        generator_state: State of the generator that shuffles images, at the start of the epoch.
        steps: Number of finished optimizer steps.
        sums: Sums of loss and penalty over known targets, and the number of known targets.
    """

    def __init__(self, generator: torch.Generator):
        self._reset(generator)

    def _reset(self, generator: torch.Generator) -> None:
        self.generator_state, self.steps = generator.get_state(), 0
        self.sums = torch.zeros(3, dtype=torch.float64)

    def add_step(self, sums: Tensor) -> None:
        """Count one optimizer step, and add the sums of the step."""
        self.steps += 1
        self.sums += sums

    def finish(self, generator: torch.Generator) -> EpochResult:
        """Return the result of the epoch, and reset steps and sums.

        Raises:
            DataError: If no image with a known target could be decoded.
        """
        loss, penalty, count = self.sums.tolist()
        if not count:
            raise DataError(
                "At least one image with a known target must be decoded in an epoch; the decoding "
                "processes of all images were killed. Free memory, or use smaller images."
            )
        self._reset(generator)
        return EpochResult(loss / count, penalty / count)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _check_training_loop_losses(history: list[EpochResult]) -> None:
    """Check that loss and penalty of the last epoch are finite.

    Raises:
        ConfigError: If the last loss or penalty is infinite or NaN.
    """
    if not all(map(math.isfinite, history[-1])):
        raise ConfigError(
            f"The loss and the regularizer must be finite; got the loss {history[-1].loss} and the "
            f"regularizer {history[-1].penalty} in epoch {len(history)}. Use a smaller "
            "learning_rate, or a smaller regularizer_weight."
        )


def _training_loop_batches(
    source: BatchSource, generator: torch.Generator, skip: int, processes: TrainingProcesses
) -> Generator[Batch]:
    """Return the batches of an epoch, or the parts of this process if there are several."""
    if processes.exchanges:
        return source.batches(generator, skip, processes.part)
    return source.batches(generator, skip)


def _group_training_loop_batches(batches: Iterator[Batch], size: int) -> Iterator[list[Batch]]:
    """Yield the batches in groups of ``size``; the last group may be smaller.

    Batches without images are removed from their groups, except parts of batches, because the batch
    can have images in another process.
    """
    while group := list(islice(batches, size)):
        yield [batch for batch in group if batch.is_part or len(batch.targets)]


def _update_targets_in_training_loop(
    source: TargetUpdatingBatchSource, batches: list[Batch], scores: list[Tensor]
) -> None:
    for batch, batch_scores in zip(batches, scores, strict=True):
        source.update_targets(batch, batch_scores)
