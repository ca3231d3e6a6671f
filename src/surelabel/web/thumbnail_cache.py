"""Cache encoded images of a server in memory, up to a number of bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

DEFAULT_CACHE_BYTES = 64 * 2**20


class ThumbnailCache:
    """Cache of thumbnails and heat maps, which removes the least recently used contents (LRU).

    Several threads can use the cache at the same time.

    Args:
        max_bytes: Maximum number of bytes of all contents.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._contents: OrderedDict[Hashable, bytes] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._contents)

    @property
    def n_bytes(self) -> int:
        """Return the number of bytes of all contents."""
        return self._n_bytes

    def get(self, key: Hashable) -> bytes | None:
        """Return the content of a key, or None if the cache does not contain the key."""
        with self._lock:
            content = self._contents.get(key)
            if content is not None:
                self._contents.move_to_end(key)
            return content

    def put(self, key: Hashable, content: bytes) -> None:
        """Add a content, and remove the least recently used contents until all fit.

        A content of more than ``max_bytes`` bytes empties the cache, and is not cached.
        """
        with self._lock:
            self._n_bytes += len(content) - len(self._contents.pop(key, b""))
            self._contents[key] = content
            while self._n_bytes > self.max_bytes:
                _, removed = self._contents.popitem(last=False)
                self._n_bytes -= len(removed)
