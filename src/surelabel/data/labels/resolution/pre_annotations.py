"""Select the predicted labels that annotation tools show as pre-annotations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.data.prediction_writing import check_finite_predictions, shown_label_columns
from surelabel.errors import InputError
from surelabel.files import check_writable_file_paths
from surelabel.records import Predictions

DEFAULT_THRESHOLD = 0.5
DECIMALS = 6  # of a written probability


class PreAnnotation(NamedTuple):
    """Predicted labels of one image.

    Attributes:
        path: Path of the image.
        labels: Selected labels, the most probable first.
        probabilities: Probability of each label of the predictions, by label.
        model: Fingerprint of the recognizer.
    """

    path: str
    labels: list[str]
    probabilities: dict[str, float]
    model: str


def select_pre_annotations(
    predictions: Predictions | Iterable[Predictions], thresholds: float | Array | None
) -> tuple[Sequence[str], Iterator[PreAnnotation]]:
    """Return all labels of predictions, and an iterator over the pre-annotations of the images.

    Args:
        predictions: Calibrated predictions of c labels, or at least one block of them.
        thresholds: Minimum probability of a selected label, as one number or as an array ``(c,)``
            in which 1 excludes a label, as for ``surelabel tag``. If None, the mask ``shown`` of
            the predictions is used. Without this mask, the thresholds of the predictions are used,
            or 0.5 if there are none.

    Raises:
        InputError: If there is no block, if ``thresholds`` has another shape or range, or if the
            blocks have different labels. Also if a number is not finite, or an image is repeated.
        NotFitted: If the predictions are not calibrated.
        DataError: If the path of an image is not valid UTF-8.
    """
    blocks = iter([predictions] if isinstance(predictions, Predictions) else predictions)
    first = next(blocks, None)
    if first is None:
        raise InputError("Pre-annotations require at least one block of predictions; got none.")
    names = first.names
    _check_pre_annotation_thresholds(thresholds, len(names))
    return names, _iterate_pre_annotations(names, chain([first], blocks), thresholds)


def _iterate_pre_annotations(
    names: Sequence[str], blocks: Iterable[Predictions], thresholds: float | Array | None
) -> Iterator[PreAnnotation]:
    paths: set[str] = set()
    for block in map(check_finite_predictions, blocks):
        if list(block.names) != list(names):
            raise InputError(
                "All blocks of predictions must have the same labels; got a block with other "
                "labels. Predict all images with one recognizer."
            )
        check_writable_file_paths(block.paths)
        shown = replace(block, shown=_pre_annotation_mask(block, thresholds))
        probabilities = block.probabilities.round(DECIMALS)
        for path, columns, values in zip(
            block.paths, shown_label_columns(shown), probabilities.tolist(), strict=True
        ):
            if path in paths:
                raise InputError(
                    f"Each image must have one prediction; got several of {path!r}. Remove the "
                    "repeated image."
                )
            paths.add(path)
            labels = [names[column] for column in columns]
            yield PreAnnotation(path, labels, dict(zip(names, values, strict=True)), block.model)


def _pre_annotation_mask(predictions: Predictions, thresholds: float | Array | None) -> Flags:
    """Return the mask ``(n, c)`` of the selected labels; a threshold of 1 excludes its label."""
    probabilities = predictions.probabilities
    if thresholds is None:
        if predictions.shown is not None:
            return predictions.shown
        thresholds = predictions.thresholds
    minimum = np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=float)
    is_disabled = minimum >= 1 if minimum.ndim else np.False_
    selected: Flags = (probabilities >= minimum) & ~is_disabled
    return selected


def _check_pre_annotation_thresholds(thresholds: float | Array | None, n_labels: int) -> None:
    values = np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=float)
    if values.shape not in ((), (n_labels,)) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(
            f"thresholds must be one number in [0, 1], or one for each of {n_labels} labels; got "
            f"{thresholds!r}."
        )
