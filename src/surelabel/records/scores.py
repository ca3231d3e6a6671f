"""This module defines scores of images that another program computed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.records.images import LabelledFeatures
from surelabel.records.row_selection import RowSelection

SCORE_KINDS = ("logits", "probabilities", "cosines")
PROBABILITY_LIMIT = 1e-5  # rounded tables contain 0 and 1, which have no finite log-odds
COSINE_TOLERANCE = 1e-3  # tolerance for rounding errors beyond -1 and 1


@runtime_checkable
class ScoreTable(Protocol):
    """Table with named columns and an index, such as a ``DataFrame`` of pandas."""

    columns: Any
    index: Any

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the values of the table."""


@dataclass(frozen=True, init=False)
class LabelledScores(LabelledFeatures):
    """Scores of images that another program computed, with or without labels.

    Scores are features whose columns have names. A recognizer with the encoder ``scores:KIND`` is
    fitted on the scores, or calibrates the scores without a fit.

    Args:
        scores: Scores of n images and k columns, ``(n, k)``, or of t views of each image,
            ``(n, t, k)``. A DataFrame must have one column per label, and its index can contain
            the names of the images.
        kind: Meaning of the scores, which is never inferred: ``logits`` (log-odds),
            ``probabilities`` in [0, 1], or ``cosines`` in [-1, 1], with a tolerance of 0.001.
        columns: Labels of the columns, length k. If empty, the columns of the DataFrame are used.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. If None,
            the images have no labels.
        names: Labels of the targets, length c. If None, ``columns`` is used.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.
        paths: Names or paths of the images, length n. If empty, the index of a DataFrame is used
            if it contains texts. Otherwise, the names are ``row 0``, ``row 1`` and so on.

    Attributes:
        features: Log-odds or cosines, ``(n, t · k)``, with the columns of the first view before
            the columns of the next view. Log-odds are clipped to [-40, 40], and probabilities to
            [1e-5, 1 - 1e-5].
        kind: Meaning of the scores.
        columns: Labels of the columns, length k.
        views: Number of views t.

    Raises:
        InputError: If the kind is unknown, or if a score is not finite or is outside the range of
            its kind. If a column or an image has no name or occurs twice, or if shapes do not
            match.

    Example:
        >>> scores = LabelledScores([[0.5, 0.9]], "probabilities", columns=["dog", "cat"])
        >>> scores.features.astype(float).round(2).tolist(), scores.paths
        ([[0.0, 2.2]], ['row 0'])
    """

    kind: str = ""
    columns: Sequence[str] = ()
    views: int = 1

    def __init__(
        self,
        scores: npt.ArrayLike | ScoreTable,
        kind: str,
        *,
        columns: Sequence[str] = (),
        targets: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
        known: Flags | None = None,
        paths: Sequence[str] = (),
    ):
        check_score_kind(kind)
        if isinstance(scores, ScoreTable):
            columns = list(columns) or list(scores.columns)
            has_names = all(isinstance(name, str) for name in scores.index)
            paths = paths or (list(scores.index) if has_names else ())
        values = _score_array(scores, kind)
        _check_unique_texts("columns", columns, values.shape[2])
        paths = list(paths) or [f"row {row}" for row in range(len(values))]
        _check_unique_texts("paths", paths, len(values))
        _check_score_range(values, kind, columns, paths)
        super().__init__(
            _log_odds_or_cosines(values, kind).reshape(len(values), -1),
            [] if targets is None else list(columns if names is None else names),
            np.zeros((len(values), 0)) if targets is None else np.asarray(targets, dtype=float),
            known,  # type: ignore[arg-type]  # None is accepted
            paths,
        )
        for name, value in (("kind", kind), ("columns", columns), ("views", values.shape[1])):
            object.__setattr__(self, name, value)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledScores":
        """Return scores and labels at the given row indices, in the order of the indices."""
        taken = super().take(rows)
        return self._with_rows(
            taken.features,
            taken.names,
            taken.targets,
            taken.known,
            taken.paths,
            taken.row_selection,
        )

    def with_labels(
        self, names: Sequence[str], targets: Array, known: Flags | None = None
    ) -> "LabelledScores":
        """Return the same scores with other labels.

        Args:
            names: Labels of the targets, length c.
            targets: Targets in [0, 1], NaN = unknown, ``(n, c)``.
            known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
                known.
        """
        return self._with_rows(self.features, names, targets, known, self.paths, self.row_selection)

    def without_labels(self) -> "LabelledScores":
        """Return the same scores without labels."""
        return self.with_labels([], np.zeros((len(self), 0)))

    def with_paths(self, paths: Sequence[str]) -> "LabelledScores":
        """Return the same scores with other paths of the images, length n."""
        return self._with_rows(
            self.features, self.names, self.targets, self.known, paths, self.row_selection
        )

    def with_row_selection(self, selection: RowSelection | None) -> "LabelledScores":
        """Return the same scores with another row selection."""
        return self._with_rows(
            self.features, self.names, self.targets, self.known, self.paths, selection
        )

    def _with_rows(
        self,
        features: npt.NDArray[np.float32],
        names: Sequence[str],
        targets: Array,
        known: Flags | None,
        paths: Sequence[str],
        selection: RowSelection | None,
    ) -> "LabelledScores":
        """Return scores of the same kind and columns without checking the scores again."""
        other = object.__new__(LabelledScores)
        LabelledFeatures.__init__(other, features, names, targets, known, paths, selection)  # type: ignore[arg-type]
        for name in ("kind", "columns", "views"):
            object.__setattr__(other, name, getattr(self, name))
        return other


def check_score_kind(kind: object) -> None:
    """Check that a kind of scores exists.

    Raises:
        InputError: If ``kind`` is not one of ``SCORE_KINDS``.
    """
    if kind not in SCORE_KINDS:
        raise InputError(
            f"The kind of scores must be one of {', '.join(SCORE_KINDS)}; got {kind!r}. Give "
            "the kind of values that your model returns."
        )


def _score_array(scores: npt.ArrayLike | ScoreTable, kind: str) -> Array:
    """Return scores in double precision, ``(n, t, k)``; t is 1 if there are no views.

    Raises:
        InputError: If the scores are not numbers, are empty, or have neither two nor three axes.
    """
    given = scores.to_numpy() if isinstance(scores, ScoreTable) else scores
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{kind} must be numbers: {error}. Give only columns of scores, and give the names of "
            "the images as paths."
        ) from error
    if values.ndim not in (2, 3) or not values.size:
        raise InputError(
            f"{kind} must be a non-empty array (n, k) of n images and k labels, or (n, t, k) with "
            f"t views of each image; got shape {values.shape}. Reshape the array."
        )
    return values[:, None] if values.ndim == 2 else values


def _check_unique_texts(name: str, texts: Sequence[str], count: int) -> None:
    if len(texts) != count:
        part = "column" if name == "columns" else "row"
        raise InputError(
            f"{name} must have one entry per {part} of the scores, {count}; got {len(texts)}. Give "
            f"one name for each {part}."
        )
    invalid = next((text for text in texts if not isinstance(text, str) or not text.strip()), None)
    if invalid is not None:
        raise InputError(
            f"{name} must be non-empty strings; got {invalid!r}. Give a name for each entry."
        )
    repeated, n_repeated = Counter(texts).most_common(1)[0]
    if n_repeated > 1:
        item, part = ("image", "row") if name == "paths" else ("label", "column")
        raise InputError(
            f"Each {item} must have one {part} of scores; got {repeated!r} {n_repeated} times. "
            f"Remove the other {part}s of this {item}."
        )


def _check_score_range(
    values: Array, kind: str, columns: Sequence[str], paths: Sequence[str]
) -> None:
    """Check that all scores are finite and in the range of their kind.

    Raises:
        InputError: If a score is not finite or is out of range. The message contains the first
            invalid score.
    """
    low, high = {"probabilities": (0.0, 1.0), "cosines": (-1.0, 1.0)}.get(kind, (-np.inf, np.inf))
    tolerance = COSINE_TOLERANCE if kind == "cosines" else 0.0
    is_finite = np.isfinite(values)
    is_valid = is_finite & (values >= low - tolerance) & (values <= high + tolerance)
    if is_valid.all():
        return
    is_wrong = ~is_valid if is_finite.all() else ~is_finite
    row, view, column = np.argwhere(is_wrong)[0]
    found = f"{values[row, view, column]:g} for label {columns[column]!r} of {paths[row]!r}"
    if is_wrong.sum() > 1:
        found += f" and {format_count(is_wrong.sum() - 1, 'more invalid value')}"
    if not is_finite.all():
        raise InputError(
            f"{kind} must be finite numbers; got {found} (nan is a missing score). Compute these "
            "scores again, or remove these images."
        )
    remedy = {
        "probabilities": "Divide percentages by 100. For log-odds, use the kind logits; for cosine "
        "similarities, use the kind cosines",
        "cosines": "Divide similarities by the logit scale. For log-odds, use the kind logits",
    }[kind]
    raise InputError(f"{kind} must be in [{low:g}, {high:g}]; got {found}. {remedy}.")


def _log_odds_or_cosines(values: Array, kind: str) -> npt.NDArray[np.float32]:
    if kind == "probabilities":
        values = logit(values.clip(PROBABILITY_LIMIT, 1 - PROBABILITY_LIMIT))
    elif kind == "logits":
        values = values.clip(-LOGIT_LIMIT, LOGIT_LIMIT)
    return values.astype(np.float32)
