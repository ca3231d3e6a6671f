"""This module defines records of captions and of texts with labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.errors import InputError


@dataclass(frozen=True)
class Captions:
    """Captions, each with the image that it describes if the image is known.

    Attributes:
        texts: Texts of the captions, length s.
        paths: Path of the image of each caption, length s; the captions of an image have equal
            paths. If the images are unknown, the value is None.

    Raises:
        InputError: If ``texts`` and ``paths`` differ in length.
    """

    texts: Sequence[str]
    paths: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.paths is not None and len(self.paths) != len(self.texts):
            raise InputError(
                f"paths must have one entry per caption, {len(self.texts)}; got {len(self.paths)}."
            )

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with labels, such as captions with the labels that they mention.

    Attributes:
        texts: Texts, length n.
        names: Labels of the c classes, length c.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. Unknown
            targets are stored as 0.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.
        n_dropped: Number of texts that were removed because they mention no label, >= 0.

    Raises:
        InputError: If the shapes of ``targets`` and ``known`` do not match the numbers of texts and
            names, or if a known target is outside [0, 1].
    """

    texts: Sequence[str]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # set in __post_init__
    n_dropped: int = 0

    def __post_init__(self) -> None:
        targets, known = validate_target_arrays(self.targets, self.known)
        if targets.shape != (len(self.texts), len(self.names)):
            raise InputError(
                f"targets must have one row per text and one column per label, with shape "
                f"({len(self.texts)}, {len(self.names)}); got shape {targets.shape}."
            )
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "known", known)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledTexts":
        """Return the texts at the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        texts = [self.texts[r] for r in rows]
        return LabelledTexts(texts, self.names, self.targets[rows], self.known[rows])
