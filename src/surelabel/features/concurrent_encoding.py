"""Encode several batches on a CPU concurrently, each in a thread without parallel operations.

If all threads of PyTorch compute the same batch, they wait for each other after each operation.
Each wait is long if a decoding process uses one of the cores. Threads that compute different
batches do not wait for each other.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import Barrier
from typing import TypeVar

import torch

from surelabel.encoders import Encoder
from surelabel.encoders.engines.thread_counts import MAX_CONCURRENT_CALLS

EncodingBatch = TypeVar("EncodingBatch")
BatchFeatures = TypeVar("BatchFeatures")

MAX_CONCURRENT_BATCHES = MAX_CONCURRENT_CALLS


def concurrent_batch_count(encoder: Encoder) -> int:
    """Return the number of batches that are encoded at once: one per thread of PyTorch, at most 4.

    On devices other than a CPU, the number is 1.
    """
    if encoder.device.type != "cpu":
        return 1
    return min(torch.get_num_threads(), MAX_CONCURRENT_BATCHES)


def encode_batches_concurrently(
    encode: Callable[[EncodingBatch], BatchFeatures],
    batches: Iterable[EncodingBatch],
    *,
    concurrency: int,
) -> Generator[tuple[EncodingBatch, BatchFeatures]]:
    """Yield each batch with its result, in the order of the batches.

    Batches are encoded in groups of ``concurrency``, while the batches of the next group are
    received. If the last group is smaller, its batches are encoded one after another with all
    threads. At most two groups are in memory.

    Args:
        encode: Function that encodes a batch. Several threads call the function at once.
        batches: Batches to encode.
        concurrency: Number of batches that are encoded at once, >= 1. If 1, no thread is started.
    """
    batches = iter(batches)
    group = list(islice(batches, concurrency))
    if concurrency > 1 and len(group) == concurrency:
        with _encoding_threads(concurrency) as executor:
            encoded: list[tuple[EncodingBatch, Future[BatchFeatures]]] = []
            while len(group) == concurrency:
                waiting, encoded = (
                    encoded,
                    [(batch, executor.submit(encode, batch)) for batch in group],
                )
                yield from ((batch, future.result()) for batch, future in waiting)
                del waiting
                group = list(islice(batches, concurrency))
            yield from ((batch, future.result()) for batch, future in encoded)
    while group:
        yield from ((batch, encode(batch)) for batch in group)
        group = list(islice(batches, concurrency))


@contextmanager
def _encoding_threads(count: int) -> Generator[ThreadPoolExecutor]:
    """Start threads, each with an equal share of the threads of PyTorch.

    The number of threads that the calling thread uses is the same before and after.
    """
    n_threads = torch.get_num_threads()
    all_started = Barrier(count + 1)

    def initialize() -> None:
        torch.get_num_threads()  # the first call in a thread would replace the number set before
        torch.set_num_threads(max(1, n_threads // count))
        all_started.wait()

    executor = ThreadPoolExecutor(count, "surelabel-encoding", initialize)
    try:
        for _ in range(count):
            executor.submit(int)  # starts a thread
        all_started.wait()
        torch.set_num_threads(n_threads)  # PyTorch also stores the number for new threads
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)
