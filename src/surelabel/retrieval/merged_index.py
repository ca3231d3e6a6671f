"""Search several indexes as one index, in this process or in other processes."""

from collections.abc import Callable, Sequence

from surelabel.retrieval.hits import HitList
from surelabel.retrieval.index_search import (
    CallSearchers,
    IndexDescription,
    check_merged_indexes,
    plan_merged_search,
    search_merged_indexes,
)
from surelabel.retrieval.path_overlap import check_no_image_is_in_two_indexes
from surelabel.retrieval.query import Query, parse
from surelabel.retrieval.query_encoding import QueryEncoder
from surelabel.retrieval.search_approximation import (
    SearchApproximation,
    approximation_of_search,
)
from surelabel.retrieval.search_limits import SearchLimits
from surelabel.retrieval.shard_search import SearchStep


class MergedIndex:
    """Indexes of parts of an image collection, which are searched as one index.

    Args:
        call: Function that calls a method of ``IndexSearcher`` for each index with its arguments,
            and returns the results in the order of the indexes.
        describe: Function that returns the descriptions of the indexes.

    Raises:
        InputError: If no index is given, if an index is given twice, or if labels, recognizer or
            calibration differ.
        DataError: If an image is in two indexes.
    """

    def __init__(
        self, call: CallSearchers, describe: Callable[[], Sequence[IndexDescription]]
    ) -> None:
        descriptions = describe()
        check_merged_indexes(descriptions)
        check_no_image_is_in_two_indexes(call, [index.folder for index in descriptions])
        self._call, self._describe = call, describe

    def __len__(self) -> int:
        return sum(index.n_images for index in self._describe())

    @property
    def names(self) -> list[str]:
        """Return the label names of the indexes, length c."""
        return list(self._describe()[0].names)

    @property
    def calibration(self) -> str:
        """Return the description of the calibration of the log-odds."""
        return self._describe()[0].calibration

    def approximation(self, query: str | Query) -> SearchApproximation:
        """Return the approximations of the indexes that affect a query.

        Args:
            query: Query; see ``Index.search``.

        Returns:
            The largest ``drop_below`` of the indexes, and the lowest recall of the indexes whose
            graphs are read.

        Raises:
            InputError: If the query violates the grammar of `parse`.
        """
        query = parse(query) if isinstance(query, str) else query
        descriptions, reads_graphs = self._describe(), [False]
        if query.like is not None:
            reads_graphs = self._call("reads_graphs", [(query.like.count,)] * len(descriptions))
        limits = [index.drop_below for index in descriptions if index.drop_below is not None]
        pairs = zip(descriptions, reads_graphs, strict=False)
        recalls = [
            index.ann_recall for index, reads in pairs if reads and index.ann_recall is not None
        ]
        return approximation_of_search(query, max(limits, default=None), min(recalls, default=None))

    def search(
        self,
        query: str | Query,
        k: int | None = 20,
        *,
        min_probability: float = 0.0,
        precision: float | None = None,
        offset: int = 0,
        encoder: QueryEncoder | None = None,
    ) -> HitList:
        """Return the images of all indexes that match a query, as ``Index.search`` does.

        Args:
            query: Query such as ``"fork & (apple | pear) & !knife"``; see ``Index.search``.
            k: Maximum number of images, >= 1. If None, the number of images has no limit.
            min_probability: Minimum probability that an image matches the query, in [0, 1].
            precision: Minimum expected precision of the result, in [0, 1]. If None, there is no
                minimum.
            offset: Number of the best images that are left out, >= 0.
            encoder: Recognizer of the indexes; see ``Index.search``.

        Raises:
            InputError, NotFitted, UnknownName: As for ``Index.search``.
            DataError: As for ``Index.search``, if an image of the result is in two indexes, or if
                an index cannot be reached.
        """
        limits = SearchLimits(k, min_probability, precision, offset)
        limits.check_calibration(self.calibration)
        query = parse(query) if isinstance(query, str) else query
        row_counts = [index.n_rows for index in self._describe()]
        return search_merged_indexes(self._call, row_counts, query, limits, encoder)

    def explain(
        self, query: str | Query, k: int = 20, *, encoder: QueryEncoder | None = None
    ) -> list[SearchStep]:
        """Return the steps of a search, one for each shard and combination of filters.

        Args:
            query: Query; see `parse`.
            k: Number of images that are ranked, >= 1.
            encoder: Recognizer of the indexes; see `search`.

        Raises:
            InputError, UnknownName, DataError: As for `search`.
        """
        limits = SearchLimits(k)
        query = parse(query) if isinstance(query, str) else query
        return plan_merged_search(
            self._call,
            [index.n_rows for index in self._describe()],
            query,
            limits.n_ranked or k,
            encoder,
        )
