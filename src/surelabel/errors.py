"""Exceptions that this package raises deliberately.

SurelabelError
├── InputError      (ValueError)   an argument has the wrong shape, type, range or content
├── UnknownName     (LookupError)  a name that is not in a table, vocabulary or index
├── ConfigError     (ValueError)   a setting that does not exist or has an invalid value
├── DataError       (ValueError)   a file or folder that cannot be read, parsed or written
├── MissingPart     (ImportError)  an optional package or file is not installed
├── NotConverged    (RuntimeError) an iteration stopped before it reached its tolerance
└── NotFitted       (RuntimeError) prediction before fitting, or probabilities before calibration
"""


class SurelabelError(Exception):
    """Base class of all exceptions that this package raises deliberately."""


class InputError(SurelabelError, ValueError):
    """An argument has the wrong shape, type, range or content."""


class UnknownName(SurelabelError, LookupError):
    """A name that is not in a table, vocabulary or index."""


class ConfigError(SurelabelError, ValueError):
    """A setting that does not exist or has an invalid value."""


class DataError(SurelabelError, ValueError):
    """A file or folder that cannot be read, parsed or written in the expected format."""


class MissingPart(SurelabelError, ImportError):
    """An optional package or a required file that is not installed."""


class NotConverged(SurelabelError, RuntimeError):
    """An iteration that stopped before it reached its tolerance; its result is not valid."""


class NotFitted(SurelabelError, RuntimeError):
    """An object that must be fitted or calibrated before this call."""
