"""This module defines the type of functions that receive the progress of a long computation."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # number of finished steps, total number of steps


class ProgressWithUnit:
    """Progress function that also receives the unit in which the steps are counted.

    Args:
        show: Function that is called with the number of finished steps, the total number of steps
            and the unit.
        unit: Unit of the steps in the plural, such as ``images``.
    """

    def __init__(self, show: Callable[[int, int, str], None], unit: str):
        self.show, self.unit = show, unit

    def __call__(self, done: int, total: int) -> None:
        """Receive the number of finished steps and the total number of steps."""
        self.show(done, total, self.unit)


def report_progress(progress: Progress | None, done: int, total: int, unit: str) -> None:
    """Call a progress function with a unit that can differ from the unit of the whole computation.

    Args:
        progress: Function that receives the progress, or None.
        done: Number of finished steps.
        total: Total number of steps.
        unit: Unit of the steps in the plural, such as ``epochs``.
    """
    if isinstance(progress, ProgressWithUnit):
        progress.show(done, total, unit)
    elif progress is not None:
        progress(done, total)
