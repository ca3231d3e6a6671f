"""Shuffled batches of items that worker processes compute with one random seed per item."""

import os
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

MAX_DEFAULT_WORKERS = 8


def shuffled_seeded_loader(
    load_item: Callable[[int, int], Any],
    n_items: int,
    *,
    batch_size: int,
    generator: torch.Generator,
    skip: int = 0,
    workers: int = 0,
    collate: Callable[[list[Any]], Any] | None = None,
) -> DataLoader[Any]:
    """Return a loader of one epoch in random order, with one random seed per item.

    The order and the seeds are sampled from ``generator`` before this function returns.

    Args:
        load_item: Function of a row number and a seed that returns one item.
        n_items: Number of items of an epoch.
        batch_size: Number of items per batch. The last batch may be smaller.
        generator: Random generator from which the order and the seeds are sampled.
        skip: Number of batches at the start of the epoch that are neither computed nor returned.
        workers: Number of worker processes. If 0, the items are computed in the main process.
        collate: Function from a list of items to a batch. If None, the default collation of PyTorch
            is used.
    """
    order = torch.randperm(n_items, generator=generator).tolist()
    seeds = torch.randint(2**62, (n_items,), generator=generator).tolist()
    rows_and_seeds = list(zip(order, seeds, strict=True))[skip * batch_size :]
    return DataLoader(
        _SeededItems(load_item, rows_and_seeds),
        batch_size=batch_size,
        num_workers=workers,
        collate_fn=collate,
        multiprocessing_context="fork" if workers else None,
        generator=torch.Generator(),  # a separate one: the loader must not advance the global one
    )


def seeded_loader_worker_count(workers: int | None) -> int:
    """Return ``workers``; if ``workers`` is None, return the number of CPU cores, at most 8."""
    return min(MAX_DEFAULT_WORKERS, os.cpu_count() or 1) if workers is None else workers


class _SeededItems(Dataset[Any]):
    """Items of one epoch, in the order of loading."""

    def __init__(self, load_item: Callable[[int, int], Any], rows_and_seeds: list[tuple[int, int]]):
        self._load_item, self._rows_and_seeds = load_item, rows_and_seeds

    def __len__(self) -> int:
        return len(self._rows_and_seeds)

    def __getitem__(self, index: int) -> Any:
        return self._load_item(*self._rows_and_seeds[index])
