"""Parse the cells of one column of labels, such as ``dog, cat``."""

import re
from ast import literal_eval
from collections.abc import Sequence

from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.table_options import SEPARATORS, Separator
from surelabel.data.labels.resolution.target_cells import MISSING_CELLS
from surelabel.file_readers import quote_of_file

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_FOUND_SEPARATORS: tuple[Separator, ...] = ("comma", "semicolon", "pipe")  # without an option


def separators_of_cell(cell: str) -> set[Separator]:
    """Return which of ``,``, ``;`` and ``|`` occur in a cell, outside quoted labels and lists.

    Example:
        >>> sorted(separators_of_cell('dog; "salt, pepper"; cat')), separators_of_cell("hot dog")
        (['semicolon'], set())
    """
    if is_list_cell(cell):
        return set()
    text = re.sub(rf"(^|[,;|])\s*{_QUOTED.pattern}", r"\1", cell)
    return {name for name in _FOUND_SEPARATORS if SEPARATORS[name] in text}


def labels_of_cell(cell: str, separator: Separator | None) -> list[str]:
    """Return the labels of a cell, in order and without surrounding spaces.

    A label in double quotes can contain the separator; a quote inside is doubled, as in CSV. A list
    of Python or JSON, as pandas writes it, is also accepted.

    Args:
        cell: Text of the cell.
        separator: Separator of the labels. If None, the cell is one label.

    Raises:
        ValueError: If a quoted label is followed by other text than a separator, or if a label
            without quotes is ``path`` or a missing value such as NaN. Also if a label contains a
            control character, or if a list is invalid. The message has no full stop.

    Example:
        >>> labels_of_cell('dog, "salt, pepper", 12" record', "comma")
        ['dog', 'salt, pepper', '12" record']
        >>> labels_of_cell("['hot dog', 'a|b']", None)
        ['hot dog', 'a|b']
    """
    if is_list_cell(cell):
        return check_label_texts(_labels_of_list(cell))
    return check_label_texts(
        _separate_labels(cell, None if separator is None else SEPARATORS[separator])
    )


def check_label_texts(labels: Sequence[object]) -> list[str]:
    """Return labels without surrounding spaces and without empty labels.

    Raises:
        ValueError: If a label is no text, or contains a control character. The message has no full
            stop.
    """
    texts = []
    for label in labels:
        if not isinstance(label, str):
            raise ValueError(f"expected labels as strings; got {quote_of_file(label)}")
        if has_control_character(label):
            raise ValueError(
                "a label must not contain a line break, a tab or another control character; got "
                f"{quote_of_file(label)}"
            )
        texts.append(label.strip(" "))
    return [text for text in texts if text]


def is_list_cell(cell: str) -> bool:
    """Return True if a cell is a list of texts, as Python and JSON write it.

    Example:
        >>> is_list_cell('["dog"]'), is_list_cell("[]"), is_list_cell("[dog]")
        (True, True, False)
    """
    text = cell.strip()
    return text == "[]" or (text[:2] in ("['", '["') and text[-2:] in ("']", '"]'))


def _labels_of_list(cell: str) -> Sequence[object]:
    try:
        labels: list[object] = literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"expected a list of labels; got {quote_of_file(cell)}") from error
    return labels


def _separate_labels(cell: str, separator: str | None) -> list[str]:
    labels, position = [], 0
    while position < len(cell):
        while position < len(cell) and cell[position] == " ":
            position += 1
        quoted = _QUOTED.match(cell, position)
        end = len(cell) if separator is None else _end_of_label(cell, separator, quoted, position)
        if cell[position : position + 1] == '"':
            if quoted is None or cell[quoted.end() : end].strip(" "):
                raise ValueError(
                    "a label that starts with a double quote must end with a double quote, and "
                    f"quotes inside must be doubled; got {quote_of_file(cell)}"
                )
            labels.append(quoted[1].replace('""', '"').strip(" "))
        else:
            labels.append(_unquoted_label(cell[position:end].strip(" ")))
        position = end + 1
    return labels


def _end_of_label(cell: str, separator: str, quoted: re.Match[str] | None, position: int) -> int:
    end = cell.find(separator, position if quoted is None else quoted.end())
    return len(cell) if end < 0 else end


def _unquoted_label(label: str) -> str:
    if label and (label == "path" or label.casefold() in MISSING_CELLS):
        raise ValueError(
            f"{label!r} is not a valid label without quotes. If the image has no label, leave the "
            f'cell empty; otherwise, write """{label}""" in the file'
        )
    return label
