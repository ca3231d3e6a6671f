"""Type of the functions that receive the progress of a long computation."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # number of finished steps, total number of steps
