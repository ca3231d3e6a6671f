"""Read the lists of attributes and scenes, and match them to the spellings of published files."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType

from surelabel.counts import format_count
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

_TEXT = files(__package__).joinpath("attribute_labels.tsv").read_text(encoding="utf-8")
_ROWS = tuple(csv.DictReader(_TEXT.splitlines(), delimiter="\t"))


@dataclass(frozen=True)
class AttributeLabels:
    """Labels of an evaluation protocol in the order of the published file.

    Attributes:
        names: Labels.
        groups: Labels by group, ``seen`` and ``unseen``.
        spellings: Label by the normalized spelling of the published files.
    """

    names: tuple[str, ...]
    groups: MappingProxyType[str, tuple[str, ...]]
    spellings: MappingProxyType[str, str] = field(repr=False)

    def match(self, place: str, published: Sequence[str]) -> list[str]:
        """Return the labels of published spellings, in the order of ``published``.

        Upper case, spaces, hyphens and underscores are ignored, and ``&`` is ``and``. An unknown
        spelling is returned without changes.

        Args:
            place: Place of the spellings in messages.
            published: Spellings in a published file.

        Raises:
            DataError: If two spellings belong to the same label.
        """
        names = [self.spellings.get(normalize_spelling(text), text) for text in published]
        for column, name in enumerate(names):
            if (first := names.index(name)) != column:
                raise DataError(
                    f"{place}: each label must occur once; got {quote_of_file(published[first])} "
                    f"and {quote_of_file(published[column])} in columns {first} and {column}, "
                    "counted from 0. Restore the official file."
                )
        return names

    def columns_of(self, place: str, published: Sequence[str]) -> list[int]:
        """Return the column of each label, when the columns may have any order.

        Args:
            place: Place of the spellings in messages.
            published: Spellings in a published file.

        Returns:
            Columns of ``published`` in the order of ``names``.

        Raises:
            DataError: If a label is missing, unknown or repeated.
        """
        found = self.match(place, published)
        missing = [name for name in self.names if name not in found]
        unknown = [name for name in found if name not in self.names]
        if missing or unknown:
            raise DataError(
                f"{place}: expected the {format_count(len(self.names), 'label')}; got "
                f"{format_count(len(unknown), 'other label')} "
                f"({', '.join(map(quote_of_file, unknown[:3])) or 'none'}), and "
                f"{format_count(len(missing), 'missing label')} "
                f"({', '.join(missing[:3]) or 'none'}). Restore the official file."
            )
        return [found.index(name) for name in self.names]


def normalize_spelling(text: str) -> str:
    """Return a spelling in lower case, with ``&`` as ``and``, and only with letters and digits.

    Example:
        >>> normalize_spelling("Skirt&Dress"), normalize_spelling("Age 18-60")
        ('skirtanddress', 'age1860')
    """
    return re.sub(r"[^0-9a-z]", "", text.lower().replace("&", "and"))


def attribute_labels(protocol: str) -> AttributeLabels:
    """Return the labels of an evaluation protocol of the file ``attribute_labels.tsv``."""
    rows = [row for row in _ROWS if row["protocol"] == protocol]
    groups = {
        group: tuple(row["label"] for row in rows if row["group"] == group)
        for group in ("seen", "unseen")
    }
    spellings = {normalize_spelling(row["label"]): row["label"] for row in rows}
    spellings |= {
        normalize_spelling(row["published spelling"]): row["label"]
        for row in rows
        if row["published spelling"]
    }
    return AttributeLabels(
        tuple(row["label"] for row in rows), MappingProxyType(groups), MappingProxyType(spellings)
    )
