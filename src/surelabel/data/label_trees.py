"""Read and write a tree of labels as a text with lines such as ``animal > dog > puppy``."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

from surelabel.data.label_names import has_control_character
from surelabel.data.text_lists import read_text_list
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelTree

_LABEL = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^">]*))\s*')


def read_label_tree(path: str | Path, *, names: Sequence[str] | None = None) -> LabelTree:
    """Return the tree of a file.

    Each line is a chain of labels, the parent first: ``animal > dog``. A label that contains ``>``
    or a double quote, or begins with ``#``, is written in double quotes, and its double quotes are
    doubled. Empty lines and lines that begin with ``#`` are ignored. A pair can occur several
    times.

    Args:
        path: Path of a text file in UTF-8.
        names: Labels that the file may contain. If None, all labels are accepted.

    Raises:
        DataError: If the file cannot be read or contains no pair, if a line is invalid, if a label
            is not in ``names`` or has two parents, or if a label is its own ancestor. The message
            contains the line.
    """
    parents: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_text_list(path), start=1):
        if not line or line.startswith("#"):
            continue
        labels = _labels_of_line(f"{path}, line {number}", line)
        _check_known_labels(f"{path}, line {number}", labels, names)
        for parent, child in pairwise(labels):
            if child == parent or child in _ancestors(parent, parents):
                raise DataError(
                    f"{path}, line {number}: a label must not be its own ancestor; got "
                    f"{quote_of_file(child)} as a child of {quote_of_file(parent)}. Remove one of "
                    "the pairs."
                )
            if parents.setdefault(child, parent) != parent:
                raise DataError(
                    f"{path}, line {number}: a label must have one parent; got "
                    f"{quote_of_file(parent)} for {quote_of_file(child)}, which has the parent "
                    f"{quote_of_file(parents[child])} in line {lines[child]}. Remove one of these "
                    "pairs."
                )
            lines.setdefault(child, number)
    if not parents:
        raise DataError(
            f"{path} must contain lines such as animal > dog; got no such line. Add the parents of "
            "labels."
        )
    return LabelTree(parents)


def _check_known_labels(place: str, labels: Sequence[str], names: Sequence[str] | None) -> None:
    """Check that all labels of a line are known.

    Raises:
        DataError: If a label is not in ``names``. The message suggests a similar label, if any.
    """
    for label in labels:
        if names is not None and label not in names:
            similar = get_close_matches(label, names, n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            raise DataError(
                f"{place}: all labels must be labels of the recognizer; got "
                f"{quote_of_file(label)}.{hint} Correct the label, or add it to the labels."
            )


def label_tree_as_text(tree: LabelTree) -> str:
    """Return the text of a tree of labels, with one line for each label that has a parent.

    Args:
        tree: Tree of labels without control characters.
    """
    return "".join(
        f"{_quote_label(parent)} > {_quote_label(label)}\n"
        for label, parent in tree.parents.items()
    )


def _quote_label(label: str) -> str:
    """Return a label in double quotes, if the line would otherwise be read in another way."""
    is_plain = not re.search(r'[>"]', label) and label == label.strip() and label[:1] != "#"
    return label if is_plain else '"' + label.replace('"', '""') + '"'


def _ancestors(label: str, parents: dict[str, str]) -> Iterator[str]:
    while (parent := parents.get(label)) is not None:
        yield parent
        label = parent


def _labels_of_line(place: str, line: str) -> list[str]:
    labels: list[str] = []
    position = 0
    while True:
        match = _LABEL.match(line, position)
        assert match is not None  # the pattern matches an empty text
        label = match[1].replace('""', '"') if match[1] is not None else match[2].strip()
        labels.append(label)
        position = match.end()
        if position == len(line) or line[position] != ">":
            break
        position += 1
    is_valid = position == len(line) and len(labels) > 1 and all(labels)
    if not is_valid or any(map(has_control_character, labels)):
        raise DataError(
            f"{place}: expected labels separated by >, such as animal > dog; got "
            f"{quote_of_file(line)}. Write a label with > or double quotes in double quotes."
        )
    return labels
