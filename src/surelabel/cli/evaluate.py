"""``surelabel evaluate``."""

import click

from surelabel.cli.measures import as_text, as_value
from surelabel.cli.sources import labelled_images, labels_option, names_of, pictures_option
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, whole_folder, with_terminal


@click.command()
@click.argument("model")
@click.argument("labels")
@click.option(
    "--report", "folder", callback=whole_folder, metavar="FOLDER", help="Write a report there."
)
@pictures_option
@labels_option
@with_terminal
def evaluate(
    terminal: Terminal,
    model: str,
    labels: str,
    folder: str | None,
    pictures: str | None,
    names: str | None,
) -> None:
    """Measure how good and how honest a recognizer is.

    MODEL is a saved recognizer or an encoder; LABELS is a label file or a part of a collection,
    such as scenes-80:test, that neither fitting nor calibration has seen.
    """
    from surelabel.recognizer import evaluate as located
    from surelabel.recognizer import judged, open_recognizer
    from surelabel.report import check_place, report

    if folder:
        check_place(folder)
    test = labelled_images(labels, pictures)
    recognizer = open_recognizer(
        model, names_of(names), otherwise=test.names, device=terminal.device
    )
    with terminal.progress("Evaluating") as progress:
        found = (located if folder else judged)(recognizer, test, progress=progress)
    if folder:
        terminal.say(f"Report: {report(found, folder)}")
    terminal.show(as_value(found), as_text(found))
    tell_skipped(found.predictions.skipped)
