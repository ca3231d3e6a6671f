"""``surelabel fit``."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from surelabel.cli.calibrate import UNCHECKED
from surelabel.cli.sources import (
    labels_option,
    names_of,
    overrides,
    pictures_option,
    to_learn_from,
    unreadable,
    vectors_of,
)
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, one_line, whole_folder, with_terminal

if TYPE_CHECKING:
    from surelabel.config import Run
    from surelabel.recognizer import Labelled, Recognizer
    from surelabel.records import Images


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="LABELS|PICTURES...")
@click.option(
    "--out", callback=whole_folder, required=True, metavar="FOLDER", help="Where to save it."
)
@click.option("--run", metavar="FILE.toml", help="What to fit; defaults where it says nothing.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the run."
)
@click.option("--model", help="The encoder; the same as --set backbone.name=MODEL.")
@click.option("--method", help="What to fit; the same as --set method.name=METHOD.")
@click.option("--loss", help="What to make small; the same as --set loss.name=LOSS.")
@click.option("--regularizer", help="And beside it; the same as --set regularizer.name=NAME.")
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    help="Calibrate as well, with no other labels: on what K fits say of the part each misses.",
)
@pictures_option
@labels_option
@with_terminal
def fit(
    terminal: Terminal,
    sources: tuple[str, ...],
    out: str,
    run: str | None,
    settings: tuple[str, ...],
    model: str | None,
    method: str | None,
    loss: str | None,
    regularizer: str | None,
    folds: int | None,
    pictures: str | None,
    names: str | None,
) -> None:
    """Fit a recognizer on labelled pictures, or on pictures alone.

    LABELS is a label file (CSV, JSON lines, COCO, VOC), a part of a shipped collection, such as
    scenes-80:train, or ready-made vectors (.npz with features, targets and names). A method that
    learns from images, such as tailor, takes PICTURES as tag does, and names with --labels; no
    label is looked at, also not to calibrate it. A long fit that was stopped goes on: give the same
    command again.
    """
    from surelabel.config import load_run
    from surelabel.recognizer import Recognizer, check_free

    check_free(out)
    given = {"method__name": method, "loss__name": loss, "regularizer__name": regularizer}
    given["backbone__name"] = model
    chosen = load_run(run, overrides(settings, seed=terminal.seed, **given))
    source = to_learn_from(chosen.method.name, sources, pictures)
    chosen = chosen if model else for_vectors(chosen, source)
    recognizer = Recognizer(chosen, names_for(chosen, source, names), device=terminal.device)
    with terminal.progress("Fitting") as progress:
        recognizer.fit(source, folds=folds or 0, checkpoint=f"{out}.unfinished", progress=progress)
    recognizer.save(out)
    skipped = unreadable(recognizer, source)
    if recognizer.method.learns_from == "images" and not vectors_of(source):
        bad = {picture.path for picture in skipped}
        calibrate_alone(terminal, recognizer, [p for p in source.paths if p not in bad], out)
    count = len(source) - len(skipped)
    value = {"recognizer": out, "names": recognizer.names, "pictures": count}
    text = (
        f"Fitted {chosen.method.name} on {count} pictures for {len(recognizer.names)} labels"
        f"{f', calibrated by {folds} folds' if folds else ''} and saved it in {out}."
    )
    terminal.show(value, f"{text}\n{what_next(recognizer, out)}")
    tell_skipped(skipped)


def calibrate_alone(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str], out: str
) -> None:
    """Calibrate without labels what was saved; where that cannot be done it keeps its scores."""
    from surelabel.errors import ConfigError, InputError
    from surelabel.records import Images

    try:
        with terminal.progress("Calibrating") as progress:
            recognizer.calibrate(Images(paths), progress=progress)
    except (ConfigError, InputError) as error:
        terminal.say(f"It gives scores and no probabilities: {one_line(error)}")
    else:
        recognizer.save(out)


def what_next(recognizer: "Recognizer", out: str) -> str:
    """On what its probabilities rest, if it has any, and the command to give next."""
    found = recognizer.calibration
    if found is None:
        return f"Next: surelabel calibrate {out} OTHER_LABELS --out {out}"
    if found.labelled:
        return f"Next: surelabel evaluate {out} OTHER_LABELS"
    return f"Calibrated: {found.about}.\n{UNCHECKED}\nNext: surelabel tag PICTURES --model {out}"


def for_vectors(run: "Run", source: "Images | Labelled") -> "Run":
    """The run with ready-made vectors for its encoder, where these are given."""
    encoder = vectors_of(source)
    return replace(run, backbone=replace(run.backbone, name=encoder)) if encoder else run


def names_for(run: "Run", source: "Images | Labelled", names: str | None) -> list[str]:
    """What to look for: what was asked for, or all that the labels have.

    Raises:
        InputError: neither says.
    """
    from surelabel.errors import InputError

    wanted = names_of(names) or list(getattr(source, "names", ()))
    if not wanted:
        raise InputError(
            f"{run.method.name} needs names to learn, and pictures alone bring none. Give them "
            'with --labels: in words ("dog, bicycle"), in a file with one name a line, or -.'
        )
    return wanted
