"""Several indexes that are searched as one."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.retrieval.hits import HitList
from surelabel.retrieval.index import Index
from surelabel.retrieval.index_search import (
    call_index_searchers,
    check_merged_indexes,
    search_merged_indexes,
)
from surelabel.retrieval.query import Query, parse
from surelabel.retrieval.search_limits import SearchLimits
from surelabel.summaries import Summary


class ShardedIndex:
    """Indexes of parts of an image collection, which are searched as one index.

    A search returns the images, probabilities and order of one index that contains the images of
    all indexes, in the order of the indexes.

    Args:
        indexes: Opened indexes with predictions of the same recognizer.

    Attributes:
        indexes: The indexes.

    Raises:
        InputError: If there is no index, one is given twice, or labels, recognizer or calibration
            differ.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import surelabel as sl
        >>> images = sl.collection("scenes-80", split="test")
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])
        >>> with TemporaryDirectory() as folder:
        ...     folders = [f"{folder}/{part}" for part in range(2)]
        ...     for start, path in enumerate(folders):
        ...         part = images.take(range(3 * start, 3 * start + 3))
        ...         _ = sl.Index.create(path, recognizer.predict(part))
        ...     sharded = sl.ShardedIndex.open(folders)
        ...     hits = sharded.search("lion & !guitar", k=4)
        >>> len(sharded), len(hits)
        (6, 4)
    """

    def __init__(self, indexes: Sequence[Index]) -> None:
        check_merged_indexes([index.description for index in indexes])
        self.indexes = list(indexes)

    @classmethod
    def open(
        cls, folders: Sequence[str | Path], *, root: str | Path | None = None
    ) -> "ShardedIndex":
        """Open several indexes.

        Args:
            folders: Folders of the indexes.
            root: Root folder of the images of all indexes, if they were moved; see ``Index.open``.

        Raises:
            InputError: If there is no index, one is given twice, or labels, recognizer or
                calibration differ.
            DataError: If a folder is no index, or an index is damaged.
        """
        paths = [os.path.realpath(folder) for folder in folders]
        return cls([Index.open(path, root=root) for path in paths])

    def __len__(self) -> int:
        return sum(map(len, self.indexes))

    def __repr__(self) -> str:
        """Return the number of indexes, images and labels."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def names(self) -> list[str]:
        """Label names of the indexes, length c."""
        return self.indexes[0].names

    @property
    def calibration(self) -> str:
        """Description of the calibration of the log-odds."""
        return self.indexes[0].calibration

    def search(
        self,
        query: str | Query,
        k: int | None = 20,
        *,
        min_probability: float = 0.0,
        precision: float | None = None,
    ) -> HitList:
        """Return the images of all indexes that match a query, as ``Index.search`` of one index.

        Args:
            query: Query such as ``"fork & apple & !knife"``; see ``Index.search``.
            k: Maximum number of images, >= 1. If None, the number of images has no limit.
            min_probability: Minimum probability that an image matches the query, in [0, 1].
            precision: Minimum expected precision of the result, in [0, 1]. If None, there is no
                minimum.

        Raises:
            InputError, NotFitted, UnknownName: As for ``Index.search``.
            DataError: As for ``Index.search``, and if an image of the result is in two indexes.
        """
        limits = SearchLimits(k, min_probability, precision)
        limits.check_calibration(self.calibration)
        query = parse(query) if isinstance(query, str) else query
        call = call_index_searchers([index.searcher for index in self.indexes])
        n_rows = [index.description.n_rows for index in self.indexes]
        return search_merged_indexes(call, n_rows, query, limits)

    def _summary(self) -> Summary:
        properties = {
            "indexes": len(self.indexes),
            "images": len(self),
            "labels": len(self.names),
            "calibration": self.calibration,
        }
        return Summary("ShardedIndex", properties)
