"""``surelabel calibrate``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.measures import HONESTY, metric_table
from surelabel.cli.sources import (
    labelled_pictures,
    labels_option,
    learn_first,
    method_options,
    names_of,
    overrides,
    pictures_option,
    unlabelled_pictures,
    unreadable,
)
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, table, whole_folder, with_terminal

if TYPE_CHECKING:
    from surelabel.evaluation import Coverage, Evaluation
    from surelabel.recognizer import Recognizer

SHOWN = 10  # labels whose frequency changed most
UNCHECKED = (
    "No label was there to check these probabilities by: `surelabel evaluate` on some labelled "
    "pictures says how honest they are."
)


@click.command()
@click.argument("model")
@click.argument("labels")
@click.option("--out", callback=whole_folder, metavar="FOLDER", help="Where to save it.")
@click.option("--test", metavar="LABELS", help="Other labelled pictures to measure on.")
@click.option(
    "--unlabelled",
    is_flag=True,
    help="LABELS is a folder of pictures without labels, or a .txt of paths: calibrate by what "
    "parts of them show, or move a calibration to an archive in which labels are rarer or more "
    "common.",
)
@method_options
@pictures_option
@labels_option
@with_terminal
def calibrate(
    terminal: Terminal,
    model: str,
    labels: str,
    out: str | None,
    test: str | None,
    unlabelled: bool,
    method: str | None,
    settings: tuple[str, ...],
    pictures: str | None,
    names: str | None,
) -> None:
    """Make probabilities honest with held-out labelled pictures.

    MODEL is a saved recognizer or an encoder; LABELS is a label file or a part of a collection,
    such as scenes-80:validation, that fitting has not seen. Says what to label next.
    """
    from surelabel.evaluation import coverage
    from surelabel.recognizer import check_free, judged, open_recognizer

    if out:
        check_free(out)
    if unlabelled:
        if test or pictures:
            raise click.UsageError("--unlabelled goes with neither --test nor --pictures.")
        without_labels(
            terminal, model, labels, out, names, overrides(settings, method__name=method)
        )
        return
    held_out = labelled_pictures(labels, pictures)
    tested = labelled_pictures(test, pictures) if test else held_out
    recognizer = open_recognizer(
        model,
        names_of(names),
        otherwise=held_out.names,
        settings=overrides(settings, method__name=method),
        device=terminal.device,
    )
    learn_first(terminal, recognizer, held_out)
    with terminal.progress("Encoding") as progress:
        before = judged(recognizer, tested, progress=progress)
    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(held_out, progress=progress)
    if out:
        recognizer.save(out)
    found = coverage(recognizer.aligned(held_out))
    show_change(terminal, before, judged(recognizer, tested), found, test, out)
    others = unreadable(recognizer, held_out) if test else ()
    tell_skipped(list(dict.fromkeys([*before.predictions.skipped, *others])))


def without_labels(
    terminal: Terminal,
    model: str,
    source: str,
    out: str | None,
    names: str | None,
    settings: Sequence[str],
) -> None:
    """Calibrate by unlabelled pictures, or move a calibration to them."""
    from surelabel.recognizer import open_recognizer

    paths = unlabelled_pictures(source)
    recognizer = open_recognizer(model, names_of(names), settings=settings, device=terminal.device)
    learn_first(terminal, recognizer, paths)
    act = calibrated_alone if recognizer.calibrated_on is None else move
    value, text = act(terminal, recognizer, paths)
    if out:
        recognizer.save(out)
    saved = f"Saved in {out}." if out else "Nothing was saved; --out FOLDER saves it."
    terminal.show({"recognizer": out, "pictures": len(paths), **value}, f"{text}\n{saved}")


def calibrated_alone(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> tuple[dict[str, Any], str]:
    """Calibrate by pictures without labels; on what the probabilities rest, in words."""
    from surelabel.records import Images

    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(Images(paths), progress=progress)
    about = recognizer.calibrated_on
    return {"calibration": about}, f"Calibrated: {about}.\n{UNCHECKED}"


def move(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> tuple[dict[str, Any], str]:
    """Move a calibration; the labels whose log-odds change most."""
    with terminal.progress("Encoding") as progress:
        recognizer.move_to(paths, progress=progress)
    found = recognizer.calibration
    shifts = dict(zip(recognizer.names, found.shift if found else (), strict=True))
    changed = sorted(shifts.items(), key=lambda pair: -abs(pair[1]))
    rows = [[name, f"{value:+.2f}"] for name, value in changed[:SHOWN]]
    text = [
        f"Moved to {len(paths)} pictures. It holds where only the frequencies of labels changed.",
        table(["label", "change of its log-odds"], rows),
    ]
    return {"shift": shifts}, "\n".join(text)


def show_change(
    terminal: Terminal,
    before: "Evaluation",
    after: "Evaluation",
    found: "Coverage",
    test: str | None,
    out: str | None,
) -> None:
    """Positives of each label, the change, and what to label next."""
    where = test or "the same pictures, which flatters it; give others with --test LABELS"
    text = [
        table(["label", "positives"], list(found.positives.items())),
        "",
        metric_table({"before": before, "after": after}, HONESTY),
        f"Measured on {where}.",
        f"Label next: {', '.join(found.fewest)} (they have the fewest positives).",
        f"Saved in {out}." if out else "Nothing was saved; --out FOLDER saves it.",
    ]
    value = {
        "positives": found.positives,
        "label_next": found.fewest,
        "before": {"summary": before.summary, "floor": before.floor},
        "after": {"summary": after.summary, "floor": after.floor},
        "measured_on": where,
        "recognizer": out,
    }
    terminal.show(value, "\n".join(text))
