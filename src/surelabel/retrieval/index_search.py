"""Search one or several indexes exactly, and merge the results like those of one index."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError, InputError
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.retrieval.formula_probability import LogProbability
from surelabel.retrieval.formula_search import RankedRows, merge_ranked_rows
from surelabel.retrieval.hits import Hit, HitList
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import RowNumbers
from surelabel.retrieval.nearest_rows import (
    NearestRows,
    check_shard_has_vectors,
    graph_for_search,
    nearest_rows_of_shards,
    select_nearest_rows,
)
from surelabel.retrieval.path_overlap import PathHashes, hash_paths_of_index
from surelabel.retrieval.query import Query
from surelabel.retrieval.query_encoding import QueryEncoder, SentenceScoring
from surelabel.retrieval.query_resolution import resolve_query
from surelabel.retrieval.query_terms import SentenceTerm
from surelabel.retrieval.search_limits import FIRST_ROWS, SearchLimits
from surelabel.retrieval.shard_search import SearchStep, ShardQuery
from surelabel.retrieval.shards import Shard
from surelabel.storage.image_paths import absolute_image_path


@dataclass(frozen=True)
class IndexDescription:
    """Description of an index, which is compared to check that indexes can be searched together.

    Attributes:
        folder: Folder of the index.
        names: Label names, length c.
        model: Fingerprint of the recognizer.
        calibration: Description of the calibration of the log-odds.
        n_images: Number of images.
        n_rows: Number of rows, including those of removed images.
        drop_below: Value of ``Index.drop_below``.
        ann_recall: Value of ``Index.ann_recall``.
    """

    folder: str
    names: tuple[str, ...]
    model: str
    calibration: str
    n_images: int
    n_rows: int
    drop_below: float | None = None
    ann_recall: float | None = None


@dataclass(frozen=True)
class IndexSearcher:
    """Opened index that returns the best rows of a search, and the images of given rows.

    Attributes:
        names: Label names, length c.
        shards: Shards of the index, in row order.
        root: Root folder of the stored paths.
    """

    names: Sequence[str]
    shards: Sequence[Shard]
    root: IndexRoot

    def best_rows(
        self,
        query: Query,
        k: int,
        scoring: SentenceScoring | None = None,
        nearest: NearestRows | None = None,
    ) -> RankedRows:
        """Return the ``k`` rows with the highest probability; see ``Index.search``.

        Args:
            query: Query of the search.
            k: Maximum number of rows, >= 1.
            scoring: Log-odds of the sentences of the query. If it has none, the value is None.
            nearest: Rows to which the search is restricted, or None.
        """
        return self._shard_query(query, scoring).best_rows(self.shards, k, nearest)

    def plan(
        self,
        query: Query,
        k: int,
        scoring: SentenceScoring | None = None,
        nearest: NearestRows | None = None,
    ) -> list[SearchStep]:
        """Return the steps of `best_rows`."""
        return self._shard_query(query, scoring).plan(self.shards, k, nearest)

    def probabilities(self, query: Query, scoring: SentenceScoring | None = None) -> LogProbability:
        """Return the probability that each image matches a query, ``(n,)``, in row order."""
        return self._shard_query(query, scoring).probabilities(self.shards)

    def hits(
        self,
        query: Query,
        rows: RowNumbers,
        scores: LogProbability,
        scoring: SentenceScoring | None = None,
        nearest: NearestRows | None = None,
    ) -> list[Hit]:
        """Return the images of the given rows.

        Args:
            query: Query of the search.
            rows: Row numbers.
            scores: Log probability that each image matches the query.
            scoring: Log-odds of the sentences of the query. If it has none, the value is None.
            nearest: Rows to which the search is restricted, or None.
        """
        cosines = None if nearest is None else nearest.cosines_of(rows)
        return self._shard_query(query, scoring).hits(self.shards, rows, scores, cosines)

    def example_vector(self, path: str) -> npt.NDArray[np.float16] | None:
        """Return the stored vector of an image, ``(d,)``, or None if the image is not indexed.

        Args:
            path: Absolute path of the image.

        Raises:
            InputError: If the image is indexed without a vector.
        """
        forms = [form for form in self.root.stored_forms(path) if is_valid_file_state_path(form)]
        for shard in self.shards:
            rows = shard.find_rows(forms)
            if len(rows):
                check_shard_has_vectors(shard)
                row = shard.mapped_files.arrays["features"][rows[0]]
                vector: npt.NDArray[np.float16] = np.array(row)
                return vector
        return None

    def nearest_rows(self, vector: npt.NDArray[np.floating], count: int) -> NearestRows:
        """Return the rows that are most similar to an example; see `nearest_rows_of_shards`."""
        return nearest_rows_of_shards(self.shards, vector, count)

    def reads_graphs(self, count: int) -> bool:
        """Return whether `nearest_rows` reads a graph, so that its result is approximate."""
        return any(graph_for_search(shard, count) is not None for shard in self.shards)

    def _shard_query(self, query: Query, scoring: SentenceScoring | None) -> ShardQuery:
        resolved = resolve_query(query, self.names)
        return ShardQuery(resolved, len(self.names), self.root, scoring)

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
        """Return the object that searches the current revision of the index."""


def call_index_searchers(indexes: Sequence[SearchableIndex]) -> CallSearchers:
    """Return a function that calls a method of the searchers of all indexes, one after the other.

    Args:
        indexes: Opened indexes.
    """

    def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        pairs = zip(indexes, arguments, strict=True)
        return [getattr(index.searcher, method)(*values) for index, values in pairs]

    return call


def search_merged_indexes(
    call: CallSearchers,
    row_counts: Sequence[int],
    query: Query,
    limits: SearchLimits,
    encoder: QueryEncoder | None = None,
) -> HitList:
    """Return the best images of several indexes, as a search of one index with all rows would.

    Each index returns as many rows as the result can have, so that the merged result is exact. If
    the number of images has no limit, 1000 rows are ranked first. Their number is multiplied by ten
    until the last rows violate another limit, or until all rows are ranked.

    Args:
        call: Function that calls a method of ``IndexSearcher`` for each index with its arguments,
            and returns the results in the order of the indexes.
        row_counts: Number of rows of each index.
        query: Query of the search.
        limits: Limits of the number of images, of their probability and of their precision.
        encoder: Recognizer of the indexes, for sentences and for examples that are not indexed.

    Raises:
        UnknownName: If a label of the query is not in the indexes.
        InputError: If the query needs an encoder, image vectors, dates or sizes, and these are
            missing.
        DataError: If an index is damaged, or the same image is in two indexes.
    """
    scoring = score_sentences_of_query(query, encoder)
    nearest = _nearest_merged_rows(call, row_counts, query, encoder)
    parts = _parts_of_indexes(row_counts, nearest)
    best = _best_merged_rows(call, row_counts, query, limits, scoring, parts)
    arguments = []
    starts = [*accumulate(row_counts, initial=0)]
    for (start, end), part in zip(pairwise(starts), parts, strict=True):
        in_index = (best.rows >= start) & (best.rows < end)
        arguments.append((query, best.rows[in_index] - start, best.scores[in_index], scoring, part))
    hits: dict[int, Hit] = {}
    for start, (_, rows, *_), index_hits in zip(
        starts, arguments, call("hits", arguments), strict=False
    ):
        hits |= zip((rows + start).tolist(), index_hits, strict=True)
    rows = best.rows.tolist()
    result = HitList([hits[row] for row in rows], query, rows)
    if len(row_counts) > 1:
        check_merged_hit_paths([hit.path for hit in result])
    return result


def plan_merged_search(
    call: CallSearchers,
    row_counts: Sequence[int],
    query: Query,
    k: int,
    encoder: QueryEncoder | None = None,
) -> list[SearchStep]:
    """Return the steps of a search of several indexes; see `search_merged_indexes`.

    Args:
        call: Function that calls a method of ``IndexSearcher`` for each index.
        row_counts: Number of rows of each index.
        query: Query of the search.
        k: Number of images that are ranked, >= 1.
        encoder: Recognizer of the indexes, for sentences and for examples that are not indexed.

    Raises:
        UnknownName, InputError, DataError: As for `search_merged_indexes`.
    """
    scoring = score_sentences_of_query(query, encoder)
    nearest = _nearest_merged_rows(call, row_counts, query, encoder)
    parts = _parts_of_indexes(row_counts, nearest)
    steps = call("plan", [(query, k, scoring, part) for part in parts])
    return [step for index_steps in steps for step in index_steps]


def score_sentences_of_query(query: Query, encoder: QueryEncoder | None) -> SentenceScoring | None:
    """Return the object that computes the log-odds of the sentences of a query.

    If the query has no sentence, the value is None.

    Raises:
        InputError: If the query contains a sentence and there is no encoder.
    """
    sentences = [term for term in query.terms if isinstance(term, SentenceTerm)]
    if not sentences:
        return None
    if encoder is None:
        raise InputError(
            f"A sentence needs the recognizer of the index; got {sentences[0]} without a "
            "recognizer. Give encoder=sl.query_encoder(index)."
        )
    return encoder.score_sentences([sentence.text for sentence in sentences])


def _nearest_merged_rows(
    call: CallSearchers, row_counts: Sequence[int], query: Query, encoder: QueryEncoder | None
) -> NearestRows | None:
    """Return the rows of all indexes that are most similar to the example of a query.

    If the query has no example, the value is None.
    """
    if query.like is None:
        return None
    path = absolute_image_path(query.like.path)
    vectors = call("example_vector", [(path,)] * len(row_counts))
    vector = next((vector for vector in vectors if vector is not None), None)
    if vector is None:
        if encoder is None:
            raise InputError(
                f"{path} is not in the index, so like: needs the recognizer of the index. Give "
                "encoder=sl.query_encoder(index), or the path of an indexed image."
            )
        vector = encoder.encode_example(path)
    parts = call("nearest_rows", [(vector, query.like.count)] * len(row_counts))
    starts = [*accumulate(row_counts, initial=0)]
    return select_nearest_rows(
        np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.cosines for part in parts]),
        query.like.count,
    )


def _parts_of_indexes(
    row_counts: Sequence[int], nearest: NearestRows | None
) -> list[NearestRows | None]:
    """Return, for each index, the rows to which a search is restricted, or None without limit."""
    starts = [*accumulate(row_counts, initial=0)]
    return [
        None if nearest is None else nearest.between(start, end) for start, end in pairwise(starts)
    ]


def check_merged_indexes(descriptions: Sequence[IndexDescription]) -> None:
    """Check that indexes have the same labels, and predictions of the same recognizer.

    Raises:
        InputError: If no index is given, if an index is given twice, or if an index differs from
            the first index.
    """
    if not descriptions:
        raise InputError(
            "A search needs at least one index; got none. Give the folder of an index."
        )
    first, folders = descriptions[0], [index.folder for index in descriptions]
    for index in descriptions:
        if folders.count(index.folder) > 1:
            raise InputError(
                f"Each index must be given only once; got {index.folder} more than once. Remove "
                "the repetition."
            )
        differences = {
            "label list": index.names != first.names,
            "recognizer": index.model != first.model,
            "calibration": index.calibration != first.calibration,
        }
        for what, differs in differences.items():
            if differs:
                raise InputError(
                    f"Indexes that are searched together must have the same {what}; "
                    f"{first.folder} and {index.folder} differ. Build {index.folder} again with "
                    "the same recognizer, or search each index alone."
                )


def check_merged_hit_paths(paths: Sequence[str]) -> None:
    """Check that no image occurs twice in a result because two indexes contain the image.

    Raises:
        DataError: If a path occurs twice.
    """
    seen = set[str]()
    for path in paths:
        if path in seen:
            raise DataError(
                f"Each image must be in only one of the indexes; {path} is in two indexes. "
                "Remove the image from one index."
            )
        seen.add(path)


def _best_merged_rows(
    call: CallSearchers,
    row_counts: Sequence[int],
    query: Query,
    limits: SearchLimits,
    scoring: SentenceScoring | None,
    parts: Sequence[NearestRows | None],
) -> RankedRows:
    """Return the best rows of all indexes that satisfy the limits of a search."""
    starts = [*accumulate(row_counts, initial=0)]
    k = limits.n_ranked or FIRST_ROWS
    while True:
        found = call("best_rows", [(query, k, scoring, part) for part in parts])
        best = merge_ranked_rows(found, starts).select_best(k)
        n_valid = limits.count_images(np.exp(best.scores))
        if limits.n_ranked is not None or n_valid < k:
            best = best.select_best(n_valid)
            first = limits.offset
            return RankedRows(best.rows[first:], best.scores[first:], best.ties[first:])
        k *= 10
