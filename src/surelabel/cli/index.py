"""``surelabel index``."""

import click

from surelabel.cli.sources import labels_option, model_option, names_of
from surelabel.cli.tag import tell_skipped
from surelabel.cli.terminal import Terminal, output, with_terminal


@click.command()
@click.argument("folder", callback=output)
@click.argument("pictures", nargs=-1, required=True)
@model_option
@labels_option
@with_terminal
def index(
    terminal: Terminal, folder: str, pictures: tuple[str, ...], model: str, names: str | None
) -> None:
    """Make an index of pictures to search, or bring it up to date.

    New pictures are added to FOLDER, changed ones tagged again, those that are gone taken out.
    PICTURES are as for tag; --model and --labels stay the same for one index.
    """
    from surelabel.data import find_pictures
    from surelabel.recognizer import index_pictures, indexed_names, open_recognizer

    paths, wanted = find_pictures(pictures), names_of(names)
    recognizer = open_recognizer(
        model, wanted, otherwise=indexed_names(folder), device=terminal.device
    )
    with terminal.progress("Indexing") as progress:
        made = index_pictures(folder, recognizer, paths, progress=progress)
    counts = {"added": made.added, "changed": made.changed, "removed": made.removed}
    terminal.show(
        {"index": folder, "pictures": len(made.index), **counts, "skipped": len(made.skipped)},
        f"{folder} has {len(made.index)} pictures and {len(made.index.names)} labels: "
        f"{made.added} added, {made.changed} changed, {made.removed} removed, "
        f"{len(made.skipped)} skipped.",
    )
    tell_skipped(made.skipped)
