"""Keep the index of a watched folder up to date, while other processes can change it too."""

import os
from collections.abc import Collection
from pathlib import Path

from surelabel.errors import DataError
from surelabel.recognizer.index_calibration import (
    check_index_calibration,
    recognizer_record_of_index,
)
from surelabel.recognizer.indexing import check_indexing_recognizer
from surelabel.recognizer.model_resolution import absolute_model_name
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.retrieval.index_manifest import check_index_manifest_folder
from surelabel.storage.stored_images import StoredImageStatus


class WatchedIndex:
    """Index to which the images of a folder are added; it is opened again for each change.

    Args:
        folder: Folder of the index, which is created with the first readable image.
        recognizer: Calibrated recognizer of the images.
        root: Root folder of the images of a new index.
        model: Name of the recognizer that a new index records; see ``resolve_model``.

    Raises:
        InputError: If the index was created with another recognizer.
        NotFitted: If the recognizer is not calibrated.
        DataError: If the folder contains other files, or the index is damaged.
    """

    def __init__(self, folder: str, recognizer: Recognizer, *, root: str, model: str) -> None:
        self.folder = os.path.abspath(folder)
        self._root, self._was_found = root, False
        check_index_calibration(recognizer)
        self._record = recognizer_record_of_index(recognizer, absolute_model_name(model))
        if self._exists():
            check_indexing_recognizer(self._open(), recognizer)
        else:
            check_index_manifest_folder(Path(folder))

    def __len__(self) -> int:
        return len(self._open()) if self._exists() else 0

    def statuses(self, paths: Collection[str] | None = None) -> dict[str, StoredImageStatus]:
        """Return the size and modification time of indexed image files, by absolute path.

        Images whose file changed while it was indexed are left out.

        Args:
            paths: Paths of images; images that are not in the index are left out. If None, all
                images of the index are returned.

        Raises:
            DataError: If the index is damaged or was deleted.
        """
        if not self._exists():
            return {}
        return {
            path: StoredImageStatus(state.bytes, state.mtime_ns)
            for path, state in self._open().file_states(paths).items()
            if state is not None and state.bytes is not None and state.mtime_ns is not None
        }

    def add(self, predictions: Predictions) -> int:
        """Add images in one step, replace changed images, and return the number of all images.

        Args:
            predictions: Predictions of the images. An indexed image that is listed as unreadable is
                removed from the index.

        Raises:
            InputError: If another recognizer has replaced the predictions of the index.
            DataError: If another process is writing to the index, or the index cannot be written.
        """
        if self._exists():
            index = self._open()
            index.add(predictions)
        elif len(predictions):
            index = Index.create(
                self.folder,
                predictions,
                root=self._root,
                recognizer=self._record,
                must_be_new=True,
            )
            self._was_found = True
        else:
            return 0
        return len(index)

    def remove(self, paths: Collection[str]) -> int:
        """Remove images in one step, and return the number of all remaining images.

        Args:
            paths: Paths of images; images that are not in the index are ignored.

        Raises:
            DataError: If another process is writing to the index, or the index cannot be written.
        """
        if not self._exists():
            return 0
        index = self._open()
        if indexed := list(index.file_states(paths)):
            index.remove(indexed)
        return len(index)

    def _exists(self) -> bool:
        """Return whether the index is on disk, or was found there before."""
        self._was_found = self._was_found or self._is_on_disk()
        return self._was_found

    def _is_on_disk(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "index.json"))

    def _open(self) -> Index:
        """Open the index.

        Raises:
            DataError: If the index was deleted, or its disk is not mounted.
        """
        if not self._is_on_disk():
            raise DataError(
                f"{self.folder} must contain the index that was there before; index.json is "
                "missing. Mount the disk of the index. To create a new index, start the command "
                "again."
            )
        return Index.open(self.folder)
