"""Compute the expected number of images with each label, the sum of the stored probabilities."""

from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from threading import Event, Lock, Thread

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.errors import DataError
from surelabel.retrieval.shards import Shard

BLOCK_ROWS = 1 << 17  # number of log-odds that are converted to probabilities at once


def sum_label_probabilities(shards: Sequence[Shard], n_labels: int, stop: Event) -> Array | None:
    """Return the sum of the probabilities of each label over all images, ``(c,)``.

    Args:
        shards: Shards of an index.
        n_labels: Number of labels, c.
        stop: Event that ends the computation.

    Returns:
        The sums, or None if ``stop`` was set.

    Raises:
        DataError: If the data of a label are damaged on disk.
    """
    sums = np.zeros(n_labels)
    for shard in shards:
        for column in range(n_labels):
            shard.mapped_files.verify_checksums([column])
            for start in range(0, shard.n_rows, BLOCK_ROWS):
                if stop.is_set():
                    return None
                rows = slice(start, min(start + BLOCK_ROWS, shard.n_rows))
                logits = shard.label_table.logits(column, rows)
                if shard.is_active is not None:
                    logits = logits[shard.is_active[rows]]
                sums[column] += expit(logits).sum(dtype=np.float64)
    return sums


class ExpectedCounts:
    """Expected number of images with each label of one revision of an index, computed once.

    The computation begins at the first use, in a thread, so that no request waits for all labels of
    a large index.

    Args:
        shards: Shards of the index.
        n_labels: Number of labels, c.
    """

    def __init__(self, shards: Sequence[Shard], n_labels: int) -> None:
        self._shards, self._n_labels = shards, n_labels
        self._lock, self._stop = Lock(), Event()
        self._sums: Future[Array | None] | None = None  # None before the first use

    def wait(self, seconds: float) -> Array | None:
        """Return the expected numbers, ``(c,)``, or None if they are not computed in time.

        If the computation was stopped, the result is None as well.

        Args:
            seconds: Maximum waiting time in seconds.

        Raises:
            DataError: If the data of a label are damaged on disk, or the computation failed for
                another reason. In the second case, the next call starts the computation again.
        """
        with self._lock:
            if self._sums is None:
                started: Future[Array | None] = Future()
                Thread(target=self._compute, args=(started,), daemon=True).start()
                self._sums = started
            sums = self._sums
        if not wait_for_futures([sums], seconds).done:
            return None
        error = sums.exception()
        if error is None or isinstance(error, DataError):
            return sums.result()
        with self._lock:
            if self._sums is sums:
                self._sums = None
        raise DataError(
            f"The expected numbers of images were not computed ({type(error).__name__}); see the "
            "standard error of the server. Try again."
        ) from error

    def stop(self) -> None:
        """Stop the computation of the expected numbers."""
        self._stop.set()

    def _compute(self, sums: "Future[Array | None]") -> None:
        try:
            sums.set_result(sum_label_probabilities(self._shards, self._n_labels, self._stop))
        except BaseException as error:
            sums.set_exception(error)
            if not isinstance(error, DataError):
                raise  # Python prints the error of a thread
