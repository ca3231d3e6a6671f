"""Compute the gradients of one optimizer step, accumulated over batches that fit into memory."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.methods import Method, ScoresPairs, TrainsSeveralHeads
from surelabel.records import Features
from surelabel.training.batches import Batch
from surelabel.training.objective import Objective
from surelabel.training.training_memory import images_of_free_gpu_memory
from surelabel.training.training_processes import TrainingProcesses, split_training_batch

StepResult = tuple[Tensor, list[Tensor]]
BatchResult = tuple[Tensor, Tensor]
Result = TypeVar("Result")

REDUCED_PRECISION = (torch.float16, torch.bfloat16)


class GradientAccumulation:
    """Computation of the gradients of optimizer steps, in smaller parts if memory is exhausted.

    If the memory of a device is exhausted, the number of images of each forward pass is halved in
    all processes, and the step is repeated. The result remains the gradient of the whole batch. If
    losses or regularizers compare images, the scores of all forward passes are computed first,
    without gradients. The gradient of the objective with respect to the scores is then propagated
    through a second forward pass of each part. Batch normalization, and loss terms of internal
    quantities of the method, compare the images of one forward pass only.

    Source: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited
    Setup, section 3, for the gradients of several forward passes.

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
        self._pieces = 1  # largest number of forward passes of each batch
        self._has_measured_memory = False

    def compute(self, batches: Sequence[Batch], *position: int) -> StepResult:
        """Set the gradients of one optimizer step.

        Batches are weighted by the number of known targets. For an elementwise loss, the
        accumulated gradient equals the gradient of one batch with all images.

        Args:
            batches: Batches of the step. A batch is ignored if one of the processes could not
                decode any image of its part.
            position: Indices of the epoch and of the step.

        Returns:
            Tensor with the sums of loss and penalty over known targets and the number of known
            targets, and a list with the scores of each batch.

        Raises:
            InputError: If the memory is exhausted by one image.
        """
        counts = [self._processes.image_counts(batch) for batch in batches]
        pairs = [pair for pair in zip(batches, counts, strict=True) if min(pair[1])]
        random_state = torch.get_rng_state()
        if pairs and not self._has_measured_memory:
            self._divide_by_free_memory(*max(pairs, key=lambda pair: max(pair[1])))
            torch.set_rng_state(random_state)
        while True:
            result = self._try_step(pairs, position)
            if result is not None:
                return result
            largest = max(max(image_counts) for _, image_counts in pairs)
            self._halve(largest)
            torch.set_rng_state(random_state)

    def _divide_by_free_memory(self, batch: Batch, counts: Sequence[int]) -> None:
        """Choose the number of forward passes from the free memory, if the device is a GPU.

        All processes use the number of the process with the least free memory. If the result of a
        step depends on the number, the number is not changed until memory is exhausted.
        """
        self._has_measured_memory = True
        if self._processes.device.type != "cuda" or self._compares_in_forward_pass():
            return
        fitting = images_of_free_gpu_memory(
            lambda piece: self._forward(piece, (self._seed,)),
            batch,
            self._optimizer,
            self._processes.device,
        )
        images = min(self._processes.gather_numbers(fitting))
        self._pieces = -(-max(counts) // images)

    def _try_step(
        self, batches: Sequence[tuple[Batch, list[int]]], position: Sequence[int]
    ) -> StepResult | None:
        """Return the result of a step, or None if the memory of a process is exhausted."""
        self._optimizer.zero_grad()
        n_known = sum(self._known_count(batch) for batch, _ in batches)
        sums, scores = torch.zeros(3, dtype=torch.float64), list[Tensor]()
        for number, (batch, image_counts) in enumerate(batches):
            key = (self._seed, *position, number)
            result = self._add_gradients(batch, image_counts, n_known, key)
            if result is None:
                return None
            sums += result[0]
            scores.append(result[1])
        parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        self._processes.average_gradients(parameters)
        return sums, scores

    def _known_count(self, batch: Batch) -> int:
        """Return the number of known targets of a batch, in all processes."""
        count = int(batch.known.sum())
        return sum(self._processes.gather_numbers(count)) if batch.is_part else count

    def _add_gradients(
        self, batch: Batch, counts: Sequence[int], n_known: int, key: Sequence[int]
    ) -> BatchResult | None:
        """Add the gradient of a batch; return sums and scores, or None if memory is exhausted.

        Args:
            batch: Batch of this process.
            counts: Number of images of each part of the batch.
            n_known: Number of known targets of the step.
            key: Numbers that determine the random numbers of the forward passes.
        """
        if self._pieces == 1:
            return self._add_gradients_at_once(batch, counts, n_known, key)
        pieces = split_training_batch(batch, min(self._pieces, len(batch.targets)))
        is_sum = self._objective.is_mean_over_known and batch.weights is None
        if not batch.is_part and (is_sum or self._compares_in_forward_pass()):
            return self._if_memory_suffices(lambda: self._add_each(pieces, n_known, key))
        return self._add_gradients_of_scores(batch, pieces, counts, n_known, key)

    def _add_gradients_at_once(
        self, batch: Batch, counts: Sequence[int], n_known: int, key: Sequence[int]
    ) -> BatchResult | None:
        """Add the gradient of a batch with one forward pass."""
        heads = self._if_memory_suffices(lambda: self._forward(batch, (*key, 0)))
        if heads is None:
            return None
        all_heads, all_images = self._gather(heads, batch, counts)
        return self._if_memory_suffices(lambda: self._backward(all_heads, all_images, n_known))

    def _add_each(self, pieces: Sequence[Batch], n_known: int, key: Sequence[int]) -> BatchResult:
        """Add the gradients of the parts of a batch, with a separate objective for each part."""
        sums, scores = torch.zeros(3), list[Tensor]()
        for number, piece in enumerate(pieces):
            heads = self._forward(piece, (*key, number))
            piece_sums, piece_scores = self._backward(heads, self._objective_batch(piece), n_known)
            sums += piece_sums
            scores.append(piece_scores)
        return sums, torch.cat(scores)

    def _add_gradients_of_scores(
        self,
        batch: Batch,
        pieces: Sequence[Batch],
        counts: Sequence[int],
        n_known: int,
        key: Sequence[int],
    ) -> BatchResult | None:
        """Add the gradient of the objective of a whole batch, with two passes of each part."""
        states = list[Tensor]()
        heads = self._if_memory_suffices(lambda: self._score_without_graph(pieces, key, states))
        if heads is None:
            return None
        heads.requires_grad_()
        all_heads, all_images = self._gather(heads, batch, counts)
        result = self._if_memory_suffices(lambda: self._backward(all_heads, all_images, n_known))
        if result is None:
            return None
        gradient = torch.zeros_like(heads) if heads.grad is None else heads.grad
        gradients = gradient.split([len(piece.targets) for piece in pieces], dim=1)

        def propagate() -> bool:
            for number, (piece, state) in enumerate(zip(pieces, states, strict=True)):
                with torch.random.fork_rng(devices=[]):
                    torch.set_rng_state(state)
                    self._forward(piece, (*key, number)).backward(gradients[number])
            return True

        return result if self._if_memory_suffices(propagate) else None

    @torch.no_grad()
    def _score_without_graph(
        self, pieces: Sequence[Batch], key: Sequence[int], states: list[Tensor]
    ) -> Tensor:
        """Return the scores of all parts of a batch; append the random state of each part."""
        heads = list[Tensor]()
        for number, piece in enumerate(pieces):
            states.append(torch.get_rng_state())
            heads.append(self._forward(piece, (*key, number)))
        return torch.cat(heads, 1)

    def _forward(self, batch: Batch, key: Sequence[int]) -> Tensor:
        """Return the scores of h heads, ``(h, n, c)``, in float32 or a higher precision."""
        batch = self._processes.to_device(batch)
        with self._processes.forward_pass(*key):
            heads = _training_scores_of_heads(self._method, batch)
        return heads.float() if heads.dtype in REDUCED_PRECISION else heads

    def _gather(self, heads: Tensor, batch: Batch, counts: Sequence[int]) -> tuple[Tensor, Batch]:
        """Return the scores and the batch of all processes, without dense features."""
        batch = self._objective_batch(batch)
        if not batch.is_part:
            return heads, batch
        gathered = self._processes.gather_scores(heads, counts)
        return gathered, self._processes.gather_batch(batch, counts)

    def _objective_batch(self, batch: Batch) -> Batch:
        """Return a batch on the device, without the dense features that only the method needs."""
        texts = batch.texts and Features(batch.texts.pooled)
        features = Features(batch.features.pooled)
        return self._processes.to_device(replace(batch, features=features, texts=texts))

    def _backward(self, heads: Tensor, batch: Batch, n_known: int) -> BatchResult:
        """Add the gradient of the batch of all processes, with the scores of h heads."""
        count = float(batch.known.sum())
        loss, penalty = self._objective.mean_over_heads(heads, batch)
        total = loss if penalty is None else loss + penalty
        (total * (count / max(n_known, 1))).backward()
        penalty_value = 0.0 if penalty is None else penalty.item()
        sums = torch.tensor([count * loss.item(), count * penalty_value, count])
        return sums, heads.detach().mean(0)

    def _if_memory_suffices(self, compute: Callable[[], Result]) -> Result | None:
        """Return the result of a function, or None if the memory of a process is exhausted.

        The processes wait for each other, so that all of them repeat the step.
        """
        result = None
        with suppress(torch.OutOfMemoryError):
            result = compute()
        return None if self._processes.any(result is None) else result

    def _compares_in_forward_pass(self) -> bool:
        """Return whether a forward pass has terms that depend on all its images."""
        modules = self._method.modules()
        has_batch_norm = any(
            isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training
            for module in modules
        )
        return has_batch_norm or self._objective.method is not None

    def _halve(self, n_images: int) -> None:
        """Halve the number of images per forward pass, of at most ``n_images`` images."""
        if self._pieces >= n_images:
            raise InputError(
                "Training needs memory for at least one image at a time; the memory of the device "
                "is exhausted. Free memory, or use a smaller encoder or image size."
            )
        self._pieces *= 2
        size = -(-n_images // self._pieces)
        change = ""
        if self._compares_in_forward_pass():
            change = (
                " Batch normalization or additional losses of the method then use fewer images."
            )
        warnings.warn(
            f"The memory of the device is exhausted; training continues with at most "
            f"{format_count(size, 'image')} per forward pass.{change}",
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
