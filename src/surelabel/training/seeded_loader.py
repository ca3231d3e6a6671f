"""Load shuffled batches of items, which worker processes compute with one random seed per item."""

import math
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Generic, TypeVar

import torch

from surelabel.features.decoding_workers import decode_in_workers
from surelabel.training.batches import WHOLE_BATCH, BatchPart

Item = TypeVar("Item")

MAX_DEFAULT_WORKERS = 8


class SeededLoader(Generic[Item]):
    """Loader of one item per image, in random order, with one random seed per item.

    If the worker processes of an item are killed, for example because the memory is exhausted, the
    item is computed a second time. If the processes are killed again, the item is removed from its
    batch. The other batches are not changed. The item is computed again in the next epoch, so that
    an epoch does not depend on previous epochs.

    Args:
        load_item: Function of a row number and a seed that decodes images and returns an item. The
            item must be picklable and must not contain tensors.
        paths_of_item: Function of a row number and a seed that returns the paths of the images that
            ``load_item`` decodes.
        n_items: Number of items of an epoch.
        batch_size: Number of items per batch. The last batch may be smaller.
        workers: Number of worker processes. If None, there is one process per CPU core, at most 8.
            If 0, the items are computed in the main process.
    """

    def __init__(
        self,
        load_item: Callable[[int, int], Item],
        paths_of_item: Callable[[int, int], Sequence[str]],
        n_items: int,
        *,
        batch_size: int,
        workers: int | None,
    ):
        self._load_item, self._paths_of_item = load_item, paths_of_item
        self._n_items, self._batch_size = n_items, batch_size
        default_workers = min(MAX_DEFAULT_WORKERS, os.cpu_count() or 1)
        self._workers = default_workers if workers is None else workers
        self._rows_with_warning = set[int]()

    def batches(
        self, generator: torch.Generator, skip: int = 0, part: BatchPart = WHOLE_BATCH
    ) -> Generator[tuple[list[Item], bool]]:
        """Yield the batches of one epoch, except the first ``skip`` batches.

        Each batch has a flag that states whether it is only the part of one of several processes.
        The order and the seeds are sampled from ``generator`` before the first batch is computed.
        A batch is empty if all its items are removed. A warning with the path of the image is
        issued when an item of the image is removed for the first time.
        """
        order = torch.randperm(self._n_items, generator=generator).tolist()
        seeds = torch.randint(2**62, (self._n_items,), generator=generator).tolist()
        tasks, size = list(zip(order, seeds, strict=True)), self._batch_size
        batches = [tasks[start : start + size] for start in range(skip * size, len(tasks), size)]
        parts = [batch[part.rows(len(batch))] for batch in batches]
        items = decode_in_workers(
            self._load,
            [task for batch_part in parts for task in batch_part],
            workers=self._workers,
            max_pending=2 * (self._batch_size + self._workers),
            message_of_killed=self._warn_of_killed,
        )
        with closing(items):
            for batch, batch_part in zip(batches, parts, strict=True):
                decoded = [item for item in islice(items, len(batch_part)) if item is not None]
                yield decoded, part.is_divided(len(batch))

    def __len__(self) -> int:
        return math.ceil(self._n_items / self._batch_size)

    def _load(self, row_and_seed: tuple[int, int]) -> Iterator[Item | None]:
        yield self._load_item(*row_and_seed)

    def _warn_of_killed(self, row_and_seed: tuple[int, int], reason: str) -> None:
        row, seed = row_and_seed
        if row not in self._rows_with_warning:
            self._rows_with_warning.add(row)
            path, *others = self._paths_of_item(row, seed)
            with_others = f" (with {', '.join(others)})" if others else ""
            warnings.warn(
                f"{path}{with_others} is left out of this epoch, and of each later epoch in which "
                f"decoding fails again: {reason}. Free memory, or remove the image.",
                stacklevel=2,
            )
