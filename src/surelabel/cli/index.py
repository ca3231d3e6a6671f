"""Define ``surelabel index``, which creates or updates an index."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.cluster_options import (
    cluster_options,
    parse_cluster_options,
    predict_index_on_cluster,
)
from surelabel.cli.engine_options import apply_engine_options, engine_options
from surelabel.cli.given_options import check_options_are_not_given, is_option_given
from surelabel.cli.index_maintenance import (
    TAGGING_OPTIONS,
    index_maintenance_options,
    maintain_index,
)
from surelabel.cli.input_options import (
    labels_input_option,
    max_image_memory_input_option,
    model_input_option,
    parse_labels_input_option,
)
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.score_inputs import (
    read_unlabelled_scores,
    score_table_options,
    with_image_paths,
)
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Command, Terminal, with_terminal_options
from surelabel.cli.unlabelled_calibration import (
    NOT_VERIFIED,
    calibrate_new_index_without_labels,
    calibrate_unlabelled_option,
)
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.recognizer import IndexUpdate


def index_root_option(function: Command) -> Command:
    """Add the option ``--root`` for the folder of the images of an index."""
    return click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Root folder of the images, if the images were moved. [root stored in the index]",
    )(function)


@click.command()
@click.argument("folder", callback=validate_terminal_output_path)
@click.argument("images", nargs=-1)
@index_maintenance_options
@model_input_option
@labels_input_option
@engine_options
@calibrate_unlabelled_option
@index_root_option
@cluster_options
@score_table_options
@max_image_memory_input_option
@with_terminal_options
def index(
    terminal: Terminal,
    folder: str,
    images: tuple[str, ...],
    model: str,
    names: str | None,
    engine: str | None,
    dtype: str | None,
    calibrate_unlabelled: bool,
    root: str | None,
    image_column: str | None,
    ignore: tuple[str, ...],
    compact: bool,
    rescore: bool,
    ann: bool,
    drop_below: float | None,
    **cluster_values: Any,
) -> None:
    """Create or update an index of images for search.

    New images are added to the index in FOLDER, changed images are tagged again, and deleted
    images are removed. IMAGES are folders or image files. All images of an index are tagged with
    the same --model and --labels. The index keeps the calibration of --calibrate-unlabelled for
    images that are added later.

    For a recognizer that was calibrated or fitted on scores of another program, IMAGES is
    scores:FILE. The image names in FILE are relative to --root or to the folder of FILE, and the
    image files need not exist. No image is removed from an index of scores.

    IMAGES can also be one folder of predictions of `tag --shard` or `tag --cluster`. Then no image
    is tagged again, and the index has the recognizer and the labels of the predictions. Search by
    sentence needs image vectors, which the index has only if the folder contains them.

    With --cluster, the images are predicted on a Ray cluster. All machines of the cluster must have
    access to the folder FOLDER.cluster, which contains the predictions until the index is written.

    Paths of images inside the root are stored relative to the root. The root of a new index is the
    common folder of IMAGES, unless --root is given. If all images were moved, --root stores their
    new root, and no image is tagged again.

    --rescore, --compact and --ann change an existing index and need no IMAGES.
    """
    if drop_below is not None and not compact:
        raise click.UsageError("--drop-below requires --compact. Add --compact.")
    if compact or rescore or ann:
        if images:
            raise click.UsageError(
                "--compact, --rescore and --ann change an existing index; got IMAGES too. Remove "
                "IMAGES."
            )
        maintain_index(
            terminal,
            folder,
            root=root,
            is_compaction=compact,
            is_rescoring=rescore,
            is_ann=ann,
            drop_below=drop_below,
            model=model if is_option_given("model") else None,
            labels=names,
        )
        return
    if not images:
        raise click.UsageError("Missing argument 'IMAGES...'.")

    from surelabel.data import find_images, is_prediction_folder

    if len(images) == 1 and is_prediction_folder(images[0]):
        check_index_options_of_predictions(images[0])
        write_index_of_predictions(terminal, folder, images[0], root)
        return
    labels = parse_labels_input_option(names)
    cluster = parse_cluster_options(cluster_values)
    scores = read_unlabelled_scores(images, model, image_column, ignore)
    if scores is not None and cluster is not None:
        raise click.UsageError("--cluster requires image files; got scores. Remove --cluster.")
    if scores is not None and calibrate_unlabelled:
        raise click.UsageError(
            "--calibrate-unlabelled requires images; got scores. Remove --calibrate-unlabelled."
        )
    paths = find_images(images) if scores is None else []
    terminal.print_import_status()

    from surelabel.recognizer import (
        index_images_with_recognizer,
        read_names_for_indexing,
        resolve_model,
        restore_calibration_for_indexing,
    )

    recognizer = resolve_model(
        model, labels, default_names=read_names_for_indexing(folder), device=terminal.device
    )
    has_calibration = restore_calibration_for_indexing(folder, recognizer)
    recognizer = apply_engine_options(recognizer, engine, dtype)
    if calibrate_unlabelled and not has_calibration:
        calibrate_new_index_without_labels(terminal, recognizer, folder, paths)
    source = paths if scores is None else with_image_paths(scores, images[0], root)
    with ExitStack() as stack:
        progress = stack.enter_context(terminal.progress("Indexing"))
        predict = None
        if cluster is not None:
            predict = predict_index_on_cluster(
                stack, terminal, recognizer, paths, folder, cluster, progress
            )
        update = index_images_with_recognizer(
            folder,
            recognizer,
            source,
            root=root,
            model=model,
            progress=progress,
            predict=predict,
        )
    print_index_update(terminal, folder, update)
    print_tag_skipped_images(update.skipped)


def check_index_options_of_predictions(predictions: str) -> None:
    """Check that no option of tagging is given for a folder of predictions.

    Args:
        predictions: Folder of the predictions, for the error message.

    Raises:
        UsageError: If an option of tagging is given.
    """
    check_options_are_not_given(
        {"model", "names", *TAGGING_OPTIONS},
        f"can be given only for images; got the predictions {predictions}.",
    )


def write_index_of_predictions(
    terminal: Terminal, folder: str, predictions: str, root: str | None
) -> None:
    """Create or update an index from a folder of predictions, and print the numbers of images.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        predictions: Folder of the predictions.
        root: Root folder of the images, or None.

    Raises:
        DataError: If the predictions are incomplete or damaged, or the index cannot be written.
        NotFitted: If the predictions are not calibrated.
        InputError: If the index contains predictions of another recognizer.
    """
    terminal.print_import_status()

    from surelabel.recognizer import index_prediction_folder

    with terminal.progress("Indexing") as progress:
        update = index_prediction_folder(folder, predictions, root=root, progress=progress)
    print_index_update(terminal, folder, update)
    print_tag_skipped_images(update.skipped)


def print_index_update(terminal: Terminal, folder: str, update: "IndexUpdate") -> None:
    """Print the numbers of images of an index, and a note if its calibration is not verified.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        update: Index and numbers of changed images.
    """
    from surelabel.records import calibration_provenance

    calibration = update.index.calibration
    provenance = calibration_provenance(calibration)
    counts = {"added": update.added, "changed": update.changed, "removed": update.removed}
    text = (
        f"{folder} contains {format_count(len(update.index), 'image')} and "
        f"{format_count(len(update.index.names), 'label')}. Images: {update.added} added, "
        f"{update.changed} changed, {update.removed} removed, {len(update.skipped)} skipped."
    )
    if provenance == "no labels":
        text += f"\nCalibration of the index: {calibration}. {NOT_VERIFIED}"
    terminal.print_result(
        {
            "index": folder,
            "images": len(update.index),
            **counts,
            "skipped": len(update.skipped),
            "calibration": calibration,
            "is_verified": provenance == "labels",
        },
        text,
    )
