"""Tag the images of a folder as they arrive, and keep an index and sidecars up to date."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from surelabel.counts import format_count
from surelabel.data.folder_scan import scan_image_folder
from surelabel.errors import DataError, InputError
from surelabel.progress import Progress
from surelabel.recognizer.prediction_blocks import images_per_prediction_block
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.watched_images import WatchedImages
from surelabel.recognizer.watched_outputs import WatchedOutputs
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval.file_state import is_valid_file_state_path
from surelabel.storage.stored_images import StoredImageStatus, is_stored_image_missing

MAX_BATCH_IMAGES = 512  # images that are tagged and written in one step
MAX_MISSING_SHARE = 0.5  # of the tagged images; a larger share is not removed from the index
MIN_INTERVAL = 0.5  # seconds

OpenProgress = Callable[[], AbstractContextManager[Progress | None]]


@dataclass(frozen=True)
class WatchedBatch:
    """Event: images were tagged, and their tags were written to the index and the sidecars.

    Attributes:
        predictions: Predictions of the images that could be read.
        unreadable: Images that cannot be read, each with the reason.
        refused: Sidecars that were not written, each with the reason.
        n_indexed: Number of all images in the index, or None without an index.
    """

    predictions: Predictions
    unreadable: Sequence[SkippedImage] = ()
    refused: Sequence[SkippedImage] = ()
    n_indexed: int | None = None


@dataclass(frozen=True)
class RemovedImages:
    """Event: deleted images were removed from the index.

    Attributes:
        paths: Absolute paths of the images.
        n_indexed: Number of all images in the index.
    """

    paths: Sequence[str]
    n_indexed: int


@dataclass(frozen=True)
class WatchNotice:
    """Event: an obstacle, such as a missing folder, begins or ends.

    Attributes:
        kind: ``folder_missing``, ``folder_found``, ``folders_unreadable``, ``images_missing``,
            ``names_invalid`` or ``write_failed``.
        message: Description of the event in sentences.
    """

    kind: str
    message: str


WatchEvent = WatchedBatch | RemovedImages | WatchNotice


class FolderWatch:
    """Folder whose images are tagged when they arrive or change.

    Args:
        folder: Path of the folder, which is scanned with its subfolders.
        recognizer: Recognizer of the images.
        outputs: Index and sidecars of the images.
        select: Function that adds the mask of the shown labels to predictions.
        interval: Time between two scans in seconds, >= 0.5.
        uncertainty: Kind of uncertainty of the predictions; see ``Recognizer.predict``.
        workers: Number of worker processes that decode images, or None for the default.

    Raises:
        InputError: If the interval is too short or not finite, or if the folder is the folder of
            the index or is inside it.
        DataError: If the folder cannot be read, or the index is damaged.
    """

    def __init__(
        self,
        folder: str,
        recognizer: Recognizer,
        outputs: WatchedOutputs,
        *,
        select: Callable[[Predictions], Predictions],
        interval: float,
        uncertainty: str | None = None,
        workers: int | None = None,
    ) -> None:
        if not MIN_INTERVAL <= interval < math.inf:
            raise InputError(
                f"interval must be a number of at least {MIN_INTERVAL} seconds; got {interval}. "
                "Give a number such as 5."
            )
        self.folder, self.interval = os.path.abspath(folder), interval
        self.scan_seconds = 0.0
        self._recognizer, self._outputs, self._select = recognizer, outputs, select
        self._options: dict[str, Any] = {"uncertainty": uncertainty, "workers": workers}
        self._images, self._missing = WatchedImages(), set[str]()
        self._notices: dict[str, str] = {}
        if reason := _unreadable_folder_reason(self.folder):
            raise DataError(f"{folder} cannot be read: {reason}. Give a folder of images.")
        if outputs.index is not None:
            _check_folder_is_outside_index(self.folder, outputs.index.folder)
            self._load_indexed_images(outputs.index.statuses())

    def events(
        self,
        *,
        open_progress: OpenProgress = nullcontext,
        wait: Callable[[float], None] = time.sleep,
    ) -> Iterator[WatchEvent]:
        """Scan the folder repeatedly without end, and yield the events of each scan.

        The time between two scans is the interval, or the duration of the last scan if it is
        longer.

        Args:
            open_progress: Function that returns a context manager of a progress function. The
                context is open while a batch of images is encoded.
            wait: Function that waits for a number of seconds.

        Raises:
            InputError: If another recognizer has replaced the predictions of the index.
        """
        while True:
            yield from self.step(time.time_ns(), open_progress=open_progress)
            wait(max(self.interval, self.scan_seconds))

    def step(
        self, now_ns: int, *, open_progress: OpenProgress = nullcontext
    ) -> Iterator[WatchEvent]:
        """Scan the folder once, and yield an event after each change of the outputs.

        Images whose outputs cannot be written are tagged again after the next scan. If deleted
        images cannot be removed from the index, they are removed after the next scan, and no image
        is tagged before.

        Args:
            now_ns: Current time in nanoseconds since 1970.
            open_progress: Function that returns a context manager of a progress function.

        Raises:
            InputError: If another recognizer has replaced the predictions of the index.
        """
        start, index = time.monotonic(), self._outputs.index
        excluded = None if index is None else index.folder
        difference = self._images.compare(
            scan_image_folder(self.folder, excluded=excluded),
            now_ns=now_ns,
            min_age_ns=round(self.interval * 1e9),
        )
        self.scan_seconds = time.monotonic() - start
        if reason := difference.errors.get(self.folder):
            yield from self._notice(
                "folder_missing",
                f"{self.folder} cannot be read: {reason}. No image is removed from the index. The "
                "folder is scanned again until it can be read.",
            )
            return
        if self._notices.pop("folder_missing", None):
            yield WatchNotice("folder_found", f"{self.folder} can be read again.")
        yield from self._notice_of_unreadable_folders(difference.errors)
        later = "Deleted images are removed, and new images are tagged, after the next scan."
        try:
            if not difference.errors:
                yield from self._remove_missing_images(difference.unseen)
            later = "The images are tagged again after the next scan."
            yield from self._tag_images(difference.complete, open_progress)
            self._notices.pop("write_failed", None)
        except (DataError, OSError) as error:
            yield from self._notice("write_failed", f"{error} {later}")

    def _load_indexed_images(self, statuses: Mapping[str, StoredImageStatus]) -> None:
        """Record the indexed images inside the folder as tagged."""
        prefix = os.path.join(self.folder, "")
        for path, status in statuses.items():
            if path.startswith(prefix):
                self._images.add(path, status)

    def _notice(self, kind: str, message: str) -> Iterator[WatchNotice]:
        """Yield a notice, unless its message is that of the last notice of this kind."""
        if self._notices.get(kind) != message:
            self._notices[kind] = message
            yield WatchNotice(kind, message)

    def _notice_of_unreadable_folders(self, errors: Mapping[str, str]) -> Iterator[WatchNotice]:
        existing = {path: reason for path, reason in errors.items() if os.path.lexists(path)}
        if not existing:
            self._notices.pop("folders_unreadable", None)
            return
        path, reason = min(existing.items())
        yield from self._notice(
            "folders_unreadable",
            f"{format_count(len(existing), 'subfolder or file', 'subfolders or files')} cannot be "
            f"read, such as {path}: {reason}. No image is removed from the index until all can be "
            "read.",
        )

    def _remove_missing_images(self, unseen: Sequence[str]) -> Iterator[WatchEvent]:
        """Remove images from the index that were missing in two successive scans.

        If more than half of the images are missing at once, none is removed.

        Raises:
            DataError: If the index cannot be written.
        """
        index = self._outputs.index
        if index is None:
            return
        missing = {path for path in unseen if is_stored_image_missing(path)}
        for path in unseen:
            if path not in missing:
                self._images.discard(path)  # it exists, but it is hidden or in an archive
        if len(missing) > MAX_MISSING_SHARE * len(self._images):
            yield WatchNotice(
                "images_missing",
                f"{len(missing):,} of {format_count(len(self._images), 'image')} of {self.folder} "
                f"{'is' if len(missing) == 1 else 'are'} missing at once, such as {min(missing)}. "
                f"No image is removed from the index {index.folder}. To remove deleted images, run "
                f"`surelabel index {index.folder} {self.folder}` with the model and labels of the "
                "index.",
            )
            for path in missing:
                self._images.discard(path)
            missing = set()
        removed = sorted(missing & self._missing)
        self._missing = missing
        if removed:
            n_indexed = index.remove(removed)
            for path in removed:
                self._images.discard(path)
            yield RemovedImages(removed, n_indexed)

    def _tag_images(
        self, images: Mapping[str, StoredImageStatus], open_progress: OpenProgress
    ) -> Iterator[WatchEvent]:
        """Tag images in batches, and yield each batch after its outputs were written.

        Raises:
            DataError: If an output cannot be written.
        """
        if self._outputs.index is not None:
            invalid = [path for path in images if not is_valid_file_state_path(path)]
            yield from self._skip_invalid_names(invalid, images)
            images = {path: images[path] for path in images.keys() - invalid}
        refused = self._outputs.refused_sidecars(images)
        batch_size = min(MAX_BATCH_IMAGES, images_per_prediction_block(self._recognizer.method))
        paths = sorted(images)
        for start in range(0, len(paths), batch_size):
            batch = {path: images[path] for path in paths[start : start + batch_size]}
            new = {path: status for path, status in batch.items() if path not in self._images}
            for path in self._outputs.tagged_before(new):
                self._images.add(path, batch.pop(path))
            if batch:
                with open_progress() as progress:
                    predictions = self._predict(
                        list(batch), progress and _progress_after(progress, start, len(paths))
                    )
                if len(predictions) or predictions.skipped:
                    yield self._write_batch(predictions, batch, refused)
                elif _unreadable_folder_reason(self.folder):
                    return

    def _skip_invalid_names(
        self, paths: Sequence[str], images: Mapping[str, StoredImageStatus]
    ) -> Iterator[WatchNotice]:
        """Record images that cannot be in an index as tagged, and yield a notice about them."""
        for path in paths:
            self._images.add(path, images[path])
        if paths:
            yield WatchNotice(
                "names_invalid",
                f"{format_count(len(paths), 'image')} cannot be in an index, because the path is "
                f"not valid Unicode, such as {paths[0]!r}. Rename the file.",
            )

    def _predict(self, paths: Sequence[str], progress: Progress | None) -> Predictions:
        """Return the predictions of images, with the unreadable images that still exist.

        If the folder cannot be read any more, no image counts as unreadable.
        """
        blocks = self._recognizer.predict_blocks(
            paths, block_size=len(paths), progress=progress, **self._options
        )
        predictions = next(blocks)
        unreadable = [image for image in predictions.skipped if os.path.lexists(image.path)]
        if unreadable and _unreadable_folder_reason(self.folder):
            unreadable = []
        return replace(predictions, skipped=unreadable)

    def _write_batch(
        self,
        predictions: Predictions,
        images: Mapping[str, StoredImageStatus],
        refused: Mapping[str, str],
    ) -> WatchedBatch:
        """Write the outputs of a batch, record its images as tagged, and return the event.

        Raises:
            DataError: If an output cannot be written.
        """
        predictions = self._select(predictions)
        written = self._outputs.write(predictions, refused)
        unreadable = tuple(predictions.skipped)
        for path in (*predictions.paths, *(image.path for image in unreadable)):
            self._images.add(path, images[path])
        return WatchedBatch(predictions, unreadable, written.refused, written.n_indexed)


def _check_folder_is_outside_index(folder: str, index: str) -> None:
    """Check that the folder of the images is not the folder of the index, and not inside it.

    Raises:
        InputError: If the index contains the folder.
    """
    if os.path.join(folder, "").startswith(os.path.join(index, "")):
        raise InputError(
            f"The index must not contain the folder of the images; got the index {index} and the "
            f"folder {folder}. Give another folder for the index."
        )


def _unreadable_folder_reason(folder: str) -> str | None:
    """Return the reason why a folder cannot be read, or None if it can be read."""
    try:
        with os.scandir(folder):
            return None
    except OSError as error:
        return error.strerror or type(error).__name__


def _progress_after(progress: Progress, n_before: int, n_images: int) -> Progress:
    """Return a progress function that counts the images of earlier batches too."""

    def show_progress(done: int, _: int) -> None:
        progress(n_before + done, n_images)

    return show_progress
