"""``surelabel evaluate``: metrics of a recognizer on annotated images."""

from typing import TYPE_CHECKING

import click

from surelabel.cli import search_evaluation, unseen_labels
from surelabel.cli.input_options import (
    fit_without_labels,
    images_root_option,
    labels_option,
    load_dataset,
    method_options,
    parse_labels,
    run_overrides,
)
from surelabel.cli.metric_tables import evaluation_as_json, evaluation_as_text
from surelabel.cli.search_evaluation import search_options
from surelabel.cli.tag import print_skipped_images
from surelabel.cli.terminal import Terminal, validate_output_folder, with_terminal_options
from surelabel.cli.unseen_labels import unseen_option

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation
    from surelabel.recognizer import LabelledInput, Recognizer


@click.command()
@click.argument("model")
@click.argument("dataset")
@click.option(
    "--report",
    "report_folder",
    callback=validate_output_folder,
    metavar="FOLDER",
    help="Write an HTML report to this folder.",
)
@unseen_option
@search_options
@method_options
@images_root_option
@labels_option
@with_terminal_options
def evaluate(
    terminal: Terminal,
    model: str,
    dataset: str,
    report_folder: str | None,
    unseen: str | None,
    queries: tuple[str, ...],
    retrieval: bool,
    max_literals: int | None,
    method: str | None,
    settings: tuple[str, ...],
    images_root: str | None,
    names: str | None,
) -> None:
    """Measure the accuracy and the calibration of a recognizer.

    MODEL is a saved recognizer or an encoder. DATASET contains annotated images that were used
    neither for fitting nor for calibration: a label file, a split of a collection such as
    scenes-80:test, or feature vectors (.npz).
    """
    from surelabel.recognizer import resolve_model
    from surelabel.report import check_report_folder, report

    if report_folder:
        check_report_folder(report_folder)
    unseen_names = parse_labels(unseen)
    unseen_labels.check_unseen_options(model, names, unseen_names)
    test_set = load_dataset(dataset, images_root)
    recognizer = resolve_model(
        model,
        parse_labels(names),
        default_names=unseen_labels.exclude_unseen_labels(test_set.names, unseen_names),
        settings=run_overrides(settings, method__name=method),
        device=terminal.device,
    )
    n_seen = len(recognizer.names)
    if unseen_names is not None:
        recognizer = unseen_labels.add_unseen_labels(recognizer, unseen_names, test_set)
    search_evaluation.check_search_options(recognizer, queries, retrieval, max_literals)
    fit_without_labels(terminal, recognizer, test_set)
    evaluation = evaluate_with_progress(
        terminal, recognizer, test_set, for_report=report_folder is not None
    )
    searches = search_evaluation.evaluate_searches(evaluation, queries)
    retrieval_results = (
        search_evaluation.evaluate_retrieval(terminal, evaluation, max_literals)
        if retrieval
        else None
    )
    unseen_results = (
        None if unseen_names is None else unseen_labels.evaluate_open_vocabulary(evaluation, n_seen)
    )
    if report_folder:
        page = report(
            evaluation,
            report_folder,
            searches=search_evaluation.searches_for_report(searches),
            retrieval=retrieval_results,
            unseen=unseen_labels.unseen_classes_for_report(unseen_results, evaluation, n_seen),
        )
        terminal.print_status(f"Report: {page}")
    value = (
        evaluation_as_json(evaluation)
        | search_evaluation.searches_as_json(searches, retrieval_results)
        | unseen_labels.open_vocabulary_as_json(unseen_results)
    )
    text = [
        evaluation_as_text(evaluation),
        *search_evaluation.searches_as_text(searches, retrieval_results),
        *unseen_labels.open_vocabulary_as_text(unseen_results),
    ]
    terminal.print_result(value, "\n".join(text))
    print_skipped_images(evaluation.predictions.skipped)


def evaluate_with_progress(
    terminal: Terminal, recognizer: "Recognizer", test_set: "LabelledInput", *, for_report: bool
) -> "Evaluation":
    """Evaluate a recognizer and show the progress.

    Args:
        terminal: Output of the command.
        recognizer: Recognizer to evaluate.
        test_set: Annotated images or feature vectors.
        for_report: True to add what only a report shows, such as heat maps.

    Returns:
        The evaluation with its confidence intervals.
    """
    from dataclasses import replace

    from surelabel.evaluation import bootstrap_intervals
    from surelabel.recognizer import evaluate as evaluate_with_heat_maps
    from surelabel.recognizer import predict_and_evaluate

    with terminal.progress("Evaluating") as progress:
        if for_report:
            return evaluate_with_heat_maps(recognizer, test_set, progress=progress)
        evaluation = predict_and_evaluate(recognizer, test_set, progress=progress)
        return replace(evaluation, intervals=bootstrap_intervals(evaluation))
