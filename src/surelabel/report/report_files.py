"""Write a report to a folder: an HTML page, plots and a JSON file."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import DataError, InputError
from surelabel.evaluation import Evaluation
from surelabel.files import atomic_folder
from surelabel.report.html_page import HtmlPagePlots, render_html_page
from surelabel.report.image_gallery import QueryHits
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
    f"{PLOTS}/{name}.png" for name in (*PLOT_FILE_NAMES, *PLOT_FILE_NAMES_0_1_0)
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
        calibration=calibration_section_plots(evaluation, before),
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
    with atomic_folder(report_folder.resolve()) as new:
        (new / PLOTS).mkdir()
        for plot in plots.all_plots():
            (new / PLOTS / f"{plot.name}.png").write_bytes(plot.png)
        # a file name may contain bytes that are not Unicode; these are written as escapes
        (new / METRICS).write_text(metrics, encoding="utf-8", errors="backslashreplace")
        (new / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
    return report_folder / PAGE


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
