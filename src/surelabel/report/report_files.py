"""Write a report to a folder: an HTML page, Markdown, plots and a JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import DataError, InputError
from surelabel.evaluation import Comparison, Evaluation, PairEvaluation
from surelabel.files import atomic_folder
from surelabel.records import PairFeatures, Pairs
from surelabel.report.caption_page import render_caption_page
from surelabel.report.caption_retrieval import (
    CAPTION_RETRIEVAL_PLOT_NAMES,
    caption_retrieval_plots,
)
from surelabel.report.comparison_page import render_comparison_page
from surelabel.report.comparison_plots import COMPARISON_PLOT_NAMES, comparison_plots
from surelabel.report.decision_section import decision_section_plots
from surelabel.report.html_page import HtmlPagePlots, render_html_page
from surelabel.report.image_gallery import QueryHits
from surelabel.report.json_values import strict_json_value
from surelabel.report.label_uncertainty import label_uncertainty_plots
from surelabel.report.markdown_page import markdown_of_page
from surelabel.report.plot_style import PLOTS, Plot
from surelabel.report.plots import (
    PLOT_FILE_NAMES,
    PLOT_FILE_NAMES_0_1_0,
    calibration_section_plots,
    label_count_section_plots,
    per_label_section_plots,
    unseen_section_plots,
)
from surelabel.report.report_json import FORMAT, FORMAT_0_1_0, report_as_json
from surelabel.report.search_results import (
    RetrievalResults,
    plot_search_results_by_query_length,
)
from surelabel.report.unseen_classes import UnseenClasses, check_unseen_classes_of_report

PAGE, MARKDOWN, METRICS, COMPARISON = (
    "index.html",
    "report.md",
    "evaluation.json",
    "comparison.json",
)
COMPARISON_FORMAT = "surelabel comparison 1"
FORMATS_OF_FILES = {METRICS: (FORMAT, FORMAT_0_1_0), COMPARISON: (COMPARISON_FORMAT,)}
REPORT_FILES = {PAGE, MARKDOWN, METRICS, COMPARISON, PLOTS} | {
    f"{PLOTS}/{name}.png"
    for name in (
        *PLOT_FILE_NAMES,
        *CAPTION_RETRIEVAL_PLOT_NAMES,
        *COMPARISON_PLOT_NAMES,
        *PLOT_FILE_NAMES_0_1_0,
    )
}


def report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    before: Evaluation | None = None,
    searches: Sequence[QueryHits] = (),
    retrieval: RetrievalResults | None = None,
    unseen: UnseenClasses | None = None,
) -> Path:
    """Write an evaluation report as an HTML page, Markdown, plots and a JSON file.

    ``index.html`` needs no other file and no network. ``report.md`` contains the same tables and
    links to the plots, which are PNG files in ``plots/``. ``evaluation.json`` contains all metrics.
    An existing report in the folder is replaced.

    Args:
        evaluation: Evaluation to report.
        folder: Folder of the report, which must be new, empty or an existing report.
        before: Earlier evaluation of the same images for comparison, such as before fitting.
        searches: Queries to an index with their hits.
        retrieval: Retrieval metrics by query length, with example queries. If None, the report has
            no section on retrieval.
        unseen: Unseen classes and their metrics. If None, the report has no section on them.

    Returns:
        Path of ``index.html``.

    Raises:
        DataError: If the folder contains files that are not part of a report, or cannot be written.
        InputError: If a target is neither 0 nor 1, or if ``before`` and ``evaluation`` have
            different images or labels. Also if ``unseen`` contains a label that was not evaluated,
            no label, or every evaluated label.
    """
    _check_targets_of_report(evaluation)
    _check_report_before_has_same_data(evaluation, before)
    check_unseen_classes_of_report(evaluation.predictions.names, unseen)
    report_folder = Path(folder)
    check_report_folder(report_folder)
    plots = HtmlPagePlots(
        decisions=decision_section_plots(evaluation),
        calibration=calibration_section_plots(evaluation, before),
        uncertainty=[]
        if evaluation.uncertainty is None
        else label_uncertainty_plots(evaluation.uncertainty),
        unseen=[] if unseen is None else unseen_section_plots(evaluation, unseen),
        label_counts=label_count_section_plots(evaluation),
        per_label=per_label_section_plots(evaluation),
        retrieval=[] if retrieval is None else [plot_search_results_by_query_length(retrieval)],
    )
    page = render_html_page(
        evaluation,
        plots,
        before=before,
        searches=searches,
        retrieval=retrieval,
        unseen=unseen,
    )
    metrics = report_as_json(evaluation, before, retrieval, searches, unseen)
    return write_report_folder(report_folder, page, plots.all_plots(), metrics)


def report_captions(
    evaluation: PairEvaluation,
    pairs: Pairs | PairFeatures,
    folder: str | Path,
    *,
    model: str = "",
    relevance_rows: Sequence[Sequence[str]] = (),
) -> Path:
    """Write a report on retrieval between images and captions: HTML, Markdown, plots and JSON.

    The page shows the queries with the most uncertain first item, unless ``pairs`` are vectors. An
    existing report in the folder is replaced.

    Args:
        evaluation: Evaluation to report.
        pairs: Images and captions of the evaluation.
        folder: Folder of the report, which must be new, empty or an existing report.
        model: Name of the recognizer.
        relevance_rows: Table rows of relevance files, with the columns of
            ``RELEVANCE_FILE_HEADER``.

    Returns:
        Path of ``index.html``.

    Raises:
        DataError: If the folder contains files that are not part of a report, or cannot be written.
    """
    check_report_folder(folder)
    plots = caption_retrieval_plots(evaluation)
    page = render_caption_page(evaluation, pairs, plots, model=model, relevance_rows=relevance_rows)
    metrics = {"format": FORMAT, "model": model, "captions": evaluation.as_dict()}
    text = json.dumps(strict_json_value(metrics), indent=1, allow_nan=False)
    return write_report_folder(Path(folder), page, plots, text)


def report_comparison(comparison: Comparison, folder: str | Path) -> Path:
    """Write a report on a paired comparison: an HTML page, Markdown, plots and a JSON file.

    An existing report in the folder is replaced.

    Args:
        comparison: Comparison to report.
        folder: Folder of the report, which must be new, empty or an existing report.

    Returns:
        Path of ``index.html``.

    Raises:
        DataError: If the folder contains files that are not part of a report, or cannot be written.
    """
    check_report_folder(folder)
    plots = comparison_plots(comparison)
    page = render_comparison_page(comparison, plots)
    contents = {"format": COMPARISON_FORMAT, **comparison.as_dict()}
    text = json.dumps(strict_json_value(contents), indent=1, allow_nan=False, ensure_ascii=False)
    return write_report_folder(Path(folder), page, plots, f"{text}\n", metrics_file=COMPARISON)


def write_report_folder(
    folder: Path, page: str, plots: Sequence[Plot], metrics: str, *, metrics_file: str = METRICS
) -> Path:
    """Write the files of a report, and return the path of ``index.html``.

    Args:
        folder: Folder of the report, which is replaced.
        page: Content of the HTML file, which is also written as Markdown.
        plots: Plots that are also written as PNG files.
        metrics: Content of the JSON file.
        metrics_file: Name of the JSON file.

    Raises:
        DataError: If the folder cannot be written.
    """
    with atomic_folder(folder.resolve()) as new:
        (new / PLOTS).mkdir()
        for plot in plots:
            (new / plot.file).write_bytes(plot.png)
        for name, text in (
            (metrics_file, metrics),
            (PAGE, page),
            (MARKDOWN, markdown_of_page(page)),
        ):
            # a file name may contain bytes that are not Unicode; these are written as escapes
            (new / name).write_text(text, encoding="utf-8", errors="backslashreplace")
    return folder / PAGE


def check_report_folder(folder: str | Path) -> None:
    """Check that a folder is new, empty or an existing report.

    Raises:
        DataError: If the folder contains files that are not part of a report, or the path is a
            file.
    """
    path = Path(folder)
    if not path.exists():
        return
    if not path.is_dir():
        raise DataError(
            f"The path of a report must be a folder; got the file {path}. The file was not "
            "changed. Give another path."
        )
    contents = {p.relative_to(path).as_posix() for p in path.rglob("*")}
    other_files = sorted(contents - REPORT_FILES)
    if contents and not other_files and not _is_report(path):
        other_files = [PAGE]
    if other_files:
        raise DataError(
            "The folder of a report must be new or empty, or contain an existing report; got "
            f"{path}, which contains other files, such as {other_files[0]}. The folder was not "
            "changed. Give another folder."
        )


def _check_targets_of_report(evaluation: Evaluation) -> None:
    """Check that the targets are 0 or 1, which ranking metrics and decisions require.

    Raises:
        InputError: If a target is graded.
    """
    if "mean_average_precision" not in evaluation.summary:
        raise InputError(
            "A report requires targets that are 0 or 1; got graded targets between 0 and 1. Print "
            "the metrics without a report, or round the targets."
        )


def _check_report_before_has_same_data(evaluation: Evaluation, before: Evaluation | None) -> None:
    if before is None:
        return
    predictions, earlier = evaluation.predictions, before.predictions
    if list(predictions.paths) != list(earlier.paths) or list(predictions.names) != list(
        earlier.names
    ):
        raise InputError(
            "before and evaluation must have equal images and labels; got "
            f"{len(earlier)} images x {len(earlier.names)} labels in before, and "
            f"{len(predictions)} images x {len(predictions.names)} labels in evaluation. Compute "
            "both evaluations on the same images with the same labels, in the same order."
        )


def _is_report(folder: Path) -> bool:
    """Return whether the JSON file of a folder starts as that of a report."""
    for name, formats in FORMATS_OF_FILES.items():
        if (folder / name).is_file():
            starts = tuple(f'{{\n "format": "{key}"'.encode() for key in formats)
            with (folder / name).open("rb") as file:
                return file.read(max(map(len, starts))).startswith(starts)
    return False
