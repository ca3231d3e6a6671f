"""Create or update an image index with the predictions of a recognizer."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surelabel.errors import DataError, InputError
from surelabel.progress import Progress
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval import Index, IndexStatus


@dataclass(frozen=True)
class IndexUpdate:
    """Result of creating or updating an index.

    Attributes:
        index: Index after the update.
        added: Number of images that were added.
        changed: Number of images that were predicted again because the image file changed.
        removed: Number of images that were removed because the image file was deleted.
        skipped: Images that could not be read, with the reason.
    """

    index: Index
    added: int
    changed: int
    removed: int
    skipped: Sequence[SkippedImage] = ()


def index_images_with_recognizer(
    folder: str | Path,
    recognizer: Recognizer,
    images: Sequence[str],
    *,
    progress: Progress | None = None,
) -> IndexUpdate:
    """Create an index of images, or update the index with new, changed and deleted images.

    An indexed image that is not in ``images`` stays in the index as long as its file exists. Paths
    are stored as absolute paths, so the update does not depend on the current folder.

    Args:
        folder: Folder of the index. If the folder does not exist, the folder is created.
        recognizer: Calibrated recognizer.
        images: Paths of the images.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        InputError: If the index was created with another recognizer.
        NotFitted: If the recognizer is not calibrated.
        DataError: If no image can be read for a new index, or if the folder contains other files.
            Also if another process writes to the index, or if all indexed image files are deleted.
    """
    images = list(dict.fromkeys(map(os.path.abspath, images)))
    if not (Path(folder) / "index.json").exists():
        predictions = recognizer.predict(images, progress=progress)
        index = Index.create(folder, predictions)
        return IndexUpdate(index, len(predictions), 0, 0, predictions.skipped)
    index = Index.open(folder)
    _check_indexing_recognizer(index, recognizer)
    status = index.status(images)
    _check_files_before_indexing(index, status)
    if status.deleted:
        index.remove(status.deleted)
    outdated = [*status.not_indexed, *status.changed]
    new_predictions, skipped = _predict_images_for_indexing(recognizer, outdated, progress)
    if new_predictions:
        index.add(new_predictions)
    paths = set(new_predictions.paths) if new_predictions else set()
    n_changed = len(paths & set(status.changed))
    unreadable = [path for path in status.changed if path not in paths and path in index.paths]
    if unreadable:  # the indexed predictions are of an earlier content of these files
        index.remove(unreadable)
    return IndexUpdate(index, len(paths) - n_changed, n_changed, len(status.deleted), skipped)


def read_names_for_indexing(folder: str | Path) -> list[str] | None:
    """Return the labels of an index; if the folder contains no index, return None."""
    return Index.open(folder).names if (Path(folder) / "index.json").exists() else None


def _check_indexing_recognizer(index: Index, recognizer: Recognizer) -> None:
    """Check that the index was created with ``recognizer``.

    Raises:
        InputError: If the fingerprints of index and recognizer differ.
    """
    if index.model != recognizer.fingerprint:
        raise InputError(
            f"The index {index.folder} contains predictions of the recognizer {index.model}; got "
            f"the recognizer {recognizer.fingerprint}. Give the --model and --labels of the index, "
            "or choose a new folder."
        )


def _check_files_before_indexing(index: Index, status: IndexStatus) -> None:
    """Check that an update does not remove all images, for example if a disk is not mounted.

    Raises:
        DataError: If the files of all indexed images are deleted.
    """
    if status.deleted and len(status.deleted) == status.n_images:
        raise DataError(
            f"At least one of the {status.n_images} image files of {index.folder} must exist; "
            f"all files are missing, such as {next(iter(status.deleted))!r}. Mount the disk and "
            "run again, or delete the index and create a new one."
        )


def _predict_images_for_indexing(
    recognizer: Recognizer, paths: Sequence[str], progress: Progress | None
) -> tuple[Predictions | None, Sequence[SkippedImage]]:
    """Return the predictions of readable images, and the unreadable images.

    If no image is readable, return None instead of the predictions and raise no error, so that the
    index stays usable.
    """
    if not paths:
        return None, ()
    try:
        predictions = recognizer.predict(paths, progress=progress)
    except DataError as error:
        return None, [SkippedImage(path, str(error)) for path in paths]
    return predictions, predictions.skipped
