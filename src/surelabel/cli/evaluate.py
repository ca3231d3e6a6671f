"""``surelabel evaluate``."""

from typing import TYPE_CHECKING

import click

from surelabel.cli import searching
from surelabel.cli import unseen as unlearnt
from surelabel.cli.measures import as_text, as_value
from surelabel.cli.searching import search_options
from surelabel.cli.sources import (
    labelled_pictures,
    labels_option,
    learn_first,
    method_options,
    names_of,
    overrides,
    pictures_option,
)
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, whole_folder, with_terminal
from surelabel.cli.unseen import unseen_option

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation
    from surelabel.recognizer import Labelled, Recognizer


@click.command()
@click.argument("model")
@click.argument("labels")
@click.option(
    "--report", "folder", callback=whole_folder, metavar="FOLDER", help="Write a report there."
)
@unseen_option
@search_options
@method_options
@pictures_option
@labels_option
@with_terminal
def evaluate(
    terminal: Terminal,
    model: str,
    labels: str,
    folder: str | None,
    unseen: str | None,
    queries: tuple[str, ...],
    retrieval: bool,
    up_to: int | None,
    method: str | None,
    settings: tuple[str, ...],
    pictures: str | None,
    names: str | None,
) -> None:
    """Measure how good and how honest a recognizer is.

    MODEL is a saved recognizer or an encoder; LABELS is a label file, a part of a collection,
    such as scenes-80:test, or ready-made vectors (.npz) that neither fitting nor calibration has
    seen.
    """
    from surelabel.recognizer import open_recognizer
    from surelabel.report import check_place, report

    if folder:
        check_place(folder)
    others = names_of(unseen)
    unlearnt.check_unseen(model, names, others)
    test = labelled_pictures(labels, pictures)
    recognizer = open_recognizer(
        model,
        names_of(names),
        otherwise=unlearnt.seen_of(test.names, others),
        settings=overrides(settings, method__name=method),
        device=terminal.device,
    )
    seen = len(recognizer.names)
    if others is not None:
        recognizer = unlearnt.with_unseen(recognizer, others, test)
    searching.check_searches(recognizer, queries, retrieval, up_to)
    learn_first(terminal, recognizer, test)
    found = measured(terminal, recognizer, test, places=folder is not None)
    searches = searching.searched(found, queries)
    by_length = searching.retrieved(terminal, found, up_to) if retrieval else None
    opened = None if others is None else unlearnt.opened(found, seen)
    if folder:
        shown = searching.for_report(searches)
        new = unlearnt.for_report(opened, found, seen)
        page = report(found, folder, searches=shown, retrieval=by_length, unseen=new)
        terminal.say(f"Report: {page}")
    terminal.show(
        as_value(found) | searching.as_value(searches, by_length) | unlearnt.as_value(opened),
        "\n".join(
            [as_text(found), *searching.as_text(searches, by_length), *unlearnt.as_text(opened)]
        ),
    )
    tell_skipped(found.predictions.skipped)


def measured(
    terminal: Terminal, recognizer: "Recognizer", test: "Labelled", *, places: bool
) -> "Evaluation":
    """The metrics with their intervals; for a report also where labels are seen."""
    from dataclasses import replace

    from surelabel.evaluation import intervals
    from surelabel.recognizer import evaluate as located
    from surelabel.recognizer import judged

    with terminal.progress("Evaluating") as progress:
        if places:
            return located(recognizer, test, progress=progress)
        found = judged(recognizer, test, progress=progress)
        return replace(found, intervals=intervals(found))
