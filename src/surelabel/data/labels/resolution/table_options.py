"""Define the options that state how the columns and cells of a label table are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from surelabel.errors import InputError

TargetReading = Literal["negative", "unknown"]
Separator = Literal["comma", "semicolon", "pipe", "space"]

SEPARATORS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
TARGET_READINGS: tuple[TargetReading, ...] = ("negative", "unknown")


@dataclass(frozen=True)
class TableOptions:
    """Options for the columns and cells of a label table; see :func:`surelabel.data.read_labels`.

    Attributes:
        image_column: Column of the image paths. If None, the column is found by its name.
        ignore: Columns that are neither image paths nor labels.
        separator: Separator of the labels in one column of labels. If None, the separator is the
            only one of ``,``, ``;`` and ``|`` that occurs in the column.
        minus_one: Meaning of the target -1. If None, a table with the target -1 is refused.
        zero: Meaning of the target 0. If None, 0 is negative, but a table with the targets -1 and 0
            is refused if ``minus_one`` is ``negative``.

    Raises:
        InputError: If an option has another type or value.
    """

    image_column: str | None = None
    ignore: Sequence[str] = ()
    separator: Separator | None = None
    minus_one: TargetReading | None = None
    zero: TargetReading | None = None

    def __post_init__(self) -> None:
        if isinstance(self.ignore, str):
            raise InputError(
                f"ignore must be a list of columns; got the string {self.ignore!r}. Write "
                f"[{self.ignore!r}]."
            )
        for name, value, allowed in (
            ("separator", self.separator, tuple(SEPARATORS)),
            ("minus_one", self.minus_one, TARGET_READINGS),
            ("zero", self.zero, TARGET_READINGS),
        ):
            if value is not None and value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")

    @property
    def given(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [name for name, value in vars(self).items() if value not in (None, (), [])]


def describe_table_option(name: str, value: str) -> str:
    """Return an option with its value, as it is typed in a command and in Python.

    Args:
        name: Name of an attribute of ``TableOptions`` with one value.
        value: Value of the option.

    Example:
        >>> describe_table_option("minus_one", "negative")
        "--minus-one negative (in Python minus_one='negative')"
    """
    return f"--{name.replace('_', '-')} {quote(value)} (in Python {name}={value!r})"


def describe_ignore_option(columns: Sequence[str]) -> str:
    """Return the option that ignores columns, as it is typed in a command and in Python.

    Example:
        >>> describe_ignore_option(["split", "image width"])
        "--ignore split --ignore 'image width' (in Python ignore=['split', 'image width'])"
    """
    options = " ".join(f"--ignore {quote(column)}" for column in columns)
    return f"{options} (in Python ignore={list(columns)!r})"
