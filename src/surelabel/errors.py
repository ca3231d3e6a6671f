"""Everything this package raises on purpose.

SurelabelError
├── InputError      (ValueError)   an array, a name or a query is not what it must be
├── UnknownName     (LookupError)  no such loss, method, metric, label …
├── ConfigError     (ValueError)   a setting that does not exist or does not fit
├── DataError       (ValueError)   a file that cannot be read as what it claims to be
├── MissingPart     (ImportError)  an optional package or a font; the message says how to install it
├── NotConverged    (RuntimeError) an iteration ended before it met its goal, and its answer is used
└── NotFitted       (RuntimeError) predict before fit, or probabilities before calibration
"""


class SurelabelError(Exception):
    """Base class: catch this to catch all of ours and none of anyone else's."""


class InputError(SurelabelError, ValueError):
    """An array, a name or a query is not what it must be."""


class UnknownName(SurelabelError, LookupError):
    """A name that is in no table, vocabulary or index."""


class ConfigError(SurelabelError, ValueError):
    """A setting that does not exist or does not fit."""


class DataError(SurelabelError, ValueError):
    """A file or folder that cannot be read, or written, as what it claims to be."""


class MissingPart(SurelabelError, ImportError):
    """An optional package or a system font that is not installed."""


class NotConverged(SurelabelError, RuntimeError):
    """An iteration ended before it met its goal; its answer must not be used as if it had."""


class NotFitted(SurelabelError, RuntimeError):
    """The object has to be fitted, or calibrated, first."""
