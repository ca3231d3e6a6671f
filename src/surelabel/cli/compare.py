"""Define ``surelabel compare``, a paired comparison of two recognizers or prediction files."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.compared_models import load_compared_models
from surelabel.cli.input_options import images_root_input_option, max_image_memory_input_option
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_table_options import label_table_options
from surelabel.cli.output_paths import validate_terminal_output_folder
from surelabel.cli.prediction_inputs import validate_model_or_prediction_path
from surelabel.cli.score_inputs import score_kind_option, score_labels_argument
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.evaluation import Comparison

MAX_LABELS = 10  # labels of the table on the terminal


@click.command()
@click.argument("first", metavar="A", callback=validate_model_or_prediction_path)
@click.argument("second", metavar="B", callback=validate_model_or_prediction_path)
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
@click.option(
    "--resamples",
    type=click.IntRange(2),
    metavar="N",
    help="Number of bootstrap resamples. [1000; fewer for large datasets]",
)
@images_root_input_option
@label_table_options
@max_image_memory_input_option
@with_terminal_options
def compare(
    terminal: Terminal,
    first: str,
    second: str,
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    report_folder: str | None,
    resamples: int | None,
    images_root: str | None,
    table_options: dict[str, Any],
) -> None:
    """Compare two models on annotated images, with intervals.

    A and B are folders of saved recognizers, encoders, or prediction files that `surelabel tag
    --out` wrote (.parquet, .csv, .jsonl). DATASET contains annotated images, in a format of
    `surelabel evaluate`, that were used neither for fitting nor for calibration.

    The differences B - A of all metrics have 95 % bootstrap intervals over images; both models are
    evaluated on the same resamples. Only images and labels that A, B and DATASET share are
    compared. If A or B is uncalibrated, only ranking metrics are compared.

    For scores of another program, give scores:FILE as DATASET, the annotations of its images as
    LABELS, and recognizers of scores as A and B. To compare two tables of scores, give scores:FILE
    as A and as B, --as, and the annotations as DATASET.
    """
    (model_a, model_b), labelled = load_compared_models(
        terminal, (first, second), dataset, score_labels, score_kind, images_root, table_options
    )

    from surelabel.recognizer.comparison import compare_models
    from surelabel.report import check_report_folder, report_comparison

    if report_folder:
        check_report_folder(report_folder)
    with terminal.progress("Comparing", "resamples") as progress:
        comparison = compare_models(
            model_a,
            model_b,
            labelled,
            resamples=resamples,
            seed=terminal.seed or 0,
            progress=progress,
        )
    if report_folder:
        page = report_comparison(comparison, report_folder)
        terminal.print_status(f"Report: {page}")
    terminal.print_result(comparison.as_dict(), comparison_as_text(comparison))
    for model in (model_a, model_b):
        print_tag_skipped_images(model.predictions.skipped)


def comparison_as_text(comparison: "Comparison") -> str:
    """Return a text with the compared data, a table of metrics, and the labels that differ.

    Args:
        comparison: Result of the comparison.
    """
    from surelabel.report.comparison_tables import (
        comparison_label_rows,
        comparison_metric_rows,
        comparison_sentences,
        label_difference_sentences,
    )

    header, rows = comparison_metric_rows(comparison, main_only=True)
    lines = [*comparison_sentences(comparison), format_terminal_table(header, rows)]
    n_more = len(comparison.metrics) - len(rows)
    if n_more > 0:
        lines.append(
            f"The results of --json and --report contain {format_count(n_more, 'more metric')}."
        )
    lines += label_difference_sentences(comparison)
    header, rows = comparison_label_rows(comparison, different_only=True)
    if rows:
        lines.append(format_terminal_table(header, rows[:MAX_LABELS]))
    if len(rows) > MAX_LABELS:
        lines.append(
            "The results of --json and --report contain "
            f"{format_count(len(rows) - MAX_LABELS, 'more label')}."
        )
    return "\n".join(lines)
