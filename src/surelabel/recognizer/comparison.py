"""Compare two recognizers, or two sets of predictions, on the same annotated images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surelabel.data import is_prediction_file, read_predictions
from surelabel.evaluation import Comparison, compare_predictions
from surelabel.label_aliases import join_label_aliases
from surelabel.progress import Progress
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.model_resolution import resolve_model
from surelabel.recognizer.random_rows import take_random_rows
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import LabelledImages, Predictions


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """Predictions of one of two compared models.

    Attributes:
        title: Name of the model in tables.
        predictions: Predictions of annotated images.
        names: Labels of the predictions with their aliases, as in ``sofa|couch``.
    """

    title: str
    predictions: Predictions
    names: Sequence[str]


def compare(
    first: Recognizer | Predictions | str | Path,
    second: Recognizer | Predictions | str | Path,
    labelled: LabelledInput,
    *,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two models on the same annotated images, with paired 95 % intervals.

    All metrics of ``evaluate`` are compared, and some of them for each label. The comparison uses
    the images and labels that both models and the annotations have. Rows of scores that a model was
    calibrated on have cross-fitted probabilities, as in ``evaluate``.

    Args:
        first: Model A: a recognizer, the folder of a saved recognizer, the name of an encoder,
            predictions, or a file of predictions (``.parquet``, ``.csv`` or ``.jsonl``).
        second: Model B, given in the same way.
        labelled: Annotated images, vectors or scores. If they state how they were chosen, only the
            random rows are used.
        resamples: Number of resamples, >= 2. If None, 1,000. For more than 20,000 pairs of image
            and label, the default is smaller, but at least 100.
        seed: Seed of the resamples.
        progress: Function called with the number of finished images or resamples and their total
            number.

    Returns:
        Values of A and B, and B minus A with intervals. ``Comparison.metrics`` contains the
        metrics, and ``Comparison.labels`` contains the metrics of each label.

    Raises:
        NotFitted: If a recognizer has to be fitted first.
        InputError: If the models and ``labelled`` share no image or no label.
        DataError: If a file or folder cannot be read.
        UnknownName: If a model is neither a file, a folder nor an encoder.
        ConfigError: If ``resamples`` is not a whole number >= 2.

    Example:
        >>> import numpy as np
        >>> targets = np.tile([[1, 0], [0, 1]], (10, 1))
        >>> paths = [f"{row}.jpg" for row in range(20)]
        >>> scores = targets.astype(np.float32)
        >>> good = Predictions(paths, ["dog", "cat"], scores)
        >>> bad = Predictions(paths, ["dog", "cat"], 1 - scores)
        >>> labelled = LabelledImages(paths, ["dog", "cat"], targets)
        >>> comparison = compare(good, bad, labelled, resamples=100)
        >>> comparison.metrics["mean_average_precision"].difference.value
        -0.5
    """
    labelled = take_random_rows(labelled, "The comparison")
    models = [
        predict_compared_model(model, labelled, default_title=title, progress=progress)
        for model, title in ((first, "A"), (second, "B"))
    ]
    images = LabelledImages(labelled.paths, labelled.names, labelled.targets, labelled.known)
    return compare_models(
        models[0], models[1], images, resamples=resamples, seed=seed, progress=progress
    )


def predict_compared_model(
    model: Recognizer | Predictions | str | Path,
    labelled: LabelledInput,
    *,
    default_title: str,
    progress: Progress | None = None,
) -> ComparedModel:
    """Return the predictions of a model for annotated images, or read predictions from a file.

    Args:
        model: Recognizer, folder, encoder, predictions or file of predictions.
        labelled: Annotated images, vectors or scores.
        default_title: Title of predictions without the name of a recognizer.
        progress: Function called with the number of encoded images and their total number.

    Raises:
        NotFitted: If the recognizer has to be fitted first.
        DataError: If a file or folder cannot be read.
        UnknownName: If ``model`` is neither a file, a folder nor an encoder.
    """
    title = str(model) if isinstance(model, str | Path) else ""
    if isinstance(model, str | Path):
        model = (
            read_predictions(model)
            if is_prediction_file(model)
            else resolve_model(str(model), default_names=labelled.names)
        )
    if isinstance(model, Predictions):
        names = [join_label_aliases([name]) for name in model.names]
        return ComparedModel(title or model.model or default_title, model, names)
    predictions = model.predict(labelled, progress=progress)
    predictions = model.cross_fitted_predictions(labelled, predictions)
    return ComparedModel(title or predictions.model, predictions, model.names_with_aliases)


def compare_models(
    first: ComparedModel,
    second: ComparedModel,
    labelled: LabelledImages,
    *,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the predictions of two models on annotated images.

    Args:
        first: Model A.
        second: Model B.
        labelled: Annotated images.
        resamples: Number of resamples, >= 2. If None, the default of ``compare``.
        seed: Seed of the resamples.
        progress: Function called with the number of finished resamples and their total number.

    Raises:
        InputError: If the models and ``labelled`` share no image or no label.
        ConfigError: If ``resamples`` is not a whole number >= 2.
    """
    return compare_predictions(
        first.predictions,
        second.predictions,
        labelled,
        titles=(first.title, second.title),
        first_names=first.names,
        second_names=second.names,
        resamples=resamples,
        seed=seed,
        progress=progress,
    )
