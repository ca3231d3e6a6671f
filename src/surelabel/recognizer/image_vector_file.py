"""Store image vectors in a temporary file if they do not fit into memory."""

import tempfile
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError


class ImageVectorFile:
    """Temporary file of image vectors, which has no name in the file system.

    The operating system deletes the file when no process uses it. A ``with`` block closes the file;
    an array that ``read`` returned can still be used afterwards.

    Args:
        folder: Folder on the disk for the file. If the folder cannot be written, the folder for
            temporary files is used.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: BinaryIO | None = None
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, vectors: npt.NDArray[np.float16]) -> None:
        """Write vectors ``(n, d)`` at the end of the file.

        Raises:
            DataError: If the vectors cannot be written, for example if the disk is full.
        """
        self._width = vectors.shape[1]
        try:
            self._file = self._file or _open_image_vector_file(self._folder)
            self._file.write(np.ascontiguousarray(vectors, np.float16).data)
            self._file.flush()  # if the disk is full, the error is raised here, not in read
        except OSError as error:
            raise DataError(
                f"Image vectors cannot be written to {self._folder}: {error.strerror}. Free disk "
                "space, or set SURELABEL_CACHE to another folder."
            ) from error

    def read(self, n: int) -> npt.NDArray[np.float16] | None:
        """Return all n vectors as an array ``(n, d)`` that is mapped into memory.

        If no vectors were written, return None.
        """
        if self._file is None:
            return None
        if not n:
            return np.empty((0, self._width), np.float16)
        return np.memmap(self._file, np.float16, mode="r", shape=(n, self._width))


def _open_image_vector_file(folder: Path) -> BinaryIO:
    """Open a temporary file in a folder, or in the folder for temporary files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()
