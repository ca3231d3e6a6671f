"""Compute and cache masks of the rows of a shard whose stored path matches a pattern."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.retrieval.label_table import RowMask
from surelabel.retrieval.shard_paths import ShardPaths

CACHED_PATTERNS = 8  # patterns whose masks stay in memory, with one bit per row each


@dataclass(frozen=True)
class PathMasks:
    """Masks of the patterns that were searched last in an opened shard, whose files do not change.

    Several threads can compute masks at the same time.

    Attributes:
        paths: Stored paths of the shard.
    """

    paths: ShardPaths
    _masks: OrderedDict[tuple[str, str], npt.NDArray[np.uint8]] = field(
        default_factory=OrderedDict, repr=False
    )
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def of_pattern(self, pattern: str, removed_prefix: str = "") -> RowMask:
        """Return a mask of the rows whose stored path matches a pattern, ``(n,)``, ignoring case.

        Removed rows are included.

        Args:
            pattern: Pattern of the SQL operator ``LIKE``, with ``\\`` before literal wildcards.
            removed_prefix: Prefix that is removed from a stored path before the comparison.

        Raises:
            DataError: If the table of the paths is damaged.
        """
        key = (pattern, removed_prefix)
        with self._lock:
            packed = self._masks.get(key)
        if packed is None:
            packed = np.packbits(self._match(pattern, removed_prefix))
        with self._lock:
            self._masks[key] = packed
            self._masks.move_to_end(key)
            while len(self._masks) > CACHED_PATTERNS:
                self._masks.popitem(last=False)
        return np.unpackbits(packed, count=self.paths.n_rows).view(np.bool_)

    def _match(self, pattern: str, removed_prefix: str) -> RowMask:
        parts = [np.empty(0, np.bool_)]
        for paths in self.paths.groups():
            if removed_prefix:
                relative = pc.utf8_slice_codeunits(paths, len(removed_prefix))
                paths = pc.if_else(pc.starts_with(paths, removed_prefix), relative, paths)
            matches: pa.BooleanArray = pc.match_like(paths, pattern, ignore_case=True)
            parts.append(matches.to_numpy(zero_copy_only=False))
        return np.concatenate(parts)
