"""Print the log messages of this package as status lines of a command."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from surelabel.package_imports import import_without_garbage_collection

IMPORT_STATUS = "Importing torch and open_clip"  # takes seconds


class _StatusLineHandler(logging.Handler):
    def __init__(self, print_status: Callable[[str], None]):
        super().__init__(logging.INFO)
        self._print_status = print_status

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a record."""
        self._print_status(record.getMessage())


@contextmanager
def print_log_as_terminal_status(
    print_status: Callable[[str], None], *, quiet: bool
) -> Iterator[None]:
    """Print the messages of the package about downloads, weights and texts as status lines.

    Args:
        print_status: Function that prints a status line.
        quiet: If True, the level of the log is ERROR, so that downloads show no progress either.
    """
    logger, handler = logging.getLogger("surelabel"), _StatusLineHandler(print_status)
    level = logger.level
    logger.setLevel(logging.ERROR if quiet else logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def print_import_status(print_status: Callable[[str], None]) -> None:
    """Print a status line and import torch and open_clip, unless torch is imported already.

    Args:
        print_status: Function that prints a status line.
    """
    if "torch" not in sys.modules:
        print_status(IMPORT_STATUS)
        import_without_garbage_collection("surelabel.encoders")
