"""Describe a run in a folder of predictions: recognizer, images and options."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surelabel.counts import format_count
from surelabel.errors import DataError
from surelabel.file_locks import lock_path
from surelabel.file_readers import read_json
from surelabel.files import atomic_file, escape_non_utf8_file_path
from surelabel.leftover_files import delete_leftovers_in

RUN_FILE_OF_FOLDER = "run.json"
MAX_CHANGE_LENGTH = 40  # characters of the values of an option in a message
FOLDER_FORMAT = "surelabel prediction folder 1"

_OPTION_TERMS = {
    "block_size": "block size",
    "engine": "--engine and --dtype",
    "has_vectors": "image vectors",
    "max_image_memory": "--max-image-memory",
    "shards": "number of shards",
    "threshold": "--threshold",
    "top_k": "--top-k",
    "uncertainty": "--uncertainty",
}
_OPTIONS_OF_ONE_COMMAND = {"block_size", "has_vectors", "threshold", "top_k", "uncertainty"}


@dataclass(frozen=True)
class PredictionRun:
    """Recognizer, images and options of a run; equal runs have equal predictions.

    Attributes:
        recognizer: Fingerprint of the recognizer.
        labels: Labels of the c classes, length c.
        calibration: Description of the calibration, or None.
        n_images: Number n of images of the run.
        images: Hash of the paths of all images, in order.
        options: Other options that determine the predictions or the rows of the parts, as JSON
            values.
        version: Version of this package.
    """

    recognizer: str
    labels: tuple[str, ...]
    calibration: str | None
    n_images: int
    images: str
    options: Mapping[str, Any]
    version: str

    @property
    def digest(self) -> str:
        """Return the hash of the run, which is stored in each Parquet file of the folder."""
        text = json.dumps(self._as_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _as_json(self) -> dict[str, Any]:
        return {"format": FOLDER_FORMAT} | asdict(self) | {"labels": list(self.labels)}


def describe_prediction_run(
    recognizer: str,
    labels: Sequence[str],
    calibration: str | None,
    images: Sequence[str],
    options: Mapping[str, Any],
) -> PredictionRun:
    """Return the description of a run of this version of the package.

    Args:
        recognizer: Fingerprint of the recognizer.
        labels: Labels of the recognizer.
        calibration: Description of the calibration, or None.
        images: Paths of all images, in order.
        options: Other options that determine the predictions or the rows of the parts, as JSON
            values.
    """
    stored_options = json.loads(json.dumps(dict(options)))
    return PredictionRun(
        recognizer=recognizer,
        labels=tuple(labels),
        calibration=calibration,
        n_images=len(images),
        images=hash_image_paths(images),
        options=stored_options,
        version=version("surelabel"),
    )


def hash_image_paths(images: Sequence[str]) -> str:
    """Return a hash of the paths of all images, in order.

    Args:
        images: Paths of images.
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in images:
        digest.update(escape_non_utf8_file_path(path).encode() + b"\0")
    return digest.hexdigest()


def is_prediction_folder(path: str | Path) -> bool:
    """Return whether a path is a folder of predictions, with the description of its run.

    Args:
        path: Path of a file or folder, or another text.
    """
    file = Path(path, RUN_FILE_OF_FOLDER)
    try:
        return FOLDER_FORMAT in file.read_text(encoding="utf-8", errors="replace")[:200]
    except (OSError, ValueError):
        return False


def open_prediction_folder(folder: str | Path, run: PredictionRun) -> None:
    """Create a folder of predictions, or check that a folder belongs to the same run.

    Args:
        folder: Folder of the predictions, which must be new, empty or of the same run.
        run: Description of the run.

    Raises:
        DataError: If the folder contains the parts of another run or other files, cannot be
            written, or is being opened by another process for more than 60 seconds.
    """
    target = Path(os.path.abspath(folder))
    with suppress(OSError):  # writing the run file raises the error
        target.mkdir(parents=True, exist_ok=True)
    with lock_path(target / ".open"):
        check_prediction_folder(folder, run)
        if not (target / RUN_FILE_OF_FOLDER).exists():
            with atomic_file(target / RUN_FILE_OF_FOLDER) as temporary:
                temporary.write_text(json.dumps(run._as_json(), indent=1), encoding="utf-8")
    delete_leftovers_in(target)


def check_prediction_folder(folder: str | Path, run: PredictionRun) -> None:
    """Check that a folder is missing, empty or a folder of predictions of the same run.

    Args:
        folder: Folder of the predictions, which is neither created nor changed.
        run: Description of the run.

    Raises:
        DataError: If the folder contains the parts of another run or other files, or is a file.
    """
    if Path(folder, RUN_FILE_OF_FOLDER).exists():
        _check_same_prediction_run(folder, read_prediction_run(folder), run)
    else:
        _check_no_other_files(folder)


def read_prediction_run(folder: str | Path) -> PredictionRun:
    """Return the description of the run of a folder of predictions.

    Args:
        folder: Folder of the predictions.

    Raises:
        DataError: If the folder has no valid description.
    """
    file = Path(folder, RUN_FILE_OF_FOLDER)
    stored = read_json(
        file, remedy="Give a folder that `surelabel tag` wrote with --shard or --cluster."
    )
    try:
        if stored.pop("format") != FOLDER_FORMAT:
            raise ValueError
        run = PredictionRun(**stored | {"labels": tuple(stored["labels"])})
        texts = (run.recognizer, run.images, run.version, run.calibration or "", *run.labels)
        if not all(isinstance(text, str) for text in texts) or not isinstance(run.options, dict):
            raise TypeError
        if type(run.n_images) is not int or run.n_images < 0:
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{file} must describe a run of `surelabel tag` with --shard or --cluster; got other "
            "content. Copy the file again from a folder of the same run."
        ) from error
    return run


def _check_same_prediction_run(
    folder: str | Path, stored: PredictionRun, run: PredictionRun
) -> None:
    """Check that a folder belongs to the same run.

    Raises:
        DataError: If it belongs to another run; the message names the differences.
    """
    differences = [*_describe_other_contents(stored, run), *_describe_other_options(stored, run)]
    if differences:
        raise DataError(
            f"{folder} must contain predictions of the same run; got a run with "
            f"{' and '.join(differences)}. Give the same arguments as in that run, or another "
            "folder."
        )


def _describe_other_contents(stored: PredictionRun, run: PredictionRun) -> Iterator[str]:
    """Yield the differences of a stored run in recognizer, labels, images and version."""
    if stored.recognizer != run.recognizer:
        yield "another recognizer"
    if stored.labels != run.labels:
        yield "other labels"
    if stored.calibration != run.calibration:
        yield "another calibration"
    if stored.n_images != run.n_images:
        yield f"{format_count(stored.n_images, 'image')} (not {run.n_images:,})"
    elif stored.images != run.images:
        yield "other images or another order of images"
    if stored.version != run.version:
        yield f"surelabel {stored.version} (not {run.version})"


def _describe_other_options(stored: PredictionRun, run: PredictionRun) -> Iterator[str]:
    """Yield the differences of a stored run in the options."""
    first, second = stored.options, run.options
    keys = {key for key in {*first, *second} if first.get(key) != second.get(key)}
    if ("shards" in first) != ("shards" in second):
        yield "--shard (not --cluster)" if "shards" in first else "--cluster (not --shard)"
        keys -= {"shards", *_OPTIONS_OF_ONE_COMMAND}
    if "shards" in keys or stored.n_images != run.n_images:
        keys -= {"block_size"}  # follows from both
    for key in sorted(keys):
        term = _OPTION_TERMS.get(key, key)
        values = f"{_describe_option(first.get(key))} (not {_describe_option(second.get(key))})"
        yield f"{term} {values}" if len(values) <= MAX_CHANGE_LENGTH else f"another {term}"


def _describe_option(value: object) -> str:
    """Return the value of an option as text of the command line."""
    return {"True": "on", "False": "off", "None": "none"}.get(str(value), str(value))


def _check_no_other_files(folder: str | Path) -> None:
    """Check that a new folder of predictions is missing, or contains nothing but hidden files.

    Raises:
        DataError: If it contains another file, or is a file.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror}. Give another folder."
        ) from error
    if names:
        raise DataError(
            f"{folder} must be a new or empty folder, or a folder of predictions; got a folder "
            f"with {names[0]}. Give another folder."
        )
