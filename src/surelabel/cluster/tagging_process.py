"""Predict the labels of image files in a separate process, for an actor of Ray.

The process is started with a new Python interpreter, not forked. A forked process would inherit the
threads and sockets of Ray, so that Ray could not detect the end of an actor. Inside this process,
images are decoded in worker processes with limits of time and memory.
"""

import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from surelabel.errors import DataError, InputError
from surelabel.package_imports import import_without_garbage_collection
from surelabel.records import Predictions

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

CHECK_SECONDS = 0.5  # between two checks whether the parent process exists
_PROGRAM = (
    "from surelabel.cluster.tagging_process import run_tagging_process; "
    "run_tagging_process({descriptor}, {parent})"
)


@dataclass(frozen=True)
class TaggingSettings:
    """Recognizer and settings of a tagging process.

    Attributes:
        recognizer: Pickled recognizer, or the folder of a saved recognizer.
        image_folder: Folder of relative paths of images.
        max_image_memory: Maximum memory for decoding an image, in megabytes.
        decoders: Number of processes that decode images.
        device: PyTorch device of a saved recognizer.
        has_vectors: Whether predictions contain image vectors and content hashes.
    """

    recognizer: bytes | str
    image_folder: str
    max_image_memory: int
    decoders: int
    device: str
    has_vectors: bool


class TaggingProcess:
    """Process that predicts the labels of image files; it is started when the object is created.

    Args:
        settings: Recognizer and settings of the predictions.

    Raises:
        DataError: If the process ends before the recognizer is loaded.
        InputError: If the recognizer cannot be loaded, or the folder of the images is missing.
    """

    def __init__(self, settings: TaggingSettings):
        self._connection, end_of_process = Pipe()
        with end_of_process:
            descriptor = end_of_process.fileno()
            program = _PROGRAM.format(descriptor=descriptor, parent=os.getpid())
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                pass_fds=[descriptor],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
            )
        answer = self._request(settings)
        if answer is not None:
            self.close()
            raise InputError(
                f"A tagging process cannot load the recognizer: {answer}. Check that all nodes can "
                "read the folders of the recognizer and the images."
            )

    @property
    def pid(self) -> int:
        """Return the identifier of the process."""
        return self._process.pid

    def predict(self, paths: Sequence[str]) -> Predictions | str:
        """Return the predictions of images, or the reason why they could not be computed.

        Args:
            paths: Paths of images. Unreadable images are skipped images of the predictions.

        Raises:
            DataError: If the process ends, for example because the memory is exhausted.
        """
        answer: Predictions | str = self._request(list(paths))
        return answer

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _request(self, message: object) -> Any:
        try:
            self._connection.send(message)
            return self._connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise DataError(
                f"The tagging process ended with exit code {self._process.returncode}"
            ) from error


def run_tagging_process(descriptor: int, parent: int) -> None:
    """Answer requests of the parent process until the connection is closed.

    The process also ends if the parent process is killed.

    Args:
        descriptor: File descriptor of the connection, over which the process receives the settings,
            and then lists of image paths.
        parent: Identifier of the parent process.
    """
    Thread(target=_exit_with_process, args=(parent,), daemon=True).start()
    warnings.simplefilter("ignore")  # they would be repeated for each part
    connection = Connection(descriptor)
    with suppress(EOFError, OSError):
        settings: TaggingSettings = connection.recv()
        try:
            recognizer = _load_recognizer_of_settings(settings)
        except Exception as error:
            connection.send(_one_line_of_error(error))
            return
        connection.send(None)
        while True:
            connection.send(_predict_or_describe_error(recognizer, connection.recv(), settings))


def _exit_with_process(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os._exit(1)


def _load_recognizer_of_settings(settings: TaggingSettings) -> "Recognizer":
    if not Path(settings.image_folder).is_dir():
        host = os.uname().nodename
        raise InputError(
            f"the folder of relative image paths, {settings.image_folder}, does not exist on {host}"
        )
    import_without_garbage_collection("surelabel.recognizer")
    from surelabel.recognizer import Recognizer

    os.chdir(settings.image_folder)
    if isinstance(settings.recognizer, str):
        recognizer = Recognizer.load(settings.recognizer, device=settings.device)
    else:
        recognizer = pickle.loads(settings.recognizer)
    recognizer.cache = None  # type: ignore[assignment]  # keys of all images would be in memory
    return recognizer


def _predict_or_describe_error(
    recognizer: "Recognizer", paths: list[str], settings: TaggingSettings
) -> Predictions | str:
    """Return the predictions of images, or one line that describes an unexpected error."""
    from dataclasses import replace

    from surelabel.data import image_memory_limit

    try:
        with image_memory_limit(settings.max_image_memory):
            blocks = recognizer.predict_blocks(
                paths, block_size=len(paths), workers=settings.decoders
            )
            predictions = next(blocks)  # the end raises an error if no image can be read
    except Exception as error:
        return _one_line_of_error(error)
    if not settings.has_vectors:
        predictions = replace(predictions, features=None, hashes=None)
    return predictions


def _one_line_of_error(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
