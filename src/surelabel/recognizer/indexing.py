"""Create or update an image index with the predictions of a recognizer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from surelabel.counts import format_count
from surelabel.errors import DataError, InputError, NoReadableImage
from surelabel.label_aliases import list_labels
from surelabel.progress import Progress
from surelabel.recognizer.index_calibration import (
    check_index_calibration,
    recognizer_record_of_index,
    restore_index_calibration,
)
from surelabel.recognizer.model_resolution import absolute_model_name
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import LabelledFeatures, Predictions, SkippedImage
from surelabel.retrieval import Index, IndexRecognizer, IndexStatus
from surelabel.retrieval.index_manifest import check_index_manifest_folder
from surelabel.retrieval.index_root import common_index_root, default_index_root
from surelabel.storage.image_paths import absolute_image_path

PredictBlocks = Callable[[Sequence[str]], Iterator[Predictions]]


@dataclass(frozen=True)
class IndexUpdate:
    """Result of creating or updating an index.

    Attributes:
        index: Index after the update.
        added: Number of images that were added.
        changed: Number of images that were predicted again because the image file changed. For
            scores and vectors, all images that were already in the index.
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
    images: Sequence[str] | LabelledFeatures,
    *,
    root: str | Path | None = None,
    model: str | None = None,
    progress: Progress | None = None,
    predict: PredictBlocks | None = None,
) -> IndexUpdate:
    """Create an index of images, or update the index with new, changed and deleted images.

    The images are predicted block by block, and each block is written to the index at once. If the
    process is killed, the next update continues after the last block.

    An indexed image that is not in ``images`` stays in the index as long as its file exists. The
    update does not depend on the current folder. An index of an earlier version is written in the
    current version, without predicting its images again.

    Args:
        folder: Folder of the index. If the folder does not exist, the folder is created.
        recognizer: Calibrated recognizer.
        images: Paths of the images, or scores or vectors of images, whose files need not exist.
            Scores and vectors are always predicted again, and no image is removed.
        root: Root folder of the images; see :class:`~surelabel.retrieval.Index`. If the images of
            an index were moved, their new root is stored. If None, an existing index keeps its
            root, and the root of a new index is the common parent folder of ``images``.
        model: Name of the recognizer, as for ``resolve_model``, which the index records for queries
            with sentences. If None, an existing index keeps the recorded name.
        progress: Function called with the number of encoded images and the total number of images.
        predict: Function that yields the predictions of absolute image paths in blocks, for example
            on a cluster. If None, ``recognizer`` predicts the images.

    Raises:
        InputError: If the index was created with another recognizer, or if there is neither an
            index nor an image.
        NotFitted: If the recognizer is not calibrated. No image is read in this case.
        DataError: If no image can be read for a new index, or if the folder contains other files.
            Also if another process writes to the index, or if all indexed image files are missing.
    """
    check_index_calibration(recognizer)
    if not isinstance(images, LabelledFeatures):
        images = list(dict.fromkeys(map(absolute_image_path, images)))
    named = None
    if model is not None:
        named = recognizer_record_of_index(recognizer, absolute_model_name(model))
    if not (Path(folder) / "index.json").exists():
        check_index_manifest_folder(Path(folder))
        paths = images.paths if isinstance(images, LabelledFeatures) else images
        root = root or common_index_root(
            map(absolute_image_path, paths), default_index_root(folder)
        )
        return _add_images_while_indexing(
            folder, None, recognizer, images, root, named, progress, predict
        )
    index = Index.open(folder, root=root)
    check_indexing_recognizer(index, recognizer)
    if isinstance(images, LabelledFeatures):
        index.upgrade(named)
        indexed = set(index.paths)
        n_changed = sum(absolute_image_path(path) in indexed for path in images.paths)
        update = _add_images_while_indexing(
            folder, index, recognizer, images, index.root, None, progress, predict
        )
        return replace(update, added=update.added - n_changed, changed=n_changed)
    status = index.status(images)
    _check_files_before_indexing(index, status)
    index.upgrade(named)
    if status.deleted:
        index.remove(status.deleted)
    outdated = [*status.not_indexed, *status.changed]
    update = _add_images_while_indexing(
        folder, index, recognizer, outdated, index.root, None, progress, predict
    )
    skipped = {absolute_image_path(image.path) for image in update.skipped}
    n_changed = len(set(status.changed) - skipped)
    return replace(
        update, added=update.added - n_changed, changed=n_changed, removed=len(status.deleted)
    )


def _add_images_while_indexing(
    folder: str | Path,
    index: Index | None,
    recognizer: Recognizer,
    images: Sequence[str] | LabelledFeatures,
    root: str | Path,
    named: IndexRecognizer | None,
    progress: Progress | None,
    predict: PredictBlocks | None,
) -> IndexUpdate:
    """Predict images block by block, and write each block to the index.

    If the process is killed, the index contains all finished blocks. An indexed image that can no
    longer be read is removed.

    Args:
        folder: Folder of the index.
        index: Existing index. If None, a new index is created with the first readable block.
        recognizer: Calibrated recognizer.
        images: Paths of the images to predict, or scores or vectors of images.
        root: Root folder of the images of a new index.
        named: Record of the name and the labels of the recognizer for a new index, or None.
        progress: Function called with the number of encoded images and the total number of images.
        predict: Function that yields the predictions of images, or None for ``recognizer``.

    Raises:
        NoReadableImage: If there is no index yet, and no image can be read.
        DataError: If another process creates the index at the same time.
    """
    n_added, skipped = 0, list[SkippedImage]()
    if index is not None and not len(images):
        return IndexUpdate(index, 0, 0, 0)
    if predict is None or isinstance(images, LabelledFeatures):
        blocks = recognizer.predict_blocks(images, progress=progress)
    else:
        blocks = predict(images)
    try:
        for block in blocks:
            skipped += block.skipped
            n_added += len(block)
            if index is not None:
                index.add(block)
            elif len(block):
                first = replace(block, skipped=tuple(skipped))
                index = Index.create(folder, first, root=root, recognizer=named, must_be_new=True)
    except NoReadableImage:
        if index is None:
            raise
    assert index is not None  # without a readable image, predict_blocks raises an error
    return IndexUpdate(index, n_added, 0, 0, tuple(skipped))


def read_names_for_indexing(folder: str | Path) -> list[str] | None:
    """Return the labels of an index, with their aliases if the index records them.

    If the folder contains no index, return None.

    Raises:
        DataError: If the index is damaged.
    """
    if not (Path(folder) / "index.json").exists():
        return None
    index = Index.open(folder)
    return index.names if index.recognizer is None else list(index.recognizer.labels)


def read_calibration_for_indexing(folder: str | Path) -> str | None:
    """Return the description of the calibration of an index.

    If the folder contains no index, return None.

    Raises:
        DataError: If the index is damaged.
    """
    if not (Path(folder) / "index.json").exists():
        return None
    return Index.open(folder).calibration


def restore_calibration_for_indexing(folder: str | Path, recognizer: Recognizer) -> bool:
    """Give a recognizer without calibration the calibration that an index records.

    Args:
        folder: Folder of the index, which may not exist yet.
        recognizer: Recognizer for the images, which may be changed.

    Returns:
        True if the index exists, and the recognizer now has its calibration.

    Raises:
        DataError: If the index is damaged.
    """
    if not (Path(folder) / "index.json").exists():
        return False
    return restore_index_calibration(Index.open(folder), recognizer)


def check_indexing_recognizer(index: Index, recognizer: Recognizer) -> None:
    """Check that the index was created with ``recognizer``.

    Raises:
        InputError: If the fingerprints of index and recognizer differ.
    """
    if index.model != recognizer.fingerprint:
        recorded = index.recognizer
        options = f"--model {recorded.model} and the labels" if recorded else "--model and --labels"
        raise InputError(
            f"The index {index.folder} contains predictions of the recognizer {index.model} for "
            f"{format_count(len(index.names), 'label')} ({list_labels(index.names[:5])}); got the "
            f"recognizer {recognizer.fingerprint} for "
            f"{format_count(len(recognizer.names), 'label')} "
            f"({list_labels(recognizer.names[:5])}). Give {options} of the index, or choose a new "
            "folder."
        )


def _check_files_before_indexing(index: Index, status: IndexStatus) -> None:
    """Check that an update does not remove all images, for example if a disk is not mounted.

    Raises:
        DataError: If the files of all indexed images are missing.
    """
    if status.deleted and len(status.deleted) == status.n_images:
        raise DataError(
            f"At least one of the {status.n_images} image files of {index.folder} must exist; all "
            f"files are missing, such as {next(iter(status.deleted))!r}. Mount the disk and run "
            "again. If the images were moved, give the new root folder (--root). Otherwise, delete "
            "the index and create a new index."
        )
