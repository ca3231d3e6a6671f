"""``surelabel index``: create or update an index."""

import click

from surelabel.cli.input_options import labels_option, model_option, parse_labels
from surelabel.cli.tag import print_skipped_images
from surelabel.cli.terminal import Terminal, validate_output_path, with_terminal_options


@click.command()
@click.argument("folder", callback=validate_output_path)
@click.argument("images", nargs=-1, required=True)
@model_option
@labels_option
@with_terminal_options
def index(
    terminal: Terminal, folder: str, images: tuple[str, ...], model: str, names: str | None
) -> None:
    """Create or update an index of images for search.

    New images are added to the index in FOLDER, changed images are tagged again, and deleted
    images are removed. IMAGES are given as for tag. One index has one --model and one list of
    --labels.
    """
    from surelabel.data import find_images
    from surelabel.recognizer import index_images, read_index_names, resolve_model

    paths, labels = find_images(images), parse_labels(names)
    recognizer = resolve_model(
        model, labels, default_names=read_index_names(folder), device=terminal.device
    )
    with terminal.progress("Indexing") as progress:
        update = index_images(folder, recognizer, paths, progress=progress)
    counts = {"added": update.added, "changed": update.changed, "removed": update.removed}
    terminal.print_result(
        {"index": folder, "images": len(update.index), **counts, "skipped": len(update.skipped)},
        f"{folder} has {len(update.index)} images and {len(update.index.names)} labels: "
        f"{update.added} added, {update.changed} changed, {update.removed} removed, "
        f"{len(update.skipped)} skipped.",
    )
    print_skipped_images(update.skipped)
