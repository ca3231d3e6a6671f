"""``surelabel fit``."""

import click

from surelabel.cli.sources import (
    labelled_images,
    labels_option,
    names_of,
    overrides,
    pictures_option,
    unreadable,
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
    pictures: str | None,
    names: str | None,
) -> None:
    """Fit a recognizer on labelled pictures.

    LABELS is a label file (CSV, JSON lines, COCO, VOC) or a part of a shipped collection, such as
    scenes-80:train.
    """
    from surelabel.config import load_run
    from surelabel.recognizer import Recognizer, check_free

    check_free(out)
    chosen = load_run(run, overrides(settings, backbone__name=model, seed=terminal.seed))
    labelled = labelled_images(labels, pictures)
    recognizer = Recognizer(chosen, names_of(names) or labelled.names, device=terminal.device)
    with terminal.progress("Fitting") as progress:
        recognizer.fit(labelled, progress=progress)
    recognizer.save(out)
    skipped = unreadable(recognizer, labelled)
    count = len(labelled) - len(skipped)
    terminal.show(
        {"recognizer": out, "names": recognizer.names, "pictures": count},
        f"Fitted {chosen.method.name} on {count} pictures for {len(recognizer.names)} labels and "
        f"saved it in {out}.\nNext: surelabel calibrate {out} OTHER_LABELS --out {out}",
    )
    tell_skipped(skipped)
