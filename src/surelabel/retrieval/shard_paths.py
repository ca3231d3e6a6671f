"""Read the stored paths of some rows of a shard, without reading the paths of all rows."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surelabel.retrieval.shard_files import ShardFiles

CACHED_GROUPS = 1 << 9  # row groups whose paths stay in memory, about 50 bytes per row


@dataclass(frozen=True)
class ShardPaths:
    """Stored paths of the rows of a shard, with a cache of the row groups that were read last.

    Attributes:
        files: Files of the shard.
    """

    files: ShardFiles
    _groups: OrderedDict[int, pa.StringArray] = field(default_factory=OrderedDict, repr=False)

    def of_rows(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> list[str]:
        """Return the stored paths of some rows, in the order of ``rows``.

        Args:
            rows: Row numbers, each in [0, n).

        Raises:
            DataError: If the table of the paths is damaged.
        """
        row_numbers = np.asarray(rows, np.int64)
        ends = self.files.path_group_ends
        groups = np.searchsorted(ends, row_numbers, side="right")
        local_rows = row_numbers - np.append(0, ends)[groups]
        order = np.argsort(groups, kind="stable")  # each row group is read once
        paths, last_group, group_paths = [""] * len(row_numbers), -1, pa.array([], pa.string())
        places = zip(
            order.tolist(), groups[order].tolist(), local_rows[order].tolist(), strict=True
        )
        for place, group, row in places:
            if group != last_group:
                group_paths, last_group = self._paths_of_group(group), group
            paths[place] = group_paths[row].as_py()
        return paths

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including removed rows."""
        return self.files.layout.n_rows

    def groups(self) -> Iterator[pa.StringArray]:
        """Yield the stored paths of all rows in row groups, in row order.

        Raises:
            DataError: If the table of the paths is damaged.
        """
        for group in range(len(self.files.path_group_ends)):
            yield self._paths_of_group(group)

    def _paths_of_group(self, group: int) -> pa.StringArray:
        paths = self._groups.pop(group, None)
        if paths is None:
            paths = self.files.read_path_group(group).combine_chunks()
        self._groups[group] = paths
        while len(self._groups) > CACHED_GROUPS:
            self._groups.popitem(last=False)
        return paths
