"""Open several indexes, and search them as one index."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.retrieval.index import Index
from surelabel.retrieval.index_search import call_index_searchers
from surelabel.retrieval.merged_index import MergedIndex
from surelabel.summaries import Summary


class ShardedIndex(MergedIndex):
    """Indexes of parts of an image collection, which are searched as one index.

    The result of a search equals that of one index that contains the images of all indexes, in the
    order of the indexes. The paths of all images are read once, to check that no image is in two
    indexes.

    Args:
        indexes: Opened indexes with predictions of the same recognizer.

    Attributes:
        indexes: Opened indexes, in the given order.

    Raises:
        InputError: If no index is given, if an index is given twice, or if labels, recognizer or
            calibration differ.
        DataError: If two indexes contain an image with the same absolute path.

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
        self.indexes = list(indexes)
        super().__init__(
            call_index_searchers(self.indexes),
            lambda: [index.description for index in self.indexes],
        )

    @classmethod
    def open(
        cls, folders: Sequence[str | Path], *, root: str | Path | None = None
    ) -> "ShardedIndex":
        """Open several indexes.

        Args:
            folders: Folders of the indexes.
            root: Root folder of the images of all indexes, if the images were moved; see
                ``Index.open``.

        Raises:
            InputError: If no index is given, if an index is given twice, or if labels, recognizer
                or calibration differ.
            DataError: If a folder is not an index, if an index is damaged, or if an image is in two
                indexes.
        """
        paths = [os.path.realpath(folder) for folder in folders]
        return cls([Index.open(path, root=root) for path in paths])

    def __repr__(self) -> str:
        """Return the numbers of indexes, images and labels, and the calibration, as text."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        properties = {
            "indexes": len(self.indexes),
            "images": len(self),
            "labels": len(self.names),
            "calibration": self.calibration,
        }
        limits = [index.drop_below for index in self.indexes if index.drop_below is not None]
        if limits:
            properties["approximate"] = f"no probabilities below {max(limits):g} are stored"
        return Summary("ShardedIndex", properties)
