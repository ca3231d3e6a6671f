"""A report on disk: a page, the plots beside it and the numbers."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import DataError, InputError
from surelabel.evaluation import Evaluation
from surelabel.files import new_folder
from surelabel.report.figures import NAMES, counting_plots, honesty_plots, label_plots
from surelabel.report.gallery import Search
from surelabel.report.numbers import FORMAT, numbers
from surelabel.report.page import page
from surelabel.report.queries import Retrieval, query_plot
from surelabel.report.unseen import Unseen, check_unseen, unseen_plots

PAGE, NUMBERS, PLOTS = "index.html", "evaluation.json", "plots"
OURS = {PAGE, NUMBERS, PLOTS} | {f"{PLOTS}/{name}.png" for name in NAMES}


def report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    before: Evaluation | None = None,
    searches: Sequence[Search] = (),
    retrieval: Retrieval | None = None,
    unseen: Unseen | None = None,
) -> Path:
    """Write an evaluation as a page for people, plots, and numbers for programs.

    ``index.html`` needs no other file and no network. ``plots/`` holds its plots as PNG files,
    ``evaluation.json`` all its numbers. An older report in the folder is replaced as a whole.

    Args:
        evaluation: What to show.
        folder: Where; new, empty, or an older report.
        before: The same pictures before calibration or fitting, to compare with.
        searches: Questions to an index with their answers, to be shown with pictures.
        retrieval: How well conjunctions find pictures, by length, with some answers.
        unseen: Names that the recognizer has not learnt, to be shown beside the others.

    Returns:
        The path of ``index.html``.

    Raises:
        DataError: the folder holds something else, or cannot be written.
        InputError: ``before`` judged other pictures or other labels, or ``unseen`` names others.
    """
    _check_same(evaluation, before)
    check_unseen(evaluation, unseen)
    place = Path(folder)
    check_place(place)
    honesty, counted = honesty_plots(evaluation, before), counting_plots(evaluation)
    by_label = label_plots(evaluation)
    by_side = [] if unseen is None else unseen_plots(evaluation, unseen)
    by_length = [] if retrieval is None else [query_plot(retrieval)]
    whole = page(
        evaluation,
        before=before,
        honesty=honesty,
        counted=counted,
        by_label=by_label,
        searches=searches,
        retrieval=retrieval,
        by_length=by_length,
        unseen=unseen,
        by_side=by_side,
    )
    text = numbers(evaluation, before, retrieval, searches, unseen)
    with new_folder(place.resolve()) as new:
        (new / PLOTS).mkdir()
        for plot in (*honesty, *by_side, *counted, *by_label, *by_length):
            (new / PLOTS / f"{plot.name}.png").write_bytes(plot.png)
        # a file name need not be Unicode; what is not is written as an escape
        (new / NUMBERS).write_text(text, encoding="utf-8", errors="backslashreplace")
        (new / PAGE).write_text(whole, encoding="utf-8", errors="backslashreplace")
    return place / PAGE


def check_place(folder: str | Path) -> None:
    """Refuse a folder that holds anything that a report did not write, before any work is done.

    Raises:
        DataError: it does, or is a file.
    """
    place = Path(folder)
    if not place.exists():
        return
    if not place.is_dir():
        raise DataError(f"{place} is a file, and a report is a folder. Give another name.")
    held = {p.relative_to(place).as_posix() for p in place.rglob("*")}
    strange = sorted(held - OURS)
    if held and not strange and not _is_report(place / NUMBERS):
        strange = [PAGE]
    if strange:
        raise DataError(
            f"{place} holds something that is not a report of ours, such as {strange[0]}; it was "
            f"left alone. Give a new or empty folder."
        )


def _check_same(evaluation: Evaluation, before: Evaluation | None) -> None:
    if before is None:
        return
    now, then = evaluation.predictions, before.predictions
    if list(now.paths) != list(then.paths) or list(now.names) != list(then.names):
        raise InputError(
            f"before must judge the same pictures and labels in the same order. Got {len(then)} "
            f"pictures and {len(then.names)} labels before, {len(now)} and {len(now.names)} now: "
            f"evaluate both on the same labelled pictures."
        )


def _is_report(file: Path) -> bool:
    """Whether the numbers begin as ours do."""
    start = f'{{\n "format": "{FORMAT}"'.encode()
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(start)) == start
