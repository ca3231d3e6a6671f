"""``surelabel index``: create or update an index."""

import click

from surelabel.cli.input_options import (
    labels_input_option,
    model_input_option,
    parse_labels_input_option,
)
from surelabel.cli.tag import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, validate_terminal_output_path, with_terminal_options


@click.command()
@click.argument("folder", callback=validate_terminal_output_path)
@click.argument("images", nargs=-1, required=True)
@model_input_option
@labels_input_option
@with_terminal_options
def index(
    terminal: Terminal, folder: str, images: tuple[str, ...], model: str, names: str | None
) -> None:
    """Create or update an index of images for search.

    New images are added to the index in FOLDER, changed images are tagged again, and deleted
    images are removed. IMAGES are folders or image files. All images of an index are tagged with
    the same --model and --labels.
    """
    from surelabel.data import find_images
    from surelabel.recognizer import (
        index_images_with_recognizer,
        read_names_for_indexing,
        resolve_model,
    )

    paths, labels = find_images(images), parse_labels_input_option(names)
    recognizer = resolve_model(
        model, labels, default_names=read_names_for_indexing(folder), device=terminal.device
    )
    with terminal.progress("Indexing") as progress:
        update = index_images_with_recognizer(folder, recognizer, paths, progress=progress)
    counts = {"added": update.added, "changed": update.changed, "removed": update.removed}
    terminal.print_result(
        {"index": folder, "images": len(update.index), **counts, "skipped": len(update.skipped)},
        f"{folder} has {len(update.index)} images and {len(update.index.names)} labels: "
        f"{update.added} added, {update.changed} changed, {update.removed} removed, "
        f"{len(update.skipped)} skipped.",
    )
    print_tag_skipped_images(update.skipped)
