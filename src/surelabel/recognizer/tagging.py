"""Tag images with labels, scores and probabilities, most probable labels first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.config import Choice, Run
from surelabel.errors import InputError
from surelabel.methods.interface import LearnsFromImages
from surelabel.recognizer.inputs import ImageInput, resolve_recognizer_input
from surelabel.recognizer.label_free_methods import (
    MIN_CALIBRATION_IMAGES,
    default_max_passes,
    select_calibration_images,
)
from surelabel.recognizer.model_resolution import resolve_model
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Images, LabelTree, Predictions


def tag(
    images: ImageInput | Sequence[ImageInput],
    labels: Sequence[str],
    *,
    model: str = "tiny-vit",
    method: str | None = None,
    max_passes: int | None = None,
    uncertainty: str | None = None,
    device: str = "cpu",
    **settings: Any,
) -> list[list[dict[str, Any]]]:
    """Tag images, and return the score and the probability of each label in each image.

    An image can have several labels, so the probabilities of an image need not sum to 1.

    Args:
        images: One image or a sequence of images: paths, PIL images, contents of image files as
            bytes, or arrays of RGB pixels, uint8, ``(h, w, 3)``.
        labels: Labels to score, at least one label.
        model: Name of an encoder.
        method: Key of a method that needs no annotated images. If the method computes statistics of
            unlabelled images, it is first fitted on ``images``. If None, the method is selected by
            ``max_passes``.
        max_passes: Maximum number of encoder passes of an image, >= 1. The method with the highest
            measured mAP within this number is used. If the maximum is above 1, the method has no
            calibration, and ``images`` contains 100 files or more, the method is calibrated without
            labels on at most 500 files. If None, the maximum is 6, or 1 for fewer than 100 files.
        uncertainty: Kind of uncertainty of each label, such as ``bernoulli_variance``; see
            ``Recognizer.predict``. If None, the labels have no uncertainty.
        device: PyTorch device of the encoder.
        settings: Settings of the method, such as ``domain="centred"``. If ``method`` is None,
            settings of ``zero_shot``.

    Returns:
        For each image, a list of dictionaries ``{"label", "score", "probability"}`` with the most
        probable label first. If the recognizer has no calibration, the probability is None. With
        ``uncertainty``, each dictionary has the key ``uncertainty`` too.

    Raises:
        DataError: If an image cannot be read.
        InputError: If ``images`` or ``labels`` is empty, if files and images in memory are mixed,
            or if the kind of uncertainty is unknown. Also if ``max_passes`` is below 1, or is given
            with a method or its settings.
        UnknownName: If the encoder or the method is unknown.
        ConfigError: If a setting is unknown, or the value of a setting is invalid.
        NotFitted: If the method has to be trained; in this case, fit a ``Recognizer`` instead. Also
            if ``bernoulli_variance`` is requested without calibration.

    Example:
        >>> import surelabel as sl
        >>> image = sl.collection("scenes-80", split="test").paths[0]
        >>> [sorted(tag) for tag in sl.tag(image, labels=["lion"])[0]]
        [['label', 'probability', 'score']]
    """
    if method is not None or settings:
        _check_no_method_with_max_passes(max_passes, method, settings)
        run = Run(encoder=Choice(model), method=Choice(method or "zero_shot", settings))
        recognizer = Recognizer(run, labels, device=device)
        unlabelled: Sequence[str] = ()
    else:
        inputs = resolve_recognizer_input(images)
        paths = [str(path) for path in inputs.paths] if isinstance(inputs, Images) else []
        limit = default_max_passes(len(paths)) if max_passes is None else max_passes
        recognizer = resolve_model(
            model, labels, max_passes=limit, n_images=len(inputs), device=device
        )
        unlabelled = paths if limit > 1 and len(paths) >= MIN_CALIBRATION_IMAGES else ()
    if isinstance(recognizer.method, LearnsFromImages):
        recognizer.fit(images)
    if unlabelled and recognizer.calibrated_on is None:
        recognizer.calibrate(Images(select_calibration_images(unlabelled)))
    return select_tags(recognizer.predict(images, uncertainty=uncertainty, strict=True))


def _check_no_method_with_max_passes(
    max_passes: int | None, method: str | None, settings: dict[str, Any]
) -> None:
    """Check that ``max_passes``, which selects a method, is not given with a method.

    Raises:
        InputError: If ``max_passes`` is given.
    """
    if max_passes is not None:
        given = [f"method={method!r}"] if method else []
        given += [f"{key}={value!r}" for key, value in settings.items()]
        raise InputError(
            "max_passes selects a method with its default settings; got "
            f"max_passes={max_passes} and {', '.join(given)}. Remove max_passes, or remove "
            f"{', '.join(given)}."
        )


def select_tags(
    predictions: Predictions,
    *,
    threshold: float | Array | None = None,
    top_k: int | None = None,
    label_tree: LabelTree | None = None,
) -> list[list[dict[str, Any]]]:
    """Return the labels of each image at or above a threshold, most probable labels first.

    Args:
        predictions: Predictions of a recognizer.
        threshold: Minimum probability in [0, 1], as one number for all labels or as an array
            ``(c,)`` for c labels. In an array, a threshold of 1 excludes the label. If None, all
            labels are returned.
        top_k: Maximum number of labels per image. If None, there is no limit.
        label_tree: Tree of the labels. The ancestors of each label that is returned are added,
            whatever their thresholds and their number. If None, the labels have no tree.

    Returns:
        For each image, a list of dictionaries ``{"label", "score", "probability"}``. If the
        predictions are not calibrated, the probability is None. If the predictions have an
        uncertainty, each dictionary has the key ``uncertainty`` too.

    Raises:
        NotFitted: If there is a threshold, and the predictions are not calibrated.
        InputError: If ``threshold`` or ``top_k`` is out of range, or if ``threshold`` has another
            shape. Also if a label of the tree is not a label of the predictions.
    """
    probabilities = None if predictions.calibration is None else predictions.probabilities
    tags = []
    for row, order in enumerate(_rank_tags(predictions, threshold, top_k, label_tree)):
        scores = predictions.scores[row]
        image_tags: list[dict[str, Any]] = [
            {
                "label": predictions.names[c],
                "score": round(float(scores[c]), 6),
                "probability": None
                if probabilities is None
                else round(float(probabilities[row, c]), 6),
            }
            for c in order
        ]
        if predictions.uncertainty is not None:
            for image_tag, c in zip(image_tags, order, strict=True):
                image_tag["uncertainty"] = float(f"{predictions.uncertainty[row, c]:.6g}")
        tags.append(image_tags)
    return tags


def shown_label_mask(
    predictions: Predictions,
    *,
    threshold: float | Array | None = None,
    top_k: int | None = None,
    label_tree: LabelTree | None = None,
) -> Flags:
    """Return a mask ``(n, c)`` of the labels that :func:`select_tags` returns.

    Args:
        predictions: Predictions of c labels for n images.
        threshold: Minimum probability, as for :func:`select_tags`.
        top_k: Maximum number of labels per image, as for :func:`select_tags`.
        label_tree: Tree of the labels, as for :func:`select_tags`.

    Raises:
        NotFitted: If there is a threshold, and the predictions are not calibrated.
        InputError: If ``threshold`` or ``top_k`` is out of range, or if ``threshold`` has another
            shape.
    """
    shown = np.zeros(predictions.scores.shape, dtype=bool)
    ranks = _rank_tags(predictions, threshold, top_k, label_tree)
    for flags, order in zip(shown, ranks, strict=True):
        flags[order] = True
    return shown


def _rank_tags(
    predictions: Predictions,
    threshold: float | Array | None,
    top_k: int | None,
    label_tree: LabelTree | None,
) -> list[ColumnIndices]:
    """Return the columns of the selected labels of each image, most probable labels first.

    If a label and its ancestor have the same probability, the ancestor is first.

    Raises:
        NotFitted: If there is a threshold, and the predictions are not calibrated.
        InputError: If ``threshold`` or ``top_k`` is out of range, or if ``threshold`` has another
            shape.
    """
    _check_tagging_options(threshold=threshold, top_k=top_k)
    needs_probabilities = predictions.calibration is not None or threshold is not None
    probabilities = predictions.probabilities if needs_probabilities else None
    thresholds = None if threshold is None else np.asarray(threshold, dtype=float)
    if thresholds is not None and thresholds.shape not in ((), (len(predictions.names),)):
        raise InputError(
            "threshold must be one number, or one number per label with shape "
            f"({len(predictions.names)},); got an array of shape {thresholds.shape}. Give numbers "
            "in [0, 1]."
        )
    selected = None
    if thresholds is not None and probabilities is not None:
        selected = _tagging_threshold_mask(probabilities, thresholds)
    ancestors = _ancestor_columns(predictions.names, label_tree)
    depths = np.array([len(columns) for columns in ancestors])
    ranks = []
    for row, scores in enumerate(predictions.scores):
        values = scores if probabilities is None else probabilities[row]
        order = np.lexsort((-scores, depths, -values))
        shown = order if selected is None else order[selected[row][order]]
        shown = shown[:top_k]
        if label_tree is not None:
            is_shown = np.zeros(len(order), dtype=bool)
            is_shown[shown] = True
            for column in shown:
                is_shown[ancestors[column]] = True
            shown = order[is_shown[order]]
        ranks.append(shown)
    return ranks


def _ancestor_columns(names: Sequence[str], label_tree: LabelTree | None) -> list[list[int]]:
    """Return the columns of the ancestors of each label.

    Raises:
        InputError: If a label of the tree is not in ``names``.
    """
    if label_tree is None:
        return [[] for _ in names]
    label_tree.parent_columns(names)  # raises the error
    column_of = {name: column for column, name in enumerate(names)}
    return [[column_of[label] for label in label_tree.ancestors(name)] for name in names]


def _tagging_threshold_mask(probabilities: Array, thresholds: Array) -> Flags:
    """Return a mask of the probabilities ``(n, c)`` that are at or above the threshold.

    The axes are n images and c labels. If thresholds are given per label, a threshold of 1 excludes
    the label.
    """
    is_disabled = thresholds >= 1 if thresholds.ndim else np.False_
    selected: Flags = (probabilities >= thresholds) & ~is_disabled
    return selected


def _check_tagging_options(
    *, threshold: float | Array | None = None, top_k: int | None = None
) -> None:
    """Check that the options of ``select_tags`` are in range.

    Raises:
        InputError: If ``threshold`` or ``top_k`` is out of range.
    """
    thresholds = np.asarray(0.0 if threshold is None else threshold)
    if thresholds.size and not (thresholds.min() >= 0 and thresholds.max() <= 1):  # True for NaN
        raise InputError(f"threshold must be in [0, 1]; got {threshold}.")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k must be at least 1; got {top_k}.")
