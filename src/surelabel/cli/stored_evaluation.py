"""Evaluate a file or folder of predictions in ``evaluate``, without a recognizer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.prediction_inputs import (
    paths_as_in_annotations,
    read_annotated_images,
    root_of_annotations,
)
from surelabel.cli.score_inputs import is_score_input
from surelabel.cli.terminal import Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.data import StoredPredictions
    from surelabel.evaluation import Evaluation
    from surelabel.recognizer.prediction_evaluation import AnnotatedPredictions
    from surelabel.records import Predictions


def check_prediction_evaluation_options(dataset: str, **options: Any) -> None:
    """Check that no option or argument is given that applies only to a recognizer.

    Args:
        dataset: Annotations of the predicted images.
        options: Values of the options that apply only to a recognizer, by name.

    Raises:
        UsageError: If an option is given, or the annotations are scores.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise click.UsageError(
            f"{', '.join(given)} can be given only for a recognizer; got predictions as MODEL. "
            f"Remove {', '.join(given)}, or give the recognizer."
        )
    if is_score_input(dataset):
        raise click.UsageError(
            f"The evaluation of predictions requires a file of labels; got the scores {dataset}. "
            "Give the labels of the predicted images."
        )


def open_evaluated_predictions(path: str) -> "StoredPredictions | Predictions":
    """Open predictions: a Parquet file or a folder, which is read in blocks, or another file.

    Args:
        path: File or folder of predictions.

    Raises:
        DataError: If the predictions are damaged, or predictions of images are missing.
    """
    from surelabel.data import is_prediction_folder, open_predictions, read_predictions

    if is_prediction_folder(path) or path.lower().endswith(".parquet"):
        return open_predictions(path)
    return read_predictions(path)


def evaluate_predictions_of_command(
    terminal: Terminal,
    stored: "StoredPredictions | Predictions",
    dataset: str,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "Evaluation":
    """Evaluate predictions, with intervals, and print how many images were compared.

    Args:
        terminal: Object that prints results, status lines and progress.
        stored: Predictions that were opened or read.
        dataset: Annotations of the predicted images.
        images_root: Root of relative image paths, or None.
        table_options: Options for the columns and cells of tables.

    Raises:
        DataError, InputError: If the annotations cannot be read, or if they share no image or no
            label with the predictions.
    """
    labelled = read_annotated_images(
        terminal, dataset, images_root, table_options, purpose="The evaluation"
    )
    terminal.print_import_status()

    from dataclasses import replace

    from surelabel.evaluation import evaluation_confidence_intervals
    from surelabel.recognizer.prediction_evaluation import evaluate_stored_predictions

    root = root_of_annotations(dataset, images_root)
    paths = paths_as_in_annotations(stored.paths, labelled, root)
    with terminal.progress("Reading") as progress:
        evaluation, compared = evaluate_stored_predictions(
            stored, labelled, paths=paths, progress=progress
        )
    terminal.print_status(describe_compared_images(compared))
    return replace(evaluation, intervals=evaluation_confidence_intervals(evaluation))


def describe_compared_images(compared: "AnnotatedPredictions") -> str:
    """Return one line with the numbers of images that have predictions, labels or both.

    Args:
        compared: Predictions of the images that predictions and annotations share.
    """
    parts = [f"Evaluated: {format_count(len(compared.predictions), 'image')}"]
    if missing := compared.images_without_predictions:
        parts.append(
            f"not evaluated: {format_count(len(missing), 'labelled image')} without predictions, "
            f"such as {missing[0]}"
        )
    if n_others := compared.images_without_annotations:
        parts.append(
            f"not evaluated: {format_count(n_others, 'predicted image')} without labels, such as "
            f"{compared.first_without_annotations}"
        )
    return "; ".join(parts) + "."
