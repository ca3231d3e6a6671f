"""Define the terms and filters of a query, and write them in the query language."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

FileField: TypeAlias = Literal["date", "width", "height"]
Comparison: TypeAlias = Literal["<", "<=", "=", ">=", ">"]
DEFAULT_NEAREST = 1000  # images to which `like:` restricts a search
OPERATOR_WORDS = {"and": "&", "not": "!"}
_NEEDS_QUOTES = re.compile(r'[&|!()<>~:"]|(?:^|\s)(?:date|width|height)\s*(?:=|$)', re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?)?)?)?")


@dataclass(frozen=True)
class LabelTerm:
    """Label of a query, which is positive in an image with a probability.

    Attributes:
        name: Name of the label.
    """

    name: str

    def __str__(self) -> str:
        """Return the label in the query language, quoted if necessary."""
        return quote_label(self.name)


@dataclass(frozen=True)
class SentenceTerm:
    """Sentence of a query, which describes an image with a probability.

    Attributes:
        text: Sentence, without quotes.
    """

    text: str

    def __str__(self) -> str:
        """Return the sentence in the query language."""
        return "~" + _quoted(self.text)


@dataclass(frozen=True)
class LabelThreshold:
    """Filter for images in which the probability of a label reaches a bound, or is below it.

    Attributes:
        name: Name of the label.
        bound: Bound of the probability, in [0, 1].
        is_minimum: If True, the probability must be at least the bound; otherwise, it must be below
            the bound.
    """

    name: str
    bound: float
    is_minimum: bool

    def __str__(self) -> str:
        """Return the filter in the query language."""
        return f"{quote_label(self.name)}{'>' if self.is_minimum else '<'}{self.bound!r}"


@dataclass(frozen=True)
class PathFilter:
    """Filter for the stored path of an image, which is relative to the root if it is in the root.

    Attributes:
        pattern: Pattern of the whole path, in which ``*`` matches any characters, and ``?`` matches
            one character. Case is ignored.
    """

    pattern: str

    def __str__(self) -> str:
        """Return the filter in the query language."""
        return f"path:{quote_path(self.pattern)}"


@dataclass(frozen=True)
class FileFilter:
    """Filter for the date of an image, or for its width or height in pixels.

    Attributes:
        field: ``date``, ``width`` or ``height``.
        comparison: ``<``, ``<=``, ``=``, ``>=`` or ``>``.
        value: Date such as ``2024``, ``2024-05``, ``2024-05-31`` or ``2024-05-31T18:30``, or a
            whole number of at most 9 digits.

    Raises:
        ValueError: If the value is not a valid date or whole number.
    """

    field: FileField
    comparison: Comparison
    value: str

    def __post_init__(self) -> None:
        if self.field == "date":
            date_period(self.value)
        elif not re.fullmatch(r"\d{1,9}", self.value, re.ASCII):
            raise ValueError(f"{self.field} must be a whole number of pixels")

    def __str__(self) -> str:
        """Return the filter in the query language."""
        return f"{self.field}{self.comparison}{self.value}"


@dataclass(frozen=True)
class LikeTerm:
    """Restriction of a search to the images that are most similar to an example.

    Attributes:
        path: Path of the example.
        count: Number of most similar images, >= 1.
    """

    path: str
    count: int = DEFAULT_NEAREST

    def __str__(self) -> str:
        """Return the restriction in the query language."""
        count = "" if self.count == DEFAULT_NEAREST else f"#{self.count}"
        return f"like:{_quoted(self.path) if '#' in self.path else quote_path(self.path)}{count}"


QueryTerm: TypeAlias = LabelTerm | SentenceTerm
QueryFilter: TypeAlias = LabelThreshold | PathFilter | FileFilter


def quote_label(name: str) -> str:
    """Return a label in the query language, in quotes if necessary.

    Example:
        >>> print(quote_label("hot dog"), quote_label("salt and pepper"))
        hot dog "salt and pepper"
    """
    is_plain = not _NEEDS_QUOTES.search(name) and " ".join(name.split()) == name
    has_operator = any(word.lower() in OPERATOR_WORDS for word in name.split())
    return name if is_plain and not has_operator else _quoted(name)


def quote_path(path: str) -> str:
    """Return a path or pattern in the query language, in quotes if necessary."""
    return _quoted(path) if not path or re.search(r'[\s&|()"]', path) else path


def date_period(text: str) -> tuple[datetime, datetime]:
    """Return the start of a year, month, day, minute or second, and its last microsecond.

    Args:
        text: Date such as ``2024``, ``2024-05``, ``2024-05-31``, ``2024-05-31T18:30`` or
            ``2024-05-31T18:30:00``.

    Raises:
        ValueError: If the text does not have one of these forms, or the date does not exist.

    Example:
        >>> date_period("2024-02")[1].isoformat()
        '2024-02-29T23:59:59.999999'
    """
    match = _DATE.fullmatch(text)
    if not match or not text.isascii():
        raise ValueError("date must have the form 2024, 2024-05, 2024-05-31 or 2024-05-31T18:30")
    parts = [int(part) for part in match.groups() if part is not None]
    start = datetime(*(parts + [1] * (3 - len(parts))))  # type: ignore[arg-type]
    last = timedelta(microseconds=-1)
    if len(parts) >= 3:
        length = {3: timedelta(days=1), 5: timedelta(minutes=1), 6: timedelta(seconds=1)}
        return start, start + (length[len(parts)] + last)
    if len(parts) == 1 or parts[1] == 12:
        return start, datetime(parts[0], 12, 31, 23, 59, 59, 999_999)
    return start, datetime(parts[0], parts[1] + 1, 1) + last


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
