"""``surelabel fit``."""

import click

from surelabel.cli.sources import (
    labelled_images,
    labels_option,
    names_of,
    overrides,
    pictures_option,
)
from surelabel.cli.terminal import Terminal, output, with_terminal


@click.command()
@click.argument("labels")
@click.option("--out", callback=output, required=True, metavar="FOLDER", help="Where to save it.")
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
    from surelabel.recognizer import Recognizer

    chosen = load_run(run, overrides(settings, backbone__name=model, seed=terminal.seed))
    labelled = labelled_images(labels, pictures)
    recognizer = Recognizer(chosen, names_of(names) or labelled.names, device=terminal.device)
    with terminal.progress("Fitting") as progress:
        recognizer.fit(labelled, progress=progress)
    recognizer.save(out)
    terminal.show(
        {"recognizer": out, "names": recognizer.names, "pictures": len(labelled)},
        f"Fitted {chosen.method.name} on {len(labelled)} pictures for {len(recognizer.names)} "
        f"labels and saved it in {out}.\nNext: surelabel calibrate {out} OTHER_LABELS --out {out}",
    )
