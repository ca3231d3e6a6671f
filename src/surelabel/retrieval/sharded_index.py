"""Several indexes that are searched as one."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.retrieval.index import Index
from surelabel.retrieval.index_search import call_index_searchers
from surelabel.retrieval.merged_index import MergedIndex
from surelabel.summaries import Summary


class ShardedIndex(MergedIndex):
    """Indexes of parts of an image collection, which are searched as one index.

    A search returns the images, probabilities and order of one index that contains the images of
    all indexes, in the order of the indexes. To check that no image is in two indexes, their paths
    are read once.

    Args:
        indexes: Opened indexes with predictions of the same recognizer.

    Attributes:
        indexes: The indexes.

    Raises:
        InputError: If there is no index, one is given twice, or labels, recognizer or calibration
            differ.
        DataError: If an image is in two indexes, by its absolute path.

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
            root: Root folder of the images of all indexes, if they were moved; see ``Index.open``.

        Raises:
            InputError: If there is no index, one is given twice, or labels, recognizer or
                calibration differ.
            DataError: If a folder is no index, an index is damaged, or an image is in two indexes.
        """
        paths = [os.path.realpath(folder) for folder in folders]
        return cls([Index.open(path, root=root) for path in paths])

    def __repr__(self) -> str:
        """Return the number of indexes, images and labels."""
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
        return Summary("ShardedIndex", properties)
