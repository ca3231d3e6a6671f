"""Write a report to a folder: an HTML page, plots and a JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import DataError, InputError
from surelabel.evaluation import Evaluation, PairEvaluation
from surelabel.files import atomic_folder
from surelabel.records import PairFeatures, Pairs
from surelabel.report.caption_page import render_caption_page
from surelabel.report.caption_retrieval import (
    CAPTION_RETRIEVAL_PLOT_NAMES,
    caption_retrieval_plots,
)
from surelabel.report.decision_section import decision_section_plots
from surelabel.report.html_page import HtmlPagePlots, render_html_page
from surelabel.report.image_gallery import QueryHits
from surelabel.report.json_values import strict_json_value
from surelabel.report.label_uncertainty import label_uncertainty_plots
from surelabel.report.plot_style import Plot
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

PAGE, METRICS, PLOTS = "index.html", "evaluation.json", "plots"
REPORT_FILES = {PAGE, METRICS, PLOTS} | {
    f"{PLOTS}/{name}.png"
    for name in (*PLOT_FILE_NAMES, *CAPTION_RETRIEVAL_PLOT_NAMES, *PLOT_FILE_NAMES_0_1_0)
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
    """Write an evaluation report: an HTML page, plots and a JSON file.

    ``index.html`` needs no other file and no network. ``plots/`` contains the plots as PNG files,
    and ``evaluation.json`` contains all metrics. An existing report in the folder is replaced.

    Args:
        evaluation: Evaluation to report.
        folder: Folder of the report, which must be new, empty or an existing report.
        before: Earlier evaluation of the same images for comparison, such as before fitting.
        searches: Queries to an index with their hits.
        retrieval: Retrieval metrics by query length, with example queries. If None, the report has
            no such section.
        unseen: Unseen classes and their metrics. If None, the report has no such section.

    Returns:
        Path of ``index.html``.

    Raises:
        DataError: If the folder contains files that are not part of a report, or cannot be written.
        InputError: If ``before`` and ``evaluation`` have different images or labels, or if
            ``unseen`` contains a label that was not evaluated.
    """
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
    """Write a report on retrieval between images and captions: an HTML page, plots and JSON.

    The page shows the queries with the most uncertain first item, unless ``pairs`` are vectors. An
    existing report in the folder is replaced.

    Args:
        evaluation: Evaluation to report.
        pairs: Images and captions of the evaluation.
        folder: Folder of the report, which must be new, empty or an existing report.
        model: Name of the recognizer.
        relevance_rows: Rows of ``RELEVANCE_FILE_HEADER``, of files with relevant ids.

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


def write_report_folder(folder: Path, page: str, plots: Sequence[Plot], metrics: str) -> Path:
    """Write the files of a report, and return the path of ``index.html``.

    Args:
        folder: Folder of the report, which is replaced.
        page: Content of the HTML file.
        plots: Plots that are also written as PNG files.
        metrics: Content of the JSON file.

    Raises:
        DataError: If the folder cannot be written.
    """
    with atomic_folder(folder.resolve()) as new:
        (new / PLOTS).mkdir()
        for plot in plots:
            (new / PLOTS / f"{plot.name}.png").write_bytes(plot.png)
        # a file name may contain bytes that are not Unicode; these are written as escapes
        (new / METRICS).write_text(metrics, encoding="utf-8", errors="backslashreplace")
        (new / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
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
            f"A report is a folder, but {path} is a file. The file was not changed; give another "
            "path."
        )
    contents = {p.relative_to(path).as_posix() for p in path.rglob("*")}
    other_files = sorted(contents - REPORT_FILES)
    if contents and not other_files and not _is_metrics_file_of_report(path / METRICS):
        other_files = [PAGE]
    if other_files:
        raise DataError(
            f"The folder of a report must be new, empty or an existing report, but {path} contains "
            f"other files, such as {other_files[0]}. The folder was not changed; give another "
            "folder."
        )


def _check_report_before_has_same_data(evaluation: Evaluation, before: Evaluation | None) -> None:
    if before is None:
        return
    predictions, earlier = evaluation.predictions, before.predictions
    if list(predictions.paths) != list(earlier.paths) or list(predictions.names) != list(
        earlier.names
    ):
        raise InputError(
            "before and evaluation must have the same images and labels in the same order. before "
            f"has {len(earlier)} images and {len(earlier.names)} labels; evaluation has "
            f"{len(predictions)} images and {len(predictions.names)} labels. "
            "Compute both evaluations on the same dataset."
        )


def _is_metrics_file_of_report(path: Path) -> bool:
    """Return whether a file starts with the first bytes of the JSON file of a report."""
    starts = [f'{{\n "format": "{name}"'.encode() for name in (FORMAT, FORMAT_0_1_0)]
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(max(map(len, starts)))
    return any(head.startswith(start) for start in starts)
