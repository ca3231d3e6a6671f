"""Define the exceptions that this package raises deliberately.

SurelabelError
├── InputError      (ValueError)   an argument of the wrong shape, type, range or content
│   └── QuerySyntaxError           a search query that violates the grammar
├── UnknownName     (LookupError)  a name that is not in a table, vocabulary or index
├── ConfigError     (ValueError)   a setting that does not exist or has an invalid value
├── DataError       (ValueError)   a file or folder that cannot be read, parsed or written
│   └── NoReadableImage            a collection in which no image can be read
├── MissingPart     (ImportError)  an optional package or file that is not installed
├── NotConverged    (RuntimeError) an iteration that stopped before convergence
└── NotFitted       (RuntimeError) prediction before fitting, or probabilities before calibration
"""

from collections.abc import Sequence
from typing import Any


class SurelabelError(Exception):
    """Base class of all exceptions that this package raises deliberately."""


class InputError(SurelabelError, ValueError):
    """Exception for an argument of the wrong shape, type, range or content."""


class QuerySyntaxError(InputError):
    """Exception for a search query that violates the grammar.

    Attributes:
        reason: Description of the error and of its correction.
        position: Position of the invalid character in the query, counted from 0.
        excerpt: Part of the query around the invalid character, on one line.
        mark: Position of the invalid character in the excerpt, counted from 0.
    """

    def __init__(self, reason: str, position: int, excerpt: str, mark: int):
        super().__init__(f"{reason}\n  {excerpt}\n  {' ' * mark}^")
        self.reason, self.position = reason, position
        self.excerpt, self.mark = excerpt, mark

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and its arguments for pickle, because the message is not an argument."""
        return type(self), (self.reason, self.position, self.excerpt, self.mark)


class UnknownName(SurelabelError, LookupError):
    """Exception for a name that is not in a table, vocabulary or index."""


class ConfigError(SurelabelError, ValueError):
    """Exception for a setting that does not exist or has an invalid value."""


class DataError(SurelabelError, ValueError):
    """Exception for a file or folder that cannot be read, parsed or written."""


class NoReadableImage(DataError):
    """Exception for a collection in which no image can be read.

    Attributes:
        skipped: Images that cannot be read, as ``SkippedImage`` objects, which contain the reason.
    """

    def __init__(self, message: str, skipped: Sequence[Any] = ()):
        super().__init__(message)
        self.skipped = tuple(skipped)


class MissingPart(SurelabelError, ImportError):
    """Exception for an optional package or a required file that is not installed."""


class NotConverged(SurelabelError, RuntimeError):
    """Exception for an iteration that stopped before convergence; the result is not valid."""


class NotFitted(SurelabelError, RuntimeError):
    """Exception for a method call on an object that must be fitted or calibrated first."""
