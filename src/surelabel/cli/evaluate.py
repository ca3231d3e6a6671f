"""Define ``surelabel evaluate``, which measures a recognizer on annotated images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli import pair_evaluation, search_evaluation, unseen_labels
from surelabel.cli.engine_options import apply_engine_options, engine_options
from surelabel.cli.input_options import (
    fit_without_labels_on_input_options,
    images_root_input_option,
    labels_input_option,
    max_image_memory_input_option,
    method_input_options,
    parse_labels_input_option,
    run_overrides_from_input_options,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_table_options import (
    check_no_label_table_options,
    label_table_options,
    print_label_table_reading,
)
from surelabel.cli.metric_tables import metric_tables_as_json, metric_tables_as_text
from surelabel.cli.output_paths import validate_terminal_output_folder
from surelabel.cli.prediction_inputs import validate_model_or_prediction_path
from surelabel.cli.score_inputs import (
    check_no_score_options,
    is_score_input,
    load_dataset_or_scores,
    model_of_dataset,
    score_kind_option,
    score_labels_argument,
    with_image_paths,
)
from surelabel.cli.search_evaluation import search_evaluation_options
from surelabel.cli.stored_evaluation import (
    check_prediction_evaluation_options,
    evaluate_predictions_of_command,
    open_evaluated_predictions,
)
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.unseen_labels import unseen_labels_option

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation
    from surelabel.recognizer import LabelledInput, Recognizer


@click.command()
@click.argument("model", callback=validate_model_or_prediction_path)
@click.argument("dataset", callback=validate_terminal_input_paths)
@score_labels_argument
@score_kind_option
@click.option(
    "--report",
    "report_folder",
    callback=validate_terminal_output_folder,
    metavar="FOLDER",
    help="Write a report to this folder, as HTML, Markdown and JSON.",
)
@unseen_labels_option
@search_evaluation_options
@pair_evaluation.pair_evaluation_options
@method_input_options
@engine_options
@images_root_input_option
@label_table_options
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def evaluate(
    terminal: Terminal,
    model: str,
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    report_folder: str | None,
    unseen: str | None,
    queries: tuple[str, ...],
    retrieval: bool,
    max_literals: int | None,
    captions: bool,
    relevance_files: tuple[str, ...],
    method: str | None,
    settings: tuple[str, ...],
    engine: str | None,
    dtype: str | None,
    images_root: str | None,
    table_options: dict[str, Any],
    names: str | None,
) -> None:
    """Measure accuracy and calibration, or retrieval with captions.

    MODEL is a saved recognizer, an exported .onnx or .xml file, or an encoder. MODEL can also be
    predictions of `surelabel tag --out`: a file, or the folder of `--shard` or `--cluster`.
    Predictions are evaluated without encoding the images, which are matched by their paths. DATASET
    contains annotated images that were used neither for fitting nor for calibration. DATASET is an
    annotation file (CSV, JSON lines, COCO), a folder of VOC XML, or xmp:FOLDER for the keywords in
    XMP sidecars. DATASET can also be a split of a collection such as scenes-80:test, or feature
    vectors (.npz).

    For scores of another program, give scores:FILE as DATASET, and the annotations of its images as
    LABELS. MODEL is then a recognizer that was calibrated or fitted on scores. To evaluate the
    scores without calibration, give scores:FILE as MODEL, --as, and the annotations as DATASET. The
    probabilities of rows that MODEL was calibrated on are cross-fitted.

    If DATASET contains captions of images, retrieval between images and captions is measured
    instead. The metrics are R@k, R-Precision, mAP@R, median rank, and the prediction of errors by
    the uncertainty. Captions are a file (COCO, CSV, JSON lines or Flickr tokens), vectors, or a
    collection with --captions.
    """
    from surelabel.data import is_prediction_file

    if is_prediction_file(model):
        check_no_score_options(score_kind, score_labels)
        check_prediction_evaluation_options(
            dataset,
            labels=names,
            method=method,
            set=settings,
            unseen=unseen,
            captions=captions,
            relevance=relevance_files,
            engine=engine,
            dtype=dtype,
        )
        _evaluate_prediction_file(
            terminal,
            model,
            dataset,
            report_folder=report_folder,
            queries=queries,
            retrieval=retrieval,
            max_literals=max_literals,
            images_root=images_root,
            table_options=table_options,
        )
        return
    has_scores = is_score_input(model) or is_score_input(dataset)
    if not has_scores and pair_evaluation.is_pair_evaluation(
        dataset, captions=captions, relevance_files=relevance_files
    ):
        check_no_score_options(score_kind, score_labels)
        check_no_label_table_options(table_options, dataset)
        pair_evaluation.check_pair_evaluation_options(
            labels=names,
            method=method,
            set=settings,
            unseen=unseen,
            engine=engine,
            dtype=dtype,
            query=queries,
            retrieval=retrieval,
            max_literals=max_literals,
        )
        pair_evaluation.run_pair_evaluation(
            terminal,
            model,
            dataset,
            relevance_files=relevance_files,
            images_root=images_root,
            report_folder=report_folder,
        )
        return
    unseen_names = parse_labels_input_option(unseen)
    unseen_labels.check_unseen_labels_option(model, names, unseen_names)
    test_set = load_dataset_or_scores(
        terminal, model, dataset, score_labels, score_kind, images_root, table_options
    )
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    if report_folder:
        test_set = _prepare_report(report_folder, test_set, model, dataset, images_root)
    overrides = run_overrides_from_input_options(settings, method__name=method)
    recognizer = _resolve_evaluated_model(
        terminal, model, test_set, labels, unseen_names, overrides
    )
    recognizer = apply_engine_options(recognizer, engine, dtype)
    n_seen = len(recognizer.names)
    if unseen_names is not None:
        recognizer = unseen_labels.add_unseen_labels(recognizer, unseen_names, test_set)
    search_evaluation.check_search_evaluation_options(
        recognizer.names, recognizer.calibrated_on, queries, retrieval, max_literals
    )
    print_label_table_reading(terminal, dataset, test_set)
    fit_without_labels_on_input_options(terminal, recognizer, test_set)
    evaluation = evaluate_in_evaluate_command(
        terminal, recognizer, test_set, for_report=report_folder is not None
    )
    _print_evaluation(
        terminal,
        evaluation,
        report_folder,
        queries,
        retrieval,
        max_literals,
        n_seen=None if unseen_names is None else n_seen,
    )


def _evaluate_prediction_file(
    terminal: Terminal,
    path: str,
    dataset: str,
    *,
    report_folder: str | None,
    queries: tuple[str, ...],
    retrieval: bool,
    max_literals: int | None,
    images_root: str | None,
    table_options: dict[str, Any],
) -> None:
    """Evaluate a file or folder of predictions, and print all results."""
    if report_folder:
        from surelabel.report import check_report_folder

        check_report_folder(report_folder)
    stored = open_evaluated_predictions(path)
    search_evaluation.check_search_evaluation_options(
        stored.names, stored.calibration, queries, retrieval, max_literals
    )
    evaluation = evaluate_predictions_of_command(
        terminal, stored, dataset, images_root, table_options
    )
    _print_evaluation(
        terminal, evaluation, report_folder, queries, retrieval, max_literals, n_seen=None
    )


def _prepare_report(
    folder: str, test_set: "LabelledInput", model: str, dataset: str, images_root: str | None
) -> "LabelledInput":
    """Check the folder of a report, and return scores with the paths of their images."""
    from surelabel.records import LabelledScores
    from surelabel.report import check_report_folder

    check_report_folder(folder)
    if not isinstance(test_set, LabelledScores):
        return test_set
    return with_image_paths(test_set, model if is_score_input(model) else dataset, images_root)


def _resolve_evaluated_model(
    terminal: Terminal,
    model: str,
    test_set: "LabelledInput",
    labels: list[str] | None,
    unseen_names: list[str] | None,
    overrides: list[str],
) -> "Recognizer":
    """Return the recognizer of a model for the labels of the dataset, without unseen labels."""
    from surelabel.recognizer import resolve_model

    model, default_names, overrides = model_of_dataset(model, test_set, overrides)
    return resolve_model(
        model,
        labels,
        default_names=unseen_labels.exclude_unseen_labels(default_names, unseen_names),
        settings=overrides,
        device=terminal.device,
    )


def _print_evaluation(
    terminal: Terminal,
    evaluation: "Evaluation",
    report_folder: str | None,
    queries: Sequence[str],
    retrieval: bool,
    max_literals: int | None,
    *,
    n_seen: int | None,
) -> None:
    """Search the images, write the report, and print all results of an evaluation.

    Args:
        terminal: Object that prints results, status lines and progress.
        evaluation: Evaluation of the recognizer.
        report_folder: Folder of the report, or None.
        queries: Values of the option ``--search``.
        retrieval: Value of the option ``--retrieval``.
        max_literals: Value of the option ``--max-literals``.
        n_seen: Number of seen labels, which come first; None without ``--unseen``.
    """
    from surelabel.report import report

    searches = search_evaluation.run_search_evaluation(evaluation, queries)
    retrieval_results = (
        search_evaluation.run_retrieval_search_evaluation(terminal, evaluation, max_literals)
        if retrieval
        else None
    )
    unseen_results = (
        None if n_seen is None else unseen_labels.evaluate_unseen_labels(evaluation, n_seen)
    )
    if report_folder:
        page = report(
            evaluation,
            report_folder,
            searches=search_evaluation.search_evaluation_for_report(searches),
            retrieval=retrieval_results,
            unseen=unseen_labels.unseen_labels_for_report(unseen_results, evaluation, n_seen or 0),
        )
        terminal.print_status(f"Report: {page}")
    value = (
        metric_tables_as_json(evaluation)
        | search_evaluation.search_evaluation_as_json(searches, retrieval_results)
        | unseen_labels.unseen_labels_as_json(unseen_results)
    )
    text = [
        metric_tables_as_text(evaluation),
        *search_evaluation.search_evaluation_as_text(searches, retrieval_results),
        *unseen_labels.unseen_labels_as_text(unseen_results),
    ]
    terminal.print_result(value, "\n".join(text))
    print_tag_skipped_images(evaluation.predictions.skipped)


def evaluate_in_evaluate_command(
    terminal: Terminal, recognizer: "Recognizer", test_set: "LabelledInput", *, for_report: bool
) -> "Evaluation":
    """Evaluate a recognizer and show the progress.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer to evaluate.
        test_set: Annotated images or feature vectors.
        for_report: If True, the evaluation also contains the zero-shot baseline and the heat maps
            that a report shows.

    Returns:
        The evaluation, with confidence intervals of the metrics.
    """
    from dataclasses import replace

    from surelabel.evaluation import evaluation_confidence_intervals
    from surelabel.recognizer import basic_evaluation_run
    from surelabel.recognizer import evaluate as evaluate_with_heat_maps

    with terminal.progress("Evaluating") as progress:
        if for_report:
            return evaluate_with_heat_maps(recognizer, test_set, progress=progress)
        evaluation = basic_evaluation_run(recognizer, test_set, progress=progress)
        return replace(evaluation, intervals=evaluation_confidence_intervals(evaluation))
