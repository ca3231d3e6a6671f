"""Show the progress of a task on stderr, as a bar on a terminal and otherwise as lines."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

SECONDS = 5.0  # minimum time between two lines of progress
SPEED_SECONDS = 60.0  # time over which the speed is measured
ShowProgress = Callable[[int, int, str], None]  # finished items, all items, their unit
RESUME_SECONDS = 0.01  # a first number within this time was finished by an earlier run


class ProgressSpeed:
    """Items per second, over the last ``SPEED_SECONDS``.

    If the number of finished items decreases, as in a second pass over the images, the measurement
    starts again. If the first number is given within ``RESUME_SECONDS``, the measurement starts
    with this number.

    Args:
        start: Time at which the task starts, in seconds.
    """

    def __init__(self, start: float):
        self._points = deque([(start, 0)])

    def update(self, now: float, done: int) -> float | None:
        """Return the items per second, or None if the speed is not known yet.

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
def terminal_progress_bar(task: str, bars: list[Any]) -> Iterator[ShowProgress]:
    """Show a progress bar, and yield the function that updates the bar.

    Args:
        task: Name of the task, such as ``Encoding``.
        bars: List of the visible progress bars; the new bar is an element while it is shown.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    columns += [TextColumn("{task.fields[unit]}"), TextColumn("{task.fields[rate]}")]
    columns += [TimeRemainingColumn()]
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
        task_id = bar.add_task(task, total=None, unit="", rate="")

        def show_progress(done: int, total: int, unit: str) -> None:
            rate = speed.update(time.monotonic(), done)
            text = "" if rate is None else _rate_text(rate)
            bar.update(task_id, completed=done, total=total, unit=unit, rate=text, refresh=True)

        try:
            yield show_progress
        finally:
            bars.remove(bar)


def terminal_progress_lines(task: str) -> ShowProgress:
    """Return a function that prints the progress of a task, at most once in ``SECONDS``.

    Args:
        task: Name of the task, such as ``Encoding``.
    """
    start = time.monotonic()
    speed = ProgressSpeed(start)
    last_line = start - SECONDS  # the first line is printed at once

    def show_progress(done: int, total: int, unit: str) -> None:
        nonlocal last_line
        now = time.monotonic()
        rate = speed.update(now, done)
        if rate and now - last_line >= SECONDS and done < total:
            last_line, remaining = now, (total - done) / rate
            left = f"{remaining:.0f} s left"
            click.echo(f"{task}: {done} of {total} {unit}, {_rate_text(rate)}, {left}", err=True)

    return show_progress


def _rate_text(rate: float) -> str:
    """Return a rate as items per second, or as seconds per item if it is below one."""
    return f"{rate:.0f}/s" if rate >= 1 or rate <= 0 else f"{1 / rate:.1f} s each"
