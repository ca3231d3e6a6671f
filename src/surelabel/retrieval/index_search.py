"""Exact search of one or several indexes, whose results are merged as those of one index."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np

from surelabel.errors import DataError, InputError
from surelabel.retrieval.conjunction_search import (
    ConjunctionSearchRows,
    Floats,
    merge_conjunction_search_rows,
)
from surelabel.retrieval.hits import Hit, HitList
from surelabel.retrieval.image_overlap import PathHashes, hash_paths_of_index
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import RowNumbers
from surelabel.retrieval.query import Query, query_to_columns
from surelabel.retrieval.search_limits import FIRST_ROWS, SearchLimits
from surelabel.retrieval.shard_search import best_rows_of_shards, hits_of_shards
from surelabel.retrieval.shards import Shard


@dataclass(frozen=True)
class IndexDescription:
    """Description of an index, from which it is decided whether indexes can be searched as one.

    Attributes:
        folder: Folder of the index.
        names: Label names, length c.
        model: Fingerprint of the recognizer.
        calibration: Description of the calibration of the log-odds.
        n_images: Number of images.
        n_rows: Number of rows, including those of removed images.
    """

    folder: str
    names: tuple[str, ...]
    model: str
    calibration: str
    n_images: int
    n_rows: int


@dataclass(frozen=True)
class IndexSearcher:
    """Opened index, which returns its best rows, and the images of some rows.

    Attributes:
        names: Label names, length c.
        shards: Shards of the index, in row order.
        root: Root folder of the stored paths.
    """

    names: Sequence[str]
    shards: Sequence[Shard]
    root: IndexRoot

    def best_rows(self, query: Query, k: int) -> ConjunctionSearchRows:
        """Return the ``k`` rows with the highest probability; see ``Index.search``."""
        return best_rows_of_shards(self.shards, query_to_columns(query, self.names), k)

    def hits(self, query: Query, rows: RowNumbers, scores: Floats) -> list[Hit]:
        """Return the images of some rows.

        Args:
            query: Query of the search.
            rows: Row numbers.
            scores: Log probability that each image matches the query.
        """
        literals = query_to_columns(query, self.names)
        label_names = {column: self.names[column] for column, _ in literals}
        return hits_of_shards(self.shards, label_names, self.root, rows, scores)

    def path_hashes(self) -> PathHashes:
        """Return a hash of the absolute path of each image, int64, ``(n,)``."""
        blocks = [hash_paths_of_index(paths) for paths in self._path_blocks()]
        return np.concatenate([np.empty(0, np.int64), *blocks])

    def paths_with_hashes(self, hashes: PathHashes) -> list[str]:
        """Return the absolute paths of the images whose hash is one of ``hashes``."""
        return [
            paths[row]
            for paths in self._path_blocks()
            for row in np.flatnonzero(np.isin(hash_paths_of_index(paths), hashes)).tolist()
        ]

    def _path_blocks(self) -> Iterator[list[str]]:
        """Yield the absolute paths of the images in blocks, in row order."""
        for shard in self.shards:
            for paths in shard.active_path_blocks():
                yield list(map(self.root.resolve, paths))


CallSearchers = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]


class SearchableIndex(Protocol):
    """Opened index."""

    @property
    def searcher(self) -> IndexSearcher:
        """Object that searches the index as it is now."""


def call_index_searchers(indexes: Sequence[SearchableIndex]) -> CallSearchers:
    """Return a function that calls a method of the searcher of each index, one after the other.

    Args:
        indexes: Opened indexes.
    """

    def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        pairs = zip(indexes, arguments, strict=True)
        return [getattr(index.searcher, method)(*values) for index, values in pairs]

    return call


def search_merged_indexes(
    call: CallSearchers, row_counts: Sequence[int], query: Query, limits: SearchLimits
) -> HitList:
    """Return the best images of several indexes, as of one index with the rows of all, in order.

    Each index returns as many rows as the result can have, so that the merged result is exact. If
    the number of images has no limit, ten times as many rows are ranked until the last rows exceed
    another limit.

    Args:
        call: Function that calls a method of ``IndexSearcher`` for each index with its arguments,
            and returns the results in the order of the indexes.
        row_counts: Number of rows of each index.
        query: Query of the search.
        limits: Limits of the number of images, of their probability and of their precision.

    Raises:
        UnknownName: If a label of the query is not in the indexes.
        DataError: If an index is damaged, or the same image is in two indexes.
    """
    best = _best_merged_rows(call, row_counts, query, limits)
    arguments = []
    starts = [*accumulate(row_counts, initial=0)]
    for start, end in pairwise(starts):
        in_index = (best.rows >= start) & (best.rows < end)
        arguments.append((query, best.rows[in_index] - start, best.scores[in_index]))
    hits: dict[int, Hit] = {}
    for start, (_, rows, _), index_hits in zip(
        starts, arguments, call("hits", arguments), strict=False
    ):
        hits |= zip((rows + start).tolist(), index_hits, strict=True)
    result = HitList([hits[row] for row in best.rows.tolist()], query)
    if len(row_counts) > 1:
        check_merged_hit_paths([hit.path for hit in result])
    return result


def check_merged_indexes(descriptions: Sequence[IndexDescription]) -> None:
    """Check that indexes have the same labels, and predictions of the same recognizer.

    Raises:
        InputError: If there is no index, one is given twice, or one differs from the first one.
    """
    if not descriptions:
        raise InputError(
            "A search needs at least one index; got none. Give the folder of an index."
        )
    first, folders = descriptions[0], [index.folder for index in descriptions]
    for index in descriptions:
        if folders.count(index.folder) > 1:
            raise InputError(
                f"Each index must be given once; got {index.folder} twice. Remove one of them."
            )
        differences = {
            "label list": index.names != first.names,
            "recognizer": index.model != first.model,
            "calibration": index.calibration != first.calibration,
        }
        for what, differs in differences.items():
            if differs:
                raise InputError(
                    f"Indexes that are searched together must have the same {what}; that of "
                    f"{index.folder} differs from that of {first.folder}. Build it again with the "
                    "same recognizer, or search it alone."
                )


def check_merged_hit_paths(paths: Sequence[str]) -> None:
    """Check that no image occurs twice in a result, because it is in two indexes.

    Raises:
        DataError: If an image occurs twice.
    """
    seen = set[str]()
    for path in paths:
        if path in seen:
            raise DataError(
                f"Each image must be in one of the indexes; {path} is in two. Remove it from one "
                "of them."
            )
        seen.add(path)


def _best_merged_rows(
    call: CallSearchers, row_counts: Sequence[int], query: Query, limits: SearchLimits
) -> ConjunctionSearchRows:
    """Return the best rows of all indexes that satisfy the limits of a search."""
    starts = [*accumulate(row_counts, initial=0)]
    k = limits.k or FIRST_ROWS
    while True:
        parts = call("best_rows", [(query, k)] * len(row_counts))
        best = merge_conjunction_search_rows(parts, starts).select_best(k)
        n_valid = limits.count_images(np.exp(best.scores))
        if limits.k is not None or n_valid < k:
            return best.select_best(n_valid)
        k *= 10
