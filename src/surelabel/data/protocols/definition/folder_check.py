"""Check the files, counts and labels of a folder, and whether an image is in two splits."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file

HASHED_BYTES = 2**20  # bytes that are read at once


@dataclass(frozen=True)
class SplitCheck:
    """Result of the check of one split.

    Attributes:
        split: Split of the evaluation protocol.
        rows: Annotations of the images that exist.
        n_listed: Number of images in the lists of the folder.
        missing: Listed images that do not exist, relative to the folder.
    """

    split: ProtocolSplit
    rows: ProtocolRows
    n_listed: int
    missing: tuple[str, ...]

    @property
    def matched_counts(self) -> list[str]:
        """Return which of the counts ``official`` and ``as evaluated`` the lists match."""
        counts = {"official": self.split.official, "as evaluated": self.split.evaluated}
        return [name for name, count in counts.items() if count.value == self.n_listed]

    @property
    def has_other_count(self) -> bool:
        """Return whether sources state counts, and the lists match none of them."""
        counts = (self.split.official.value, self.split.evaluated.value)
        return counts != (None, None) and self.n_listed not in counts


@dataclass(frozen=True)
class ProtocolCheck:
    """Result of the check of a folder.

    Attributes:
        folder: Absolute path of the folder.
        splits: Checked splits.
        problems: Differences from the evaluation protocol, one sentence each.
        is_subset: Whether images are missing.
        known_defects: Defects that correct copies of the published files have, too. They are no
            problems.
    """

    folder: Path
    splits: tuple[SplitCheck, ...]
    problems: tuple[str, ...]
    is_subset: bool
    known_defects: tuple[str, ...] = ()


def check_protocol_folder(
    protocol: EvaluationProtocol, folder: str | Path, *, subset: bool = False
) -> ProtocolCheck:
    """Read the lists of a folder, look up its images, and compare both with a protocol.

    Args:
        protocol: Evaluation protocol.
        folder: Folder of the dataset in its official layout. Nothing is downloaded or unpacked.
        subset: Whether images may be missing. If False, missing images are problems.

    Raises:
        DataError: If ``folder`` is not a folder, if a file of the official layout is missing or
            damaged, if the labels or their order differ, or if an image is in two splits.
    """
    root = Path(os.path.abspath(folder))
    _check_files(protocol, root, str(folder))
    checks, problems = [], list[str]()
    for split in protocol.splits:
        rows = protocol.read_split(root, split)
        _check_labels(protocol, split, rows)
        is_missing = [not (root / image).is_file() for image in rows.images]
        missing = tuple(
            image for image, absent in zip(rows.images, is_missing, strict=True) if absent
        )
        present = rows.take(np.flatnonzero(~np.array(is_missing, dtype=bool)).tolist())
        check = SplitCheck(split, present, len(rows.images), missing)
        checks.append(check)
        problems += _problems_of_split(check, subset=subset)
    _check_equal_labels(checks)
    _check_no_image_in_two_splits(root, checks)
    is_subset = any(check.missing for check in checks)
    known = [
        f"{check.split.name}: {defect}" for check in checks for defect in check.rows.known_defects
    ]
    return ProtocolCheck(root, tuple(checks), tuple(problems), is_subset, tuple(known))


def _check_files(protocol: EvaluationProtocol, root: Path, given: str) -> None:
    """Check that a folder contains the files of the official layout.

    Raises:
        DataError: If the path is not a folder, or if a file is missing.
    """
    if root.is_file():
        raise DataError(
            f"{given} must be the folder of {protocol.title}; got a file. Unpack archives, and "
            "give the folder."
        )
    missing = [file for file in protocol.files if not (root / file.path).exists()]
    if not root.is_dir() or missing:
        files = "; ".join(f"{file.path}, {file.content} ({file.origin})" for file in missing)
        raise DataError(
            f"{given} must be the folder of {protocol.title} in its official layout; the following "
            f"is missing: {files}. Nothing is downloaded. Add the files, or give another folder."
        )


def _check_labels(protocol: EvaluationProtocol, split: ProtocolSplit, rows: ProtocolRows) -> None:
    """Check that the labels of a split are those of the protocol, in the same order.

    Raises:
        DataError: If a label is missing or unknown, or if the order differs.
    """
    found, expected = list(rows.names), list(protocol.labels)
    if found == expected or not expected:  # without labels, the folder defines them
        return
    if sorted(found) == sorted(expected):
        column = next(c for c, name in enumerate(expected) if found[c] != name)
        raise DataError(
            f"The labels of {split.name} must have the order of {protocol.label_source}; got "
            f"{found[column]!r} instead of {expected[column]!r} in column {column}, counted from "
            "0. Restore the official file of the labels."
        )
    unknown = [name for name in found if name not in expected]
    absent = [name for name in expected if name not in found]
    raise DataError(
        f"The labels of {split.name} must be those of {protocol.label_source}; got "
        f"{format_count(len(unknown), 'other label')} ({', '.join(unknown[:3]) or 'none'}), and "
        f"{format_count(len(absent), 'label')} are missing ({', '.join(absent[:3]) or 'none'}). "
        "Restore the official file of the labels."
    )


def _check_equal_labels(checks: Sequence[SplitCheck]) -> None:
    """Check that the splits have the same labels, if the folder defines the labels.

    Raises:
        DataError: If the labels of a split differ from those of the first split.
    """
    first = checks[0]
    for check in checks[1:]:
        if list(check.rows.names) != list(first.rows.names):
            raise DataError(
                f"All splits must have the same labels in the same order; got other labels in "
                f"{check.split.name} than in {first.split.name}. Restore the official files."
            )


def _problems_of_split(check: SplitCheck, *, subset: bool) -> Iterator[str]:
    """Yield a sentence for each difference of a split from the protocol."""
    split = check.split
    yield from (f"{split.name}: {defect}" for defect in check.rows.defects)
    if check.has_other_count:
        counts = [str(c) for c in (split.official, split.evaluated) if c.value is not None]
        yield f"{split.name} must list {' or '.join(counts)} images; got {check.n_listed:,}."
    if check.missing and not subset:
        yield (
            f"{split.name}: {format_count(len(check.missing), 'listed image')} of "
            f"{check.n_listed:,} do not exist, such as {check.missing[0]}. Add the images, or give "
            "--subset."
        )


def _check_no_image_in_two_splits(root: Path, checks: Sequence[SplitCheck]) -> None:
    """Check that no image is in two splits, by its path and by its content.

    Raises:
        DataError: If an image is in two splits.
    """
    for first, second in combinations(checks, 2):
        shared = sorted({*first.rows.images} & {*second.rows.images})
        names = f"{first.split.name} and {second.split.name}"
        if shared:
            raise DataError(
                f"An image must be in one split; got {format_count(len(shared), 'image')} in "
                f"{names}, such as {shared[0]}. Restore the official lists."
            )
        if pair := next(_equal_images(root, first, second), None):
            raise DataError(
                f"An image must be in one split; got equal files in {names}: {pair[0]} and "
                f"{pair[1]}. Restore the official images."
            )


def _equal_images(root: Path, first: SplitCheck, second: SplitCheck) -> Iterator[tuple[str, str]]:
    """Yield pairs of images with equal content; only files of equal size are read."""
    of_size: dict[int, list[str]] = defaultdict(list)
    for image in first.rows.images:
        of_size[(root / image).stat().st_size].append(image)
    hashes: dict[str, bytes] = {}
    for image in second.rows.images:
        for other in of_size.get((root / image).stat().st_size, []):
            digests = [
                hashes.get(path) or hashes.setdefault(path, _hash_of_file(root / path))
                for path in (other, image)
            ]
            if digests[0] == digests[1]:
                yield other, image


def _hash_of_file(path: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    with open_regular_file(path) as stream:
        while block := stream.read(HASHED_BYTES):
            digest.update(block)
    return digest.digest()
