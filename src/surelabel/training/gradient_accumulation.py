"""Gradients of one optimizer step, accumulated over batches that fit into memory."""

import warnings
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.methods import Method, ScoresPairs, TrainsSeveralHeads
from surelabel.training.batches import Batch
from surelabel.training.objective import Objective
from surelabel.training.training_processes import TrainingProcesses, split_training_batch

StepResult = tuple[Tensor, list[Tensor]]


class GradientAccumulation:
    """Computation of the gradients of optimizer steps; if memory is exhausted, in smaller parts.

    If the memory of a device is exhausted, the number of images of each forward pass is halved,
    and the step is repeated. Losses and regularizers that compare images then compare those of
    one forward pass.

    Args:
        method: Module that computes scores from features.
        objective: Loss and regularizers.
        optimizer: Optimizer whose gradients are computed.
        processes: Processes of the run, each with its part of the batches.
        seed: Seed of the random numbers of forward passes, with several processes.
    """

    def __init__(
        self,
        method: Method,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        processes: TrainingProcesses,
        seed: int,
    ):
        self._method, self._objective, self._optimizer = method, objective, optimizer
        self._processes, self._seed = processes, seed
        self._pieces = 1  # number of forward passes of each batch

    def compute(self, batches: Sequence[Batch], *position: int) -> StepResult:
        """Set the gradients of one optimizer step.

        Batches are weighted by the number of known targets. For an elementwise loss, the
        accumulated gradient equals the gradient of one batch with all images.

        Args:
            batches: Batches of the step. A batch is left out if a process has none of its images,
                because they could not be decoded.
            position: Numbers of the epoch and of the step.

        Returns:
            Sums of loss and penalty over known targets with the number of known targets, and the
            scores of each batch.

        Raises:
            InputError: If the memory is exhausted by one image.
        """
        counts = [self._processes.image_counts(batch) for batch in batches]
        pairs = [pair for pair in zip(batches, counts, strict=True) if min(pair[1])]
        random_state = torch.get_rng_state()
        while True:
            result = self._try_step(pairs, position)
            if result is not None:
                return result
            largest = max(max(image_counts) for _, image_counts in pairs)
            self._halve(largest)
            torch.set_rng_state(random_state)

    def _try_step(
        self, batches: Sequence[tuple[Batch, list[int]]], position: Sequence[int]
    ) -> StepResult | None:
        """Return the result of a step, or None if the memory of a process is exhausted."""
        self._optimizer.zero_grad()
        known = [self._processes.gather_batch(batch, counts).known for batch, counts in batches]
        n_known = sum(float(mask.sum()) for mask in known)
        sums, scores = torch.zeros(3, dtype=torch.float64), []
        for number, (batch, image_counts) in enumerate(batches):
            pieces = split_training_batch(batch, min(self._pieces, *image_counts))
            batch_scores = list[Tensor]()
            for piece in pieces:
                key = (self._seed, *position, number, len(batch_scores))
                result = self._add_gradients(piece, n_known, key)
                if result is None:
                    return None
                sums += result[0]
                batch_scores.append(result[1])
            scores.append(torch.cat(batch_scores) if len(pieces) > 1 else batch_scores[0])
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        self._processes.average_gradients(parameters)
        return sums, scores

    def _add_gradients(
        self, batch: Batch, n_known: float, key: Sequence[int]
    ) -> tuple[Tensor, Tensor] | None:
        """Add the gradient of a batch; return its sums and scores, or None without memory."""
        heads, result = None, None
        with suppress(torch.OutOfMemoryError):  # the other processes wait for this one
            batch = self._processes.to_device(batch)
            with self._processes.forward_pass(*key):
                heads = _training_scores_of_heads(self._method, batch)
        if self._processes.any(heads is None):
            return None
        assert heads is not None
        if batch.is_part:
            counts = self._processes.image_counts(batch)
            heads = self._processes.gather_scores(heads.float(), counts)
            batch = self._processes.gather_batch(batch, counts)
        with suppress(torch.OutOfMemoryError):
            result = self._backward(heads, batch, n_known)
        return None if self._processes.any(result is None) else result

    def _backward(self, heads: Tensor, batch: Batch, n_known: float) -> tuple[Tensor, Tensor]:
        """Add the gradient of the batch of all processes, with the scores of h heads."""
        count = float(batch.known.sum())
        loss, penalty = self._objective.mean_over_heads(heads, batch)
        total = loss if penalty is None else loss + penalty
        (total * (count / max(n_known, 1))).backward()
        penalty_value = 0.0 if penalty is None else penalty.item()
        sums = torch.tensor([count * loss.item(), count * penalty_value, count])
        return sums, heads.detach().mean(0)

    def _halve(self, n_images: int) -> None:
        """Halve the number of images per forward pass, of at most ``n_images`` images."""
        if self._pieces >= n_images:
            raise InputError(
                "Training needs memory for at least one image at a time; the memory of the device "
                "is exhausted. Free memory, or use a smaller encoder or image size."
            )
        self._pieces *= 2
        size = -(-n_images // self._pieces)
        warnings.warn(
            f"The memory of the device is exhausted; training continues with at most "
            f"{format_count(size, 'image')} per forward pass. Losses that compare images compare "
            "fewer.",
            stacklevel=2,
        )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _training_scores_of_heads(method: Method, batch: Batch) -> Tensor:
    """Return the scores ``(h, n, c)`` of all h training heads, for n images and c labels.

    Most methods have one head. In a batch of pairs, c is the number of captions.
    """
    if batch.texts is not None:
        assert isinstance(method, ScoresPairs)  # by its contract
        return method.training_pair_scores(batch.features, batch.texts)[None]
    if isinstance(method, TrainsSeveralHeads):
        return method.training_scores(batch.features, batch.targets, batch.known)
    return method(batch.features)[None]
