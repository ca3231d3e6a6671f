"""What all commands share: options, results on stdout, progress and notes on stderr."""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from math import isnan
from pathlib import Path
from typing import Any

import click

from surelabel.errors import DataError
from surelabel.files import check_replaceable, utf8

Progress = Callable[[int, int], None]
PACKAGE = Path(__file__).parents[1]
SECONDS = 5.0  # between two plain lines of progress


@dataclass(frozen=True)
class Terminal:
    """How to answer whoever gave the command.

    Attributes:
        as_json: Results as JSON instead of text.
        quiet: No progress and no closing lines.
        device: Where the encoder runs.
        seed: Of everything that is drawn; None leaves it to the run file.
    """

    as_json: bool = False
    quiet: bool = False
    device: str = "cpu"
    seed: int | None = None

    def show(self, value: Any, text: str) -> None:
        """Print a result: ``value`` as JSON where that was asked for, else ``text``."""
        shown = json.dumps(plain(value), ensure_ascii=False) if self.as_json else text
        click.echo(utf8(shown))  # a file name need not be Unicode; what is not becomes an escape

    def tell(self, text: str) -> None:
        """Print a step of a longer story, which JSON leaves out."""
        if not self.as_json:
            click.echo(utf8(text))

    def say(self, text: str) -> None:
        """Say on stderr how it goes."""
        if not self.quiet:
            click.echo(utf8(text), err=True)

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress | None]:
        """Something to call with the number done and the total; None when quiet."""
        if self.quiet:
            yield None
        elif sys.stderr.isatty():
            with _bar(what) as bar:
                yield bar
        else:
            yield _lines(what)


def with_terminal(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all commands have, as a `Terminal` in the first place."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
    @click.option(
        "--device", default="cpu", show_default=True, help="Where the encoder runs: cpu, cuda, mps."
    )
    @click.option("--seed", type=click.IntRange(0), help="Of everything that is drawn. [0]")
    @click.option("--quiet", is_flag=True, help="No progress and no closing lines.")
    @click.version_option(package_name="surelabel", prog_name="surelabel")
    @wraps(function)
    def command(as_json: bool, quiet: bool, device: str, seed: int | None, **given: Any) -> None:
        function(Terminal(as_json, quiet, device, seed), **given)

    return command


def output(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """Refuse, before any work is done, a place where nothing can be written."""
    if path is not None:
        if not path.strip():
            raise DataError("Expected a place to write to, got an empty text; name one.")
        there = next(
            p for p in (Path(path).absolute(), *Path(path).absolute().parents) if p.exists()
        )
        if there != Path(path).absolute() and not there.is_dir():
            raise DataError(f"{path} cannot be written: {there} is a file; name another place.")
        if there.is_dir() and not os.access(there, os.W_OK):
            raise DataError(f"{path} cannot be written: {there} is closed; name another place.")
    return path


def whole_folder(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """The same for a folder that is written as a whole: it cannot be the current one."""
    if path is not None:
        check_replaceable(path)
    return output(context, option, path)


@contextmanager
def notes() -> Iterator[None]:
    """Show a warning of this package as one line, ``Note: …``, on stderr; each only once."""
    usual, said = warnings.showwarning, set()

    def show(message: Any, category: Any, filename: str, *rest: Any, **more: Any) -> None:
        if issubclass(category, UserWarning) and Path(filename).is_relative_to(PACKAGE):
            line = one_line(message)
            if line not in said:
                said.add(line)
                click.echo(f"Note: {line}", err=True)
        else:
            usual(message, category, filename, *rest, **more)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="surelabel")
        warnings.showwarning = show
        yield


def one_line(text: object) -> str:
    """A message without its line breaks."""
    return " ".join(line.strip() for line in str(text).splitlines())


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns side by side."""
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def plain(value: Any) -> Any:
    """A value that JSON has a word for; undefined numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    return plain(value.tolist()) if hasattr(value, "tolist") else [plain(item) for item in value]


@contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    columns += [TextColumn("{task.fields[rate]}"), TimeRemainingColumn()]
    start = before = time.monotonic()
    reached = 0
    # auto_refresh would be a second thread, and worker processes are forked meanwhile
    with Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def tell(done: int, total: int) -> None:
            nonlocal start, before, reached
            now = time.monotonic()
            start = before if done < reached else start  # another pass, with a speed of its own
            before, reached = now, done
            rate = f"{done / max(now - start, 1e-9):.0f}/s"
            bar.update(task, completed=done, total=total, rate=rate, refresh=True)

        yield tell


def _lines(what: str) -> Progress:
    start = before = time.monotonic()
    last = start - SECONDS  # so that the first line comes at once
    reached = 0

    def tell(done: int, total: int) -> None:
        nonlocal start, before, last, reached
        now = time.monotonic()
        start = before if done < reached else start  # another pass, with a speed of its own
        before, reached = now, done
        if now - last >= SECONDS and 0 < done < total:
            last, rate = now, done / max(now - start, 1e-9)
            left = (total - done) / rate
            click.echo(f"{what}: {done} of {total}, {rate:.0f}/s, {left:.0f} s left", err=True)

    return tell
