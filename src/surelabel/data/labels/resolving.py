"""From what a label file says to ``LabelledImages``: pictures on disk, columns in order."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.errors import DataError
from surelabel.records import Array, LabelledImages


def labelled_images(
    source: Path,
    pictures: Sequence[str],
    columns: Sequence[str],
    targets: Array,
    *,
    pictures_root: str | Path | None,
    names: Sequence[str] | None,
) -> LabelledImages:
    """Put the pictures under their root and the columns in the order of ``names``.

    Args:
        source: The label file, for messages; its folder is the root when none is given.
        pictures: Path of each picture as the file has it.
        columns: Label of each column of ``targets``.
        targets: 1 = present, 0 = absent, NaN = unknown, ``(n, len(columns))``.
        pictures_root: Where relative paths start.
        names: Columns wanted; one that the file does not have is unknown everywhere. None
            takes the columns as they are.

    Raises:
        DataError: there is no picture, some do not exist, one comes twice, or a label
            is not in ``names``.
    """
    if not len(pictures):
        raise DataError(f"{source} holds no picture. Expected one or more with their labels.")
    root = Path(pictures_root) if pictures_root is not None else source.parent
    paths = [os.path.join(root, picture) for picture in pictures]
    _check_once(source, pictures)
    _check_exist(source, paths, root)
    if names is not None and list(names) != list(columns):
        targets = _in_order(source, columns, targets, names)
    return LabelledImages(paths, list(columns if names is None else names), targets)


def vocabulary(source: Path, seen: set[str], names: Sequence[str] | None) -> list[str]:
    """The labels a file without a header looked for: ``names``, or else all that it mentions.

    Raises:
        DataError: it mentions a label that is not in ``names``.
    """
    if names is None:
        return sorted(seen)
    check_named(source, seen, names)
    return list(names)


def check_named(source: Path, seen: Sequence[str] | set[str], names: Sequence[str]) -> None:
    """Refuse labels that are not in ``names``.

    Raises:
        DataError: with the first few of them.
    """
    wanted = set(names)
    if extra := [label for label in sorted(seen) if label not in wanted]:
        raise DataError(
            f"{source} has {len(extra)} labels that are not among the {len(wanted)} names given: "
            f"{few(extra)}. Correct them, or read the file without names and align it."
        )


def few(things: Sequence[str]) -> str:
    """The first three, with … when there are more."""
    return ", ".join(map(repr, things[:3])) + (", …" if len(things) > 3 else "")


def path_beside(path: str, folder: Path) -> str:
    """How a file in ``folder`` writes ``path``: relative when it lies below, else absolute."""
    absolute, below = os.path.abspath(path), os.path.abspath(folder)
    inside = os.path.commonpath([absolute, below]) == below
    return Path(os.path.relpath(absolute, below) if inside else absolute).as_posix()


def _check_once(source: Path, pictures: Sequence[str]) -> None:
    if len(set(pictures)) == len(pictures):
        return
    seen: set[str] = set()
    twice = [p for p in pictures if p in seen or seen.add(p)]  # type: ignore[func-returns-value]
    raise DataError(
        f"{source} must name each picture once. Got {len(twice)} again: {few(twice)}. "
        "Take the repeated entries out."
    )


def _check_exist(source: Path, paths: Sequence[str], root: Path) -> None:
    if missing := [path for path in paths if not os.path.exists(path)]:
        raise DataError(
            f"{source} has labels for {len(missing)} of {len(paths)} pictures that do not exist: "
            f"{few(missing)}. Relative paths start at {root}; give another pictures_root, or "
            "take these entries out."
        )


def _in_order(source: Path, columns: Sequence[str], targets: Array, names: Sequence[str]) -> Array:
    check_named(source, columns, names)
    place = {label: column for column, label in enumerate(columns)}
    ordered = np.full((len(targets), len(names)), np.nan)
    for column, name in enumerate(names):
        if name in place:
            ordered[:, column] = targets[:, place[name]]
    return ordered
