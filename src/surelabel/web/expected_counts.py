"""Compute the expected number of images with each label, the sum of the stored probabilities."""

from collections.abc import Sequence
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
        self._lock, self._is_finished, self._stop = Lock(), Event(), Event()
        self._thread: Thread | None = None
        self._counts: Array | None = None
        self._error: DataError | None = None

    def wait(self, seconds: float) -> Array | None:
        """Return the expected numbers, ``(c,)``, or None if they are not computed in time.

        If the computation was stopped, the result is None as well.

        Args:
            seconds: Maximum waiting time in seconds.

        Raises:
            DataError: If the data of a label are damaged on disk.
        """
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._compute, daemon=True)
                self._thread.start()
        self._is_finished.wait(seconds)
        if self._error is not None:
            raise self._error
        return self._counts

    def stop(self) -> None:
        """Stop the computation of the expected numbers."""
        self._stop.set()

    def _compute(self) -> None:
        try:
            self._counts = sum_label_probabilities(self._shards, self._n_labels, self._stop)
        except DataError as error:
            self._error = error
        finally:
            self._is_finished.set()
