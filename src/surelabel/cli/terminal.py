"""Define common options of all commands, and print results on stdout and progress on stderr."""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click

from surelabel.cli.option_errors import check_no_empty_option, name_options_in_errors
from surelabel.cli.terminal_log import print_import_status, print_log_as_terminal_status
from surelabel.cli.terminal_progress import terminal_progress_bar, terminal_progress_lines
from surelabel.cli.terminal_text import (
    escape_terminal_text,
    join_lines_for_terminal,
    to_terminal_json_value,
)
from surelabel.progress import Progress, ProgressWithUnit

PACKAGE = Path(__file__).parents[1]
Command = Callable[..., None]  # function of a command, before and after an option is added


@dataclass(frozen=True)
class Terminal:
    """Output and options of one command.

    Attributes:
        as_json: True if results are printed as JSON instead of text.
        quiet: True if progress, status lines and notes are omitted. Warnings are printed.
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

    def print_warning(self, text: str) -> None:
        """Print a warning on stderr, also with ``--quiet``."""
        click.echo(escape_terminal_text(f"Warning: {text}"), err=True)

    def print_import_status(self) -> None:
        """Print a status line and import torch, which takes seconds."""
        print_import_status(self.print_status)

    @contextmanager
    def progress(self, task: str, unit: str = "images") -> Iterator[Progress | None]:
        """Show the progress of a task on stderr.

        Args:
            task: Name of the task, such as ``Encoding``.
            unit: Unit of the items in the plural, unless a part of the task has another unit.

        Yields:
            Function that is called with the number of finished items and the total number of items.
            If ``--quiet`` is given, None.
        """
        if self.quiet:
            yield None
        elif sys.stderr.isatty():
            with terminal_progress_bar(task, self._progress_bars) as show_progress:
                yield ProgressWithUnit(show_progress, unit)
        else:
            yield ProgressWithUnit(terminal_progress_lines(task), unit)

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
    @click.option(
        "--quiet",
        is_flag=True,
        help="Print no progress and no status lines. Results, warnings, errors and unreadable "
        "images are still printed.",
    )
    @click.version_option(package_name="surelabel", prog_name="surelabel")
    @wraps(function)
    def command(
        as_json: bool, quiet: bool, device: str, seed: int | None, **arguments: Any
    ) -> None:
        terminal = Terminal(as_json, quiet, device, seed)
        check_no_empty_option(click.get_current_context().command, arguments)
        with (
            hide_terminal_notes(hidden=quiet),
            name_options_in_errors(),
            print_log_as_terminal_status(terminal.print_status, quiet=quiet),
        ):
            function(terminal, **arguments)

    return command


@contextmanager
def hide_terminal_notes(*, hidden: bool) -> Iterator[None]:
    """Discard all warnings, including warnings of other packages, if ``hidden`` is True."""
    with warnings.catch_warnings():
        if hidden:
            warnings.simplefilter("ignore")
        yield


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
