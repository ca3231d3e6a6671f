"""Load the models and the annotated images of ``surelabel compare``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelabel.cli.input_options import fit_without_labels_on_input_options
from surelabel.cli.label_table_options import print_label_table_reading
from surelabel.cli.prediction_inputs import (
    paths_as_in_annotations,
    read_annotated_images,
    root_of_annotations,
)
from surelabel.cli.score_inputs import (
    check_no_score_options,
    is_score_input,
    load_dataset_or_scores,
    model_of_dataset,
    with_image_paths,
)
from surelabel.cli.terminal import Terminal
from surelabel.errors import DataError
from surelabel.recognizer_folder_checks import score_kind_of_recognizer_folder

if TYPE_CHECKING:
    from surelabel.recognizer import LabelledInput
    from surelabel.recognizer.comparison import ComparedModel
    from surelabel.records import LabelledImages, LabelledScores


def load_compared_models(
    terminal: Terminal,
    models: Sequence[str],
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "tuple[list[ComparedModel], LabelledImages]":
    """Return the predictions of the compared models, and the annotated images.

    Args:
        terminal: Object that prints results, status lines and progress.
        models: Arguments A and B.
        dataset: Argument DATASET.
        score_labels: Argument LABELS, the annotations of ``scores:FILE``, or None.
        score_kind: Value of the option ``--as``.
        images_root: Root of relative image paths, or None.
        table_options: Options for the columns and cells of tables.

    Raises:
        DataError, InputError: If a model or the dataset cannot be read.
        UsageError: If an argument or option for scores is given without scores.
    """
    if not any(map(is_score_input, models)):
        check_no_score_options(score_kind, None)
    if not is_score_input(dataset):
        check_no_score_options(None, score_labels)
    annotations = score_labels or dataset
    datasets = _load_datasets(
        terminal, models, dataset, score_labels, score_kind, images_root, table_options
    )
    for data in {id(data): data for data in datasets if data is not None}.values():
        print_label_table_reading(terminal, dataset, data)
    terminal.print_import_status()

    from surelabel.recognizer.random_rows import take_random_rows

    datasets = [
        None if data is None else take_random_rows(data, "The comparison") for data in datasets
    ]
    labelled = _annotated_images(terminal, datasets, annotations, images_root, table_options)
    compared = [
        _compared_model(
            terminal, model, data, labelled, root_of_annotations(annotations, images_root)
        )
        for model, data in zip(models, datasets, strict=True)
    ]
    return compared, labelled


def _load_datasets(
    terminal: Terminal,
    models: Sequence[str],
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "list[LabelledInput | None]":
    """Return the dataset of each model, or None for a file of predictions."""
    from surelabel.data import is_prediction_file
    from surelabel.records import LabelledScores

    loaded: dict[str, LabelledInput] = {}
    datasets: list[LabelledInput | None] = []
    for model in models:
        if is_prediction_file(model):
            datasets.append(None)
            continue
        is_table = is_score_input(model)
        needs_scores = is_score_input(dataset) or score_kind_of_recognizer_folder(model) is not None
        key = model if is_table or needs_scores else dataset
        if key not in loaded:
            sources = (score_labels or dataset, None) if is_table else (dataset, score_labels)
            kind = score_kind if is_table else None
            data = load_dataset_or_scores(
                terminal, model, *sources, kind, images_root, table_options
            )
            if isinstance(data, LabelledScores):
                # the paths of all datasets must be equal
                data = with_image_paths(data, score_labels or dataset, images_root)
            loaded[key] = data
        datasets.append(loaded[key])
    return datasets


def _annotated_images(
    terminal: Terminal,
    datasets: "Sequence[LabelledInput | None]",
    annotations: str,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledImages":
    """Return the annotated images of the datasets; without a dataset, read the annotations."""
    from surelabel.records import LabelledImages, LabelledScores

    given = [data for data in datasets if data is not None]
    scores = [data for data in given if isinstance(data, LabelledScores)]
    others = [data for data in given if not isinstance(data, LabelledScores)]
    if scores and not others:
        return _join_labelled_scores(scores)
    if not others:
        return read_annotated_images(
            terminal, annotations, images_root, table_options, purpose="The comparison"
        )
    data = others[0]
    if isinstance(data, LabelledImages):
        return data
    return LabelledImages(data.paths, data.names, data.targets, data.known)


def _join_labelled_scores(scores: "Sequence[LabelledScores]") -> "LabelledImages":
    """Return the annotated images of one or two tables of scores, each image once."""
    import numpy as np

    from surelabel.records import LabelledImages

    paths = [path for data in scores for path in data.paths]
    _, rows = np.unique(paths, return_index=True)
    rows.sort()
    return LabelledImages(
        [paths[row] for row in rows],
        scores[0].names,
        np.concatenate([data.targets for data in scores])[rows],
        np.concatenate([data.known for data in scores])[rows],
    )


def _compared_model(
    terminal: Terminal,
    model: str,
    data: "LabelledInput | None",
    labelled: "LabelledImages",
    root: str,
) -> "ComparedModel":
    """Return the predictions of a model for its dataset, or those of a file."""
    from surelabel.data import read_predictions
    from surelabel.recognizer import resolve_model
    from surelabel.recognizer.comparison import predict_compared_model

    if data is None:
        try:
            predictions = read_predictions(model)
        except DataError as error:
            if Path(model).is_dir():
                raise
            raise DataError(
                f"{error} To compare scores of another program, give scores:{model} and --as KIND."
            ) from error
        paths = paths_as_in_annotations(predictions.paths, labelled, root)
        predictions = replace(predictions, paths=paths)
        compared = predict_compared_model(predictions, labelled, default_title=model)
    else:
        resolved, names, overrides = model_of_dataset(model, data, [])
        recognizer = resolve_model(
            resolved, default_names=names, settings=overrides, device=terminal.device
        )
        fit_without_labels_on_input_options(terminal, recognizer, data)
        with terminal.progress(f"Predicting with {model}") as progress:
            compared = predict_compared_model(
                recognizer, data, default_title=model, progress=progress
            )
    return replace(compared, title=model)
