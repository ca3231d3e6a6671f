"""Append corrections of an index to a CSV file that several processes can share."""

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from threading import Lock

from surelabel.counts import format_count
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.correction_history import CorrectionHistory
from surelabel.data.labels.resolution.correction_rows import (
    LOG_COLUMNS,
    UNDO_PREFIX,
    CorrectionRow,
    format_correction_rows,
    read_correction_header,
    read_correction_rows,
)
from surelabel.data.labels.resolution.image_resolution import unresolved_image_path
from surelabel.data.spreadsheet_cells import FORMULA_STARTS
from surelabel.errors import DataError, InputError, UnknownName
from surelabel.file_locks import lock_path
from surelabel.file_readers import open_regular_file, quote_of_file
from surelabel.files import FileVersion, file_version
from surelabel.records import RANDOM_ROW

_HEADER_LINE = ",".join(LOG_COLUMNS) + "\n"


class CorrectionLog:
    """CSV file of corrections, to which threads and processes append events.

    An event is written at once and under a lock, so that no event is lost. The file is created by
    the first event. If another program changes the file, the file is read again. If another program
    damages the file, an error is raised and nothing is written.

    Args:
        path: Path of the CSV file.

    Attributes:
        path: Absolute path of the CSV file.
        note: Sentence about an incomplete event or header line that was removed, or an empty text.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = CorrectionLog(Path(folder) / "corrections.csv")
        ...     event = log.record("/photos/a.jpg", {"lion": 1.0}, chosen_by="query")
        ...     log.history().targets
        {'/photos/a.jpg': {'lion': 1.0}}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.abspath(path))
        self.note = ""
        self._lock = Lock()
        self._version: FileVersion | None = None
        self._n_bytes = 0  # length of the complete events in the file
        self._history = CorrectionHistory()

    def history(self) -> CorrectionHistory:
        """Return the current corrections, after reading a file that changed.

        Raises:
            DataError: If the file is damaged or cannot be read.
        """
        with self._lock:
            return self._read()

    def record(
        self,
        path: str,
        targets: Mapping[str, float],
        *,
        chosen_by: str,
        probabilities: Mapping[str, float] | None = None,
        query: str = "",
        rank: int | None = None,
    ) -> str:
        """Append the corrections of one image, and return the identifier of the event.

        Args:
            path: Absolute path of the image.
            targets: Corrected target of each label: 1, 0, or NaN for unknown.
            chosen_by: How the image was chosen; ``random`` for a complete check of an image of the
                random sample.
            probabilities: Probability of each label at this time. If None, none is recorded.
            query: Query whose result contained the image. Control characters become spaces.
            rank: Position of the image in the result, counted from 0.

        Raises:
            InputError: If a path or a label contains a control character, or if ``chosen_by`` is
                ``random`` and the image is not in the random sample.
            DataError: If the file is damaged or cannot be written.
        """
        text = "".join(" " if has_control_character(sign) else sign for sign in query)

        def rows(history: CorrectionHistory) -> list[CorrectionRow]:
            if chosen_by == RANDOM_ROW and path not in history.sampled:
                raise InputError(
                    "A check requires an image of the random sample; got another image. Request "
                    "images of the sample first, or send the correction without sample."
                )
            inclusion = history.sampled[path] if chosen_by == RANDOM_ROW else nan
            return [
                CorrectionRow(
                    path,
                    label,
                    target,
                    (probabilities or {}).get(label, nan),
                    chosen_by,
                    inclusion,
                    text,
                    rank,
                )
                for label, target in targets.items()
            ]

        return self.append(rows)[0]

    def undo(self, event: str) -> tuple[str, int]:
        """Withdraw the corrections of an event.

        The appended rows contain the targets that hold without the event, so that a program that
        uses the last row of each label also reads the right targets.

        Args:
            event: Identifier of the event.

        Returns:
            The identifier of the new event, and its number of rows.

        Raises:
            UnknownName: If no corrections have this event.
            InputError: If the event was undone before.
            DataError: If the file is damaged or cannot be written.
        """

        def rows(history: CorrectionHistory) -> list[CorrectionRow]:
            undone = [row for row in history.rows if row.event == event and row.label]
            if not event or not undone:
                raise UnknownName(
                    f"The event {quote_of_file(event)} is not in the corrections. Use an event of "
                    "/api/corrections."
                )
            if event in history.undone:
                raise InputError(
                    f"The event {quote_of_file(event)} was undone before. Each event can be undone "
                    "once."
                )
            after = history.extended([undone[0]._replace(event=UNDO_PREFIX + event)])
            effective = {
                (row.path, row.label): row for row in after.rows if row.event not in after.undone
            }
            return [
                effective.get((row.path, row.label), row._replace(target=nan)) for row in undone
            ]

        return self.append(rows, undone_event=event)

    def append_sample(self, paths: Sequence[str], inclusion_probability: float) -> str:
        """Append images to the random sample, and return the identifier of the event.

        Args:
            paths: Absolute paths of the new images of the sample.
            inclusion_probability: Probability of each image of the extended sample, in (0, 1].

        Raises:
            DataError: If the file is damaged or cannot be written.
        """
        rows = [
            CorrectionRow(
                path, "", nan, chosen_by=RANDOM_ROW, inclusion_probability=inclusion_probability
            )
            for path in paths
        ]
        return self.append(lambda _: rows)[0]

    def append(
        self,
        rows_of_history: Callable[[CorrectionHistory], Sequence[CorrectionRow]],
        *,
        undone_event: str = "",
    ) -> tuple[str, int]:
        """Append one event, whose rows are computed from the current history under the lock.

        Args:
            rows_of_history: Function that returns the rows of the event, with absolute paths. If
                there is no row, nothing is written.
            undone_event: Event that the rows withdraw, or an empty text.

        Returns:
            The identifier of the event, and its number of rows. Without rows, the file does not
            contain the event.

        Raises:
            InputError: If a path or a label contains a control character.
            DataError: If the file is damaged or cannot be written.
        """
        with self._lock, _write_errors_as_data_errors(self.path), lock_path(self.path):
            history = self._read()
            rows = rows_of_history(history)
            _check_cells(rows)
            event = (
                f"{UNDO_PREFIX}{undone_event}"
                if undone_event
                else f"e{len(rows)}-{secrets.token_hex(8)}"
            )
            time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            rows = [row._replace(event=event, time=time) for row in rows]
            if rows:
                self._write(rows)
                self._history = history.extended(rows)
        return event, len(rows)

    def _read(self) -> CorrectionHistory:
        """Return the history of the file, which is read again if it changed.

        Raises:
            DataError: If the file is damaged or cannot be read.
        """
        version = _path_version(self.path)
        if version != self._version:
            if version is None or _is_empty_log(self.path):
                history, n_bytes = CorrectionHistory(), 0
            else:
                table = read_correction_rows(self.path)
                history = CorrectionHistory.of_rows(table.rows, self.path.parent)
                n_bytes = table.n_bytes
            self._history, self._n_bytes, self._version = history, n_bytes, version
        return self._history

    def _write(self, rows: Sequence[CorrectionRow]) -> None:
        """Append rows to the file, or restore the file if this is not possible.

        Raises:
            DataError: If the header is not that of this class, or if another program changed the
                file after it was read.
            OSError: If the file cannot be written.
        """
        self._check_header()
        folder = self.path.parent
        text = format_correction_rows(
            [row._replace(path=_path_in_file(row.path, folder)) for row in rows]
        )
        header = _HEADER_LINE if not self._n_bytes else ""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            status = os.fstat(descriptor)
            size = status.st_size
            if file_version(status) != self._version and (self._version or size):
                raise DataError(
                    f"The correction was not saved, because another program changed {self.path} at "
                    "the same time. Try again."
                )
            if self._n_bytes < size:
                file.truncate(self._n_bytes)
                self.note = _describe_removed_bytes(size - self._n_bytes, self._n_bytes)
            line_break = "" if _ends_with_line_break(descriptor, self._n_bytes) else "\n"
            try:
                _write_at(descriptor, (line_break + header + text).encode(), self._n_bytes)
            except BaseException:
                self._version = None  # the file is read again
                with suppress(OSError):
                    file.truncate(self._n_bytes)
                raise
            status = os.fstat(descriptor)
        self._version, self._n_bytes = file_version(status), status.st_size

    def _check_header(self) -> None:
        """Check that rows can be appended to the file.

        Raises:
            DataError: If the file has other columns or another delimiter.
        """
        if not self._n_bytes:
            return
        delimiter, header = read_correction_header(self.path)
        if delimiter != "," or tuple(header) != LOG_COLUMNS:
            raise DataError(
                f"{self.path} must begin with the line {_HEADER_LINE.strip()} to receive "
                "corrections; got other columns or another delimiter. Correct the first line, or "
                "give another file with --corrections."
            )


def _describe_removed_bytes(n_removed: int, n_kept: int) -> str:
    """Return a sentence on the bytes after the complete events, or on a part of the header line."""
    removed = format_count(n_removed, "byte")
    verb = "was" if n_removed == 1 else "were"
    if not n_kept:
        return f"{removed} of a header line that was not written completely {verb} replaced."
    return (
        f"{removed} of a correction that was not written completely {verb} removed from the end of "
        "the file."
    )


def _check_cells(rows: Sequence[CorrectionRow]) -> None:
    """Check that each row can be written as one line.

    Raises:
        InputError: If a path or a label contains a control character.
    """
    for row in rows:
        for text in (row.path, row.label):
            if has_control_character(text):
                raise InputError(
                    "A corrected path or label must not contain a line break, a tab or another "
                    f"control character; got {quote_of_file(text)}. Rename the file or the label."
                )


def _path_in_file(path: str, folder: Path) -> str:
    """Return a path relative to the folder of the file, or absolute if it is not in the folder."""
    relative = unresolved_image_path(path, folder)
    # with ./ the path is the same, and a spreadsheet program does not execute it as a formula
    return f"./{relative}" if relative.startswith(FORMULA_STARTS) else relative


def _path_version(path: Path) -> FileVersion | None:
    """Return values that change when a file is written or replaced, or None without a file.

    Raises:
        DataError: If the state of the file cannot be read.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from error
    return file_version(status)


def _is_empty_log(path: Path) -> bool:
    """Return whether a file is empty, or contains only the beginning of the header line."""
    with open_regular_file(path) as file:
        return _HEADER_LINE[:-1].encode().startswith(file.read(len(_HEADER_LINE)))


def _ends_with_line_break(descriptor: int, n_bytes: int) -> bool:
    """Return whether the first ``n_bytes`` bytes of a file end with a line break, or are none."""
    if not n_bytes:
        return True
    os.lseek(descriptor, n_bytes - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"


def _write_at(descriptor: int, content: bytes, position: int) -> None:
    """Write bytes at a position of a file, and wait until they are on the disk.

    Raises:
        OSError: If not all bytes can be written.
    """
    os.lseek(descriptor, position, os.SEEK_SET)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


@contextmanager
def _write_errors_as_data_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "Free disk space." if is_full else "Check the folder and its permissions."
        raise DataError(
            f"The correction was not saved, because {path} cannot be written: "
            f"{error.strerror or error}. {remedy}"
        ) from error
