"""``surelabel fit``."""

import click

from surelabel.cli.sources import (
    labelled_pictures,
    labels_option,
    names_of,
    overrides,
    pictures_option,
    unreadable,
    vectors_of,
)
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, whole_folder, with_terminal


@click.command()
@click.argument("labels")
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
    labels: str,
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
    """Fit a recognizer on labelled pictures.

    LABELS is a label file (CSV, JSON lines, COCO, VOC), a part of a shipped collection, such as
    scenes-80:train, or ready-made vectors (.npz with features, targets and names). A fit of a whole
    network that was stopped goes on after its last pass: give the same command again.
    """
    from surelabel.config import load_run
    from surelabel.recognizer import Recognizer, check_free

    check_free(out)
    labelled = labelled_pictures(labels, pictures)
    given = {"method__name": method, "loss__name": loss, "regularizer__name": regularizer}
    encoder = {"backbone__name": model or vectors_of(labelled)}
    chosen = load_run(run, overrides(settings, seed=terminal.seed, **encoder, **given))
    recognizer = Recognizer(chosen, names_of(names) or labelled.names, device=terminal.device)
    with terminal.progress("Fitting") as progress:
        recognizer.fit(
            labelled, folds=folds or 0, checkpoint=f"{out}.unfinished", progress=progress
        )
    recognizer.save(out)
    skipped = unreadable(recognizer, labelled)
    count = len(labelled) - len(skipped)
    how = f", calibrated by {folds} folds" if folds else ""
    next_step = (
        f"surelabel evaluate {out} OTHER_LABELS"
        if folds
        else (f"surelabel calibrate {out} OTHER_LABELS --out {out}")
    )
    terminal.show(
        {"recognizer": out, "names": recognizer.names, "pictures": count},
        f"Fitted {chosen.method.name} on {count} pictures for {len(recognizer.names)} labels{how} "
        f"and saved it in {out}.\nNext: {next_step}",
    )
    tell_skipped(skipped)
