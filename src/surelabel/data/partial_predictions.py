"""Store the finished blocks of an incomplete prediction file, from which a run resumes.

    FILE.partial/
        run.json                      recognizer, options and images of the run
        block-00000-HASH.parquet      predictions of a block of images

HASH identifies the sizes and modification times of the image files of the block, so that a block is
predicted again if one of its files was changed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from surelabel.data.prediction_runs import hash_image_paths
from surelabel.data.prediction_writing import write_predictions
from surelabel.data.predictions import read_predictions
from surelabel.errors import DataError
from surelabel.file_locks import lock_path
from surelabel.file_readers import read_json
from surelabel.files import atomic_file
from surelabel.records import Predictions, SkippedImage
from surelabel.storage.stored_images import stored_image_statuses

RUN_FILE = "run.json"


class PartialPredictions:
    """Folder of the finished blocks of a prediction file; see :func:`open_partial_predictions`.

    Attributes:
        skipped: Images of the finished blocks that could not be read, each with the reason.
        n_read: Number of images of the finished blocks that could be read.
    """

    def __init__(self, folder: Path, images: Sequence[str], block_size: int):
        self._folder, self._images, self._block_size = folder, images, block_size
        self._files: list[Path] = []
        self.skipped: list[SkippedImage] = []
        self.n_read = 0
        self._next_file = self._block_file()

    @property
    def n_images(self) -> int:
        """Return the number of images in the finished blocks."""
        return min(len(self._files) * self._block_size, len(self._images))

    def add(self, block: Predictions) -> None:
        """Write the predictions of the next block.

        Raises:
            InputError: If a score, logit or uncertainty is not finite, or an uncertainty is
                negative.
            DataError: If the folder cannot be written.
        """
        write_predictions(block, self._next_file)
        self._count(block)

    def finished_blocks(self) -> Iterator[Predictions]:
        """Return an iterator that reads the finished blocks one by one, in order.

        Raises:
            DataError: If a block was damaged after it was found.
        """
        return map(read_predictions, tuple(self._files))

    def find_finished_blocks(self) -> None:
        """Find the finished blocks before the first block that is unfinished or damaged."""
        while self.n_images < len(self._images) and self._next_file.exists():
            try:
                block = read_predictions(self._next_file)
            except DataError:
                return
            self._count(block)

    def _count(self, block: Predictions) -> None:
        self._files.append(self._next_file)
        self.skipped += block.skipped
        self.n_read += len(block)
        self._next_file = self._block_file()  # before the images of the block are predicted

    def _block_file(self) -> Path:
        number = len(self._files)
        start = number * self._block_size
        states = _hash_of_partial_prediction_files(self._images[start : start + self._block_size])
        return self._folder / f"block-{number:05}-{states}.parquet"


@contextmanager
def open_partial_predictions(
    path: str | Path,
    images: Sequence[str],
    *,
    block_size: int,
    recognizer: str,
    options: Mapping[str, Any],
) -> Iterator[PartialPredictions]:
    """Open the folder of the finished blocks of a prediction file, and lock the folder.

    At the end of the ``with`` block, the folder is deleted. If an error occurs in the ``with``
    block, the folder remains, so that the next run with the same arguments resumes. If no image of
    the finished blocks could be read, these blocks are not used.

    Args:
        path: Path of the prediction file; the folder is ``path`` with ``.partial`` appended.
        images: Paths of all images of the run.
        block_size: Number of images per block.
        recognizer: Fingerprint of the recognizer.
        options: Other options that determine the predictions.

    Raises:
        DataError: If the folder contains blocks of another recognizer, other options or other
            images, or a damaged description of the run. Also if the folder cannot be written, or is
            used by another process for more than 60 seconds.
    """
    folder = Path(os.path.abspath(f"{path}.partial"))
    run = {
        "recognizer": recognizer,
        "options": dict(options),
        "block_size": block_size,
        "n_images": len(images),
        "images": hash_image_paths(images),
    }
    with suppress(OSError):  # writing the run file raises the error
        folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_path(folder):
        _write_or_check_partial_run(folder, run)
        partial = PartialPredictions(folder, images, block_size)
        partial.find_finished_blocks()
        if not partial.n_read:  # without a readable image, the run has to fail again
            partial = PartialPredictions(folder, images, block_size)
        yield partial
        with suppress(OSError):  # without the run file, an incomplete deletion is not resumed
            (folder / RUN_FILE).unlink()
        shutil.rmtree(folder, ignore_errors=True)


def _write_or_check_partial_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Write the run file; if it exists, check that its content is ``run``.

    Raises:
        DataError: If the content is different or damaged, or the file cannot be written.
    """
    file = folder / RUN_FILE
    if not file.exists():
        with atomic_file(file) as temporary:
            temporary.write_text(json.dumps(run, indent=1), encoding="utf-8")
        return
    remedy = f"Delete {folder}, or write to another file."
    stored = read_json(file, remedy=remedy)
    differences = [
        name for name in run if not isinstance(stored, dict) or stored.get(name) != run[name]
    ]
    if differences:
        raise DataError(
            f"{folder} must contain finished predictions of the same run; got predictions of a run "
            f"with another value of {' and '.join(differences)}. {remedy}"
        )


def _hash_of_partial_prediction_files(images: Sequence[str]) -> str:
    """Return a hash of the sizes and modification times of image files, or of their absence."""
    digest = hashlib.blake2b(digest_size=8)
    for status in stored_image_statuses(images):
        digest.update(repr(status and tuple(status)).encode())
    return digest.hexdigest()
