"""This module defines records of images with and without labels, and of precomputed features."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.mapped_arrays import row_blocks, to_mapped_array
from surelabel.records.row_selection import RowSelection, check_row_selection
from surelabel.shapes import check_shapes

_MAX_QUOTED_ROWS = 5  # row numbers in a message


@dataclass(frozen=True)
class Images:
    """Images without labels.

    Attributes:
        paths: Paths of the images, length n.
    """

    paths: Sequence[str]

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class LabelledImages:
    """Images with labels (annotated images).

    Attributes:
        paths: Paths of the images, length n.
        names: Labels of the c classes, length c.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. Unknown
            targets are stored as 0.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.
        reading: Description of how the columns of a table were interpreted, without a full stop.
            For images from other sources, the text is empty.
        row_selection: Record of how each row was chosen for annotation. If None, all rows are
            treated as a random sample.

    Raises:
        InputError: If the shapes of ``targets`` and ``known`` do not match the numbers of paths and
            names, if a known target is outside [0, 1], or if ``row_selection`` does not have one
            entry per path.
    """

    paths: Sequence[str]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # set in __post_init__
    reading: str = field(default="", repr=False, compare=False)
    row_selection: RowSelection | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        targets, known = validate_target_arrays(self.targets, self.known)
        check_row_selection(self.row_selection, len(self.paths))
        if targets.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"targets must have one row per image and one column per label, with shape "
                f"({len(self.paths)}, {len(self.names)}); got shape {targets.shape}."
            )
        object.__setattr__(self, "targets", to_mapped_array(targets))
        object.__setattr__(self, "known", to_mapped_array(known))

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledImages":
        """Return the annotated images at the given row indices, in the order of the indices.

        The attribute ``reading`` of the returned images is empty.
        """
        rows = np.asarray(rows, dtype=int)
        paths = [self.paths[r] for r in rows]
        return LabelledImages(
            paths,
            self.names,
            self.targets[rows],
            self.known[rows],
            row_selection=self.row_selection and self.row_selection.take(rows),
        )


@dataclass(frozen=True)
class LabelledFeatures:
    """Precomputed image features with labels, in place of image files.

    Attributes:
        features: Finite feature vectors of n images, ``(n, d)``, converted to float32. Rows of
            zeros are only accepted by encoders that do not scale vectors to unit length.
        names: Labels of the c classes, length c.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. Unknown
            targets are stored as 0.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.
        paths: Identifiers of the rows, length n. If empty, the identifiers are ``row 0``,
            ``row 1`` and so on.
        row_selection: Record of how each row was chosen for annotation. If None, all rows are
            treated as a random sample.

    Raises:
        InputError: If the shapes and lengths do not match, if a feature is not finite, or if a
            known target is outside [0, 1].
    """

    features: npt.NDArray[np.float32]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # set in __post_init__
    paths: Sequence[str] = ()
    row_selection: RowSelection | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        features = np.asarray(self.features)
        if features.dtype != np.float32:
            with np.errstate(over="ignore"):  # infinity raises an error below
                features = to_mapped_array(features, dtype=np.float32)
        targets, known = validate_target_arrays(self.targets, self.known)
        check_shapes(features=(features, "n d"))
        if len(targets) != len(features):
            raise InputError(
                "features and targets must have the same number of rows; got "
                f"{format_count(len(features), 'row')} of features and "
                f"{format_count(len(targets), 'row')} of targets. Save the features and the "
                "targets of the same images."
            )
        if targets.shape[1] != len(self.names):
            raise InputError(
                f"targets must have one column per label, {len(self.names)}; "
                f"got {targets.shape[1]}. Correct the targets or the names."
            )
        n_finite = [int(np.isfinite(features[rows]).sum()) for rows in row_blocks(features)]
        if sum(n_finite) < features.size:
            is_finite = np.isfinite(features)
            rows = np.flatnonzero(~is_finite.all(axis=1))
            raise InputError(
                "features must be finite; got "
                f"{format_count((~is_finite).sum(), 'invalid value')} (NaN, infinite or above "
                f"3e38) in {_describe_rows(rows)} (counted from 0). Remove these rows, or replace "
                "each invalid value by the mean of its column."
            )
        paths = list(self.paths) or [f"row {i}" for i in range(len(features))]
        if len(paths) != len(features):
            raise InputError(
                f"paths must have one entry per row, {len(features)}; got {len(paths)}."
            )
        check_row_selection(self.row_selection, len(features))
        for name, value in (
            ("features", features),
            ("targets", to_mapped_array(targets)),
            ("known", to_mapped_array(known)),
            ("paths", paths),
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledFeatures":
        """Return features and labels at the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        return LabelledFeatures(
            self.features[rows],
            self.names,
            self.targets[rows],
            self.known[rows],
            [self.paths[r] for r in rows],
            self.row_selection and self.row_selection.take(rows),
        )


def _describe_rows(rows: npt.NDArray[np.intp]) -> str:
    """Return the number of rows, and the first row numbers, such as ``2 rows: 3, 7``."""
    first = ", ".join(str(row) for row in rows[:_MAX_QUOTED_ROWS])
    more = ", …" if len(rows) > _MAX_QUOTED_ROWS else ""
    return f"{format_count(len(rows), 'row')}: {first}{more}"


@dataclass(frozen=True)
class SkippedImage:
    """Image that could not be read, with the reason.

    Attributes:
        path: Path of the image.
        reason: Short description of the failure.
    """

    path: str
    reason: str
