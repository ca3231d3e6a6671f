"""Exchange batches, scores and gradients between the processes of one training run.

Each process computes the scores of its part of a batch. The scores of all parts are gathered, so
that each process computes the objective of the whole batch. Therefore, losses and regularizers that
compare images do not depend on the number of processes. The gradient of the gathered scores is
propagated to the part of the process, multiplied by the number of processes. The mean of the
gradients over the processes is then the gradient of the whole batch: the scores contribute the sum
over the parts, and terms without scores, such as terms of learned prompts, are equal in all
processes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surelabel.records import Features
from surelabel.training.batches import WHOLE_BATCH, Batch, BatchPart
from surelabel.training.feature_batches import select_feature_batch_rows


@dataclass(frozen=True)
class TrainingProcesses:
    """Processes of a training run, each of which calls the same methods in the same order.

    Attributes:
        fabric: ``lightning_fabric.Fabric`` of the process, after its launch. If None, there is one
            process, and nothing is exchanged.
    """

    fabric: Any = None

    @property
    def part(self) -> BatchPart:
        """Return the part of each batch that this process computes."""
        if self.fabric is None:
            return WHOLE_BATCH
        return BatchPart(self.fabric.global_rank, self.fabric.world_size)

    @property
    def is_first(self) -> bool:
        """Return whether this process writes checkpoints and reports progress."""
        return self.part.index == 0

    @property
    def exchanges(self) -> bool:
        """Return whether there are several processes."""
        return self.part.count > 1

    @property
    def device(self) -> torch.device:
        """Return the device of this process, which is the CPU without Fabric."""
        return torch.device("cpu") if self.fabric is None else self.fabric.device

    def any(self, value: bool) -> bool:
        """Return whether the value is True in at least one process."""
        return max(self.gather_numbers(int(value))) > 0

    def gather_numbers(self, number: int) -> list[int]:
        """Return the numbers of all processes, in the order of the processes."""
        if not self.exchanges:
            return [number]
        ones = [1] * self.part.count
        own = torch.tensor([number], device=self.fabric.device)
        return [int(value) for value in self._gather_rows(own, ones).tolist()]

    def image_counts(self, batch: Batch) -> list[int]:
        """Return the number of images of each part, or one number if the batch is not divided."""
        return self.gather_numbers(len(batch.targets)) if batch.is_part else [len(batch.targets)]

    def gather_batch(self, batch: Batch, counts: Sequence[int]) -> Batch:
        """Return the batch of all processes, without dense features.

        Args:
            batch: Batch of this process.
            counts: Number of images of each part; see ``image_counts``.
        """
        if not batch.is_part:
            return batch
        pooled = batch.features.pooled
        columns = [batch.targets, batch.known, pooled]
        columns += [] if batch.weights is None else [batch.weights[:, None]]
        gathered = self._gather_rows(torch.cat([column.float() for column in columns], 1), counts)
        widths = [column.shape[1] for column in columns]
        targets, known, pooled, *weights = gathered.split(widths, dim=1)
        return Batch(
            Features(pooled),
            targets.to(batch.targets.dtype),
            known > 0,
            weights[0][:, 0] if weights else None,
            batch.texts,
        )

    def gather_scores(self, heads: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the scores of all processes, ``(h, n, c)``, with a gradient for this process.

        Args:
            heads: Scores of the part of this process, ``(h, n_part, c)``.
            counts: Number of images of each part; see ``image_counts``.
        """
        scores: Tensor = _GatheredTrainingScores.apply(heads, self, counts)
        return scores

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients by their means over the processes."""
        if not self.exchanges:
            return
        for gradient in (p.grad for p in parameters if p.grad is not None):
            gradient.copy_(self.fabric.all_reduce(gradient, reduce_op="mean"))

    @contextmanager
    def forward_pass(self, *key: int) -> Iterator[None]:
        """Run a forward pass in the precision of the device, with separate random numbers.

        With several processes, the random numbers of a forward pass, for example of dropout, depend
        only on ``key`` and on the process. The random numbers of regularizers are equal in all
        processes.
        """
        if self.fabric is None:
            yield
            return
        devices = [self.fabric.device] if self.fabric.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), self.fabric.autocast():
            state = np.random.SeedSequence([*key, self.part.index]).generate_state(2, np.uint32)
            torch.manual_seed(int(state[0]) << 32 | int(state[1]))
            yield

    def to_device(self, batch: Batch) -> Batch:
        """Return the batch on the device of the process."""
        if self.fabric is None or self.fabric.device.type == "cpu":
            return batch
        moved = self.fabric.to_device(vars(batch) | {"features": None, "texts": None})
        features = features_on_training_device(batch.features, self.fabric.device)
        texts = batch.texts and features_on_training_device(batch.texts, self.fabric.device)
        return replace(batch, **moved | {"features": features, "texts": texts})

    def _gather_rows(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all processes, ``(n, …)``, as the sum of arrays with zeros."""
        start = sum(counts[: self.part.index])
        gathered = rows.new_zeros(sum(counts), *rows.shape[1:])
        gathered[start : start + len(rows)] = rows
        result: Tensor = self.fabric.all_reduce(gathered, reduce_op="sum")
        return result


class _GatheredTrainingScores(torch.autograd.Function):
    """Scores of all processes, with the gradient for this process times the number of processes."""

    @staticmethod
    def forward(
        ctx: Any, heads: Tensor, processes: TrainingProcesses, counts: Sequence[int]
    ) -> Tensor:
        part = processes.part
        start = sum(counts[: part.index])
        ctx.rows, ctx.factor = slice(start, start + counts[part.index]), part.count
        rows = heads.detach().transpose(0, 1).contiguous()
        return processes._gather_rows(rows, counts).transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        return gradients[0][:, ctx.rows] * ctx.factor, None, None


def features_on_training_device(features: Features, device: torch.device) -> Features:
    """Return features of all kinds on a device."""
    tensors: dict[str, Any] = {
        name: value.to(device) for name, value in vars(features).items() if torch.is_tensor(value)
    }
    layers = {key: tokens.to(device) for key, tokens in (features.layers or {}).items()}
    return replace(features, **tensors, layers=layers or features.layers)


def split_training_batch(batch: Batch, count: int) -> list[Batch]:
    """Divide a batch into ``count`` batches, each with some of its images and all its captions."""
    if count == 1:
        return [batch]
    every_row = torch.arange(len(batch.targets), device=batch.targets.device)
    return [select_training_batch_rows(batch, rows) for rows in every_row.tensor_split(count)]


def select_training_batch_rows(batch: Batch, rows: Tensor) -> Batch:
    """Return a batch with the images in ``rows``, and all captions."""
    return Batch(
        select_feature_batch_rows(batch.features, rows),
        batch.targets[rows],
        batch.known[rows],
        None if batch.weights is None else batch.weights[rows],
        batch.texts,
        batch.is_part,
    )
