"""An index of pictures, made or brought up to date."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surelabel.encoding import Progress
from surelabel.errors import DataError, InputError
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Predictions, Skipped
from surelabel.retrieval import Index, Status


@dataclass(frozen=True)
class Refreshed:
    """What became of an index.

    Attributes:
        index: As it is now.
        added: Pictures that are new in it.
        changed: Pictures that were tagged again because their file changed.
        removed: Pictures that were taken out because their file is gone.
        skipped: Pictures that could not be read.
    """

    index: Index
    added: int
    changed: int
    removed: int
    skipped: Sequence[Skipped] = ()


def index_pictures(
    folder: str | Path,
    recognizer: Recognizer,
    pictures: Sequence[str],
    *,
    progress: Progress | None = None,
) -> Refreshed:
    """Make an index of pictures, or bring one that is there up to date with them.

    Pictures that the index has and ``pictures`` does not name stay in it while their files do.
    Paths are made whole, so that it does not matter from which folder this is done.

    Raises:
        InputError: the index was made by another recognizer.
        NotFitted: nothing calibrated the recognizer.
        DataError: no picture can be read, the folder holds something else or is being written,
            or the files of all pictures of the index are gone at once.
    """
    pictures = list(dict.fromkeys(map(os.path.abspath, pictures)))
    if not (Path(folder) / "index.json").exists():
        predictions = recognizer.predict(pictures, progress=progress)
        index = Index.create(folder, predictions)
        return Refreshed(index, len(predictions), 0, 0, predictions.skipped)
    index = Index.open(folder)
    _check_same(index, recognizer)
    status = index.status(pictures)
    _check_some_left(index, status)
    if status.gone:
        index.remove(status.gone)
    wanted = [*status.missing, *status.changed]
    found, skipped = _readable(recognizer, wanted, progress)
    if found:
        index.add(found)
    paths = set(found.paths) if found else set()
    changed = len(paths & set(status.changed))
    spoilt = [path for path in status.changed if path not in paths and path in index.paths]
    if spoilt:  # what the index says of them is of a picture that is no more
        index.remove(spoilt)
    return Refreshed(index, len(paths) - changed, changed, len(status.gone), skipped)


def indexed_names(folder: str | Path) -> list[str] | None:
    """The labels of an index; None where there is none yet."""
    return Index.open(folder).names if (Path(folder) / "index.json").exists() else None


def _check_same(index: Index, recognizer: Recognizer) -> None:
    if index.model != recognizer.fingerprint:
        raise InputError(
            f"An index holds predictions of one recognizer: {index.folder} those of {index.model}. "
            f"Got {recognizer.fingerprint}: give the same --model and --labels as before, or "
            "choose a new folder."
        )


def _check_some_left(index: Index, status: Status) -> None:
    if status.gone and len(status.gone) == status.rows:
        raise DataError(
            f"Some of the {status.rows} pictures of {index.folder} should still be there. All are "
            f"gone, such as {next(iter(status.gone))!r}: if a disk is not mounted, mount it and "
            "run again; if they are gone for good, delete the index and make a new one."
        )


def _readable(
    recognizer: Recognizer, paths: Sequence[str], progress: Progress | None
) -> tuple[Predictions | None, Sequence[Skipped]]:
    """Predictions of what can be read; an index lives on when nothing new in it can be."""
    if not paths:
        return None, ()
    try:
        predictions = recognizer.predict(paths, progress=progress)
    except DataError as error:
        return None, [Skipped(path, str(error)) for path in paths]
    return predictions, predictions.skipped
