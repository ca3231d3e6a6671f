"""Buffer new features, and write the features to the cache at intervals."""

import time
from collections.abc import Mapping

from surelabel.features.cache import FeatureCache, Float16Array

MAX_SECONDS = 10.0  # between two writes; limits the number of lost features after a kill
MAX_BYTES = 64 * 2**20  # limits the memory of features that are not written yet


class CacheWriteBuffer:
    """New features of one encoder and one kind that are not written to the cache yet.

    When features are added, the buffer is written if the last write was ``MAX_SECONDS`` ago, or if
    the buffer contains ``MAX_BYTES``. Each write creates at least one file, so few writes are more
    efficient than many.

    Args:
        cache: Cache of the features. If None, features are not stored.
        fingerprint: Fingerprint of the encoder.
        kind: Kind of features, such as ``images`` or ``patches``.
    """

    def __init__(self, cache: FeatureCache | None, fingerprint: str, kind: str):
        self._cache, self._fingerprint, self._kind = cache, fingerprint, kind
        self._arrays: dict[str, Float16Array] = {}
        self._n_bytes = 0
        self._last_write = time.monotonic()

    def add(self, arrays: Mapping[str, Float16Array]) -> None:
        """Add arrays by their content keys, and write the buffer if a limit is reached."""
        if self._cache is None:
            return
        self._arrays |= arrays
        self._n_bytes += sum(array.nbytes for array in arrays.values())
        if self._n_bytes >= MAX_BYTES or time.monotonic() - self._last_write >= MAX_SECONDS:
            self.write()

    def write(self) -> None:
        """Write all features of the buffer to the cache."""
        if self._cache and self._arrays:
            self._cache.put(self._fingerprint, self._kind, self._arrays)
        self._arrays, self._n_bytes = {}, 0
        self._last_write = time.monotonic()
