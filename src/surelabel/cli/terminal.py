"""Common options of all commands, and output: results on stdout, progress and notes on stderr."""

import json
import os
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from math import isnan
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import click

from surelabel.errors import DataError
from surelabel.files import check_folder_is_replaceable
from surelabel.progress import Progress

PACKAGE = Path(__file__).parents[1]
Command = Callable[..., None]  # function of a command, before and after an option is added
_REORDERING = r"\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # and line separators and surrogates
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REORDERING}]")
_LINE_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f{_REORDERING}]")
MESSAGE_LIMIT = 2000  # characters of a message; the middle of a longer message is omitted
SECONDS = 5.0  # minimum time between two lines of progress
SPEED_SECONDS = 60.0  # time over which the speed is measured
RESUME_SECONDS = 0.01  # a first number within this time was finished by an earlier run


@dataclass(frozen=True)
class Terminal:
    """Output and options of one command.

    Attributes:
        as_json: True if results are printed as JSON instead of text.
        quiet: True if progress and status lines are omitted.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.
        seed: Seed of all random numbers. If None, the seed of the run file or, without a run file,
            the seed 0 is used.
    """

    as_json: bool = False
    quiet: bool = False
    device: str = "cpu"
    seed: int | None = None
    _progress_bars: list[Any] = field(default_factory=list, repr=False, compare=False)

    def print_result(self, value: Any, text: str) -> None:
        """Print a result on stdout.

        Args:
            value: Result that is printed with ``--json``.
            text: Result that is printed without ``--json``.
        """
        output = (
            json.dumps(to_terminal_json_value(value), ensure_ascii=False) if self.as_json else text
        )
        click.echo(escape_terminal_text(output))

    def print_result_batches(self, batches: Iterable[Sequence[tuple[Any, str]]]) -> None:
        """Print a list of results on stdout batch by batch, as soon as a batch is available.

        Args:
            batches: Batches of results: for each, the value for ``--json`` and the text without
                ``--json``. With ``--json``, all values are printed as one array.
        """
        separator = "[" if self.as_json else ""
        for batch in batches:
            texts = [
                json.dumps(to_terminal_json_value(value), ensure_ascii=False)
                if self.as_json
                else f"{text}\n"
                for value, text in batch
            ]
            if texts:
                joined = (", " if self.as_json else "").join(texts)
                with self._hidden_progress_bar():
                    click.echo(escape_terminal_text(f"{separator}{joined}"), nl=False)
                separator = ", " if self.as_json else ""
        if self.as_json:
            click.echo("[]" if separator == "[" else "]")

    def print_step(self, text: str) -> None:
        """Print an intermediate result on stdout, except with ``--json``."""
        if not self.as_json:
            click.echo(escape_terminal_text(text))

    def print_status(self, text: str) -> None:
        """Print a status line on stderr, except with ``--quiet``."""
        if not self.quiet:
            click.echo(escape_terminal_text(text), err=True)

    @contextmanager
    def progress(self, task: str) -> Iterator[Progress | None]:
        """Show the progress of a task on stderr.

        Args:
            task: Name of the task, such as ``Encoding``.

        Returns:
            Function that is called with the number of finished items and the total number of items.
            If ``--quiet`` is given, None is returned.
        """
        if self.quiet:
            yield None
        elif sys.stderr.isatty():
            with _terminal_progress_bar(task, self._progress_bars) as show_progress:
                yield show_progress
        else:
            yield _terminal_progress_lines(task)

    @contextmanager
    def _hidden_progress_bar(self) -> Iterator[None]:
        """Hide the progress bar while results are printed on stdout."""
        for bar in self._progress_bars:
            bar.stop()
        yield
        for bar in self._progress_bars:
            bar.start()


def with_terminal_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options of all commands, and pass a `Terminal` as the first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
    @click.option(
        "--device",
        default="cpu",
        show_default=True,
        help="Device of the encoder: cpu, cuda or mps.",
    )
    @click.option("--seed", type=click.IntRange(0), help="Seed of all random numbers. [0]")
    @click.option("--quiet", is_flag=True, help="Omit progress and status lines.")
    @click.version_option(package_name="surelabel", prog_name="surelabel")
    @wraps(function)
    def command(
        as_json: bool, quiet: bool, device: str, seed: int | None, **arguments: Any
    ) -> None:
        function(Terminal(as_json, quiet, device, seed), **arguments)

    return command


def validate_terminal_output_path(
    _: click.Context, __: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that an output path can be written.

    Raises:
        DataError: If the path is empty or cannot be written.
    """
    if path is not None:
        if not path.strip():
            raise DataError("An output path must not be empty; give a path.")
        absolute = Path(path).absolute()
        existing = next(p for p in (absolute, *absolute.parents) if p.exists())
        if existing != absolute and not existing.is_dir():
            raise DataError(f"{path} cannot be written: {existing} is a file; give another path.")
        if existing.is_dir() and not os.access(existing, os.W_OK):
            raise DataError(
                f"{path} cannot be written: there is no write permission for {existing}; give "
                "another path."
            )
    return path


def validate_terminal_output_folder(
    context: click.Context, option: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that a folder can be written or replaced.

    Raises:
        DataError: If the folder contains the current working folder, or cannot be written.
    """
    if path is not None:
        check_folder_is_replaceable(path)
    return validate_terminal_output_path(context, option, path)


@contextmanager
def print_warnings_as_terminal_notes() -> Iterator[None]:
    """Print each warning of this package once, on one line of stderr, as ``Note: …``."""
    default_showwarning = warnings.showwarning
    printed_notes = set()

    def print_note(message: Any, category: Any, filename: str, *rest: Any, **options: Any) -> None:
        if issubclass(category, UserWarning) and Path(filename).is_relative_to(PACKAGE):
            note = join_lines_for_terminal(message)
            if note not in printed_notes:
                printed_notes.add(note)
                click.echo(f"Note: {note}", err=True)
        else:
            default_showwarning(message, category, filename, *rest, **options)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="surelabel")
        warnings.showwarning = print_note
        yield


def join_lines_for_terminal(text: object) -> str:
    """Join the lines of a message into one line, escape control characters, and shorten the line.

    A damaged file can contain a label of a million characters, which some messages repeat.
    """
    line = escape_terminal_text(" ".join(line.strip() for line in str(text).splitlines()))
    half = MESSAGE_LIMIT // 2
    return line if len(line) <= MESSAGE_LIMIT else f"{line[:half]} … {line[-half:]}"


def escape_terminal_text(text: str) -> str:
    """Return a text without characters that control the terminal, except line breaks and tabs.

    File names can contain escape sequences that change the terminal, characters that reverse the
    order of the text, and bytes that are not Unicode. Each such character is replaced by ``\\u``
    and four hexadecimal digits, which is also valid in a JSON string.

    Example:
        >>> escape_terminal_text("red \\x1b[31m.jpg")
        'red \\\\u001b[31m.jpg'
    """
    return _CONTROL.sub(_escape_control_character, text)


def escape_terminal_line(text: object) -> str:
    """Return a path or label without control characters, including line breaks and tabs."""
    return _LINE_CONTROL.sub(_escape_control_character, str(text))


def _escape_control_character(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def format_terminal_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table as text with aligned columns.

    Args:
        header: Column titles.
        rows: Cells of each row.
    """
    lines = [[escape_terminal_line(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


@runtime_checkable
class ConvertibleToList(Protocol):
    """Array or tensor; the command line imports neither NumPy nor PyTorch to print text."""

    def tolist(self) -> object:
        """Return the elements as nested lists, or one number."""


def to_terminal_json_value(value: Any) -> Any:
    """Convert arrays to lists, keys to strings and NaN to None, to encode a value as JSON."""
    if isinstance(value, Mapping):
        return {str(key): to_terminal_json_value(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    if isinstance(value, ConvertibleToList):
        return to_terminal_json_value(value.tolist())
    return [to_terminal_json_value(item) for item in value]


class ProgressSpeed:
    """Items per second, over the last ``SPEED_SECONDS``.

    If the number of finished items decreases, as in a second pass over the images, the measurement
    starts again. The first number starts the measurement if it is given at once.

    Args:
        start: Time at which the task starts, in seconds.
    """

    def __init__(self, start: float):
        self._points = deque([(start, 0)])

    def update(self, now: float, done: int) -> float | None:
        """Return the items per second, or None if it is not known yet.

        Args:
            now: Current time in seconds.
            done: Number of finished items.
        """
        last_time, last_done = self._points[-1]
        if done < last_done:
            self._points = deque([(last_time, 0)])
        elif len(self._points) == 1 and now - last_time < RESUME_SECONDS:
            self._points.clear()
        self._points.append((now, done))
        while len(self._points) > 2 and now - self._points[1][0] >= SPEED_SECONDS:
            self._points.popleft()
        (first_time, first_done), (last_time, last_done) = self._points[0], self._points[-1]
        seconds = last_time - first_time
        return (last_done - first_done) / seconds if seconds > 0 else None


@contextmanager
def _terminal_progress_bar(task: str, bars: list[Any]) -> Iterator[Progress]:
    """Show a progress bar, which is an element of ``bars`` while it is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    columns += [TextColumn("{task.fields[rate]}"), TimeRemainingColumn()]
    speed = ProgressSpeed(time.monotonic())
    # auto_refresh would start a second thread, and worker processes are forked during progress
    # without redirect_stdout, rich would write results to stderr
    with Bar(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
    ) as bar:
        bars.append(bar)
        task_id = bar.add_task(task, total=None, rate="")

        def show_progress(done: int, total: int) -> None:
            rate = speed.update(time.monotonic(), done)
            text = "" if rate is None else f"{rate:.0f}/s"
            bar.update(task_id, completed=done, total=total, rate=text, refresh=True)

        try:
            yield show_progress
        finally:
            bars.remove(bar)


def _terminal_progress_lines(task: str) -> Progress:
    start = time.monotonic()
    speed = ProgressSpeed(start)
    last_line = start - SECONDS  # the first line is printed at once

    def show_progress(done: int, total: int) -> None:
        nonlocal last_line
        now = time.monotonic()
        rate = speed.update(now, done)
        if rate and now - last_line >= SECONDS and done < total:
            last_line, remaining = now, (total - done) / rate
            click.echo(f"{task}: {done} of {total}, {rate:.0f}/s, {remaining:.0f} s left", err=True)

    return show_progress
