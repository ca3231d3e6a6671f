"""Print and write the results of ``tag``: labels of images, a summary, and skipped images."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.tag_blocks import TagCounts
from surelabel.cli.tag_options import TagOptions, TagSelection
from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_text import escape_terminal_line
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.data import PartialPredictions
    from surelabel.records import Predictions, SkippedImage


def print_tags(
    terminal: Terminal, blocks: "Iterable[Predictions]", selection: TagSelection
) -> None:
    """Print the labels of each image, as soon as a block of images is predicted.

    Args:
        terminal: Object that prints results, status lines and progress.
        blocks: Predictions of blocks of images.
        selection: Selection of the labels that are shown.
    """
    terminal.print_result_batches(tag_results(block, selection) for block in blocks)


def tag_results(block: "Predictions", selection: TagSelection) -> list[tuple[dict[str, Any], str]]:
    """Return the result of each image for JSON, and as a line of text.

    Args:
        block: Predictions of a block of images.
        selection: Selection of the labels that are shown.
    """
    from surelabel.recognizer import select_tags

    tags = select_tags(block, **vars(selection))
    return [
        (
            {"path": path, "tags": image_tags},
            f"{escape_terminal_line(path)}: {format_tags(image_tags)}",
        )
        for path, image_tags in zip(block.paths, tags, strict=True)
    ]


def format_tags(tags: list[dict[str, Any]]) -> str:
    """Format tags as ``lion 0.97, bear 0.62``, or as a dash if there are no tags.

    If the tags have an uncertainty, it follows in brackets: ``lion 0.97 (0.12), bear 0.62 (0.94)``.
    """
    texts = []
    for item in tags:
        score = item["score"] if item["probability"] is None else item["probability"]
        uncertainty = f" ({item['uncertainty']:.2g})" if "uncertainty" in item else ""
        texts.append(f"{escape_terminal_line(item['label'])} {score:.2f}{uncertainty}")
    return ", ".join(texts) or "-"


def write_tags(
    terminal: Terminal,
    partial: "PartialPredictions",
    paths: Sequence[str],
    options: TagOptions,
    selection: TagSelection,
) -> None:
    """Write all labels of all images to a file, with the shown labels if an option selects labels.

    A file of an annotation tool always contains only the shown labels. The names of images in a
    file of CVAT are relative to the folder that contains all images.

    Args:
        terminal: Object that prints results, status lines and progress.
        partial: All blocks of the run.
        paths: Paths of all images.
        options: Options of ``tag``, with the path ``out`` of the file.
        selection: Selection of the labels that are shown.

    Raises:
        DataError: If the file cannot be written.
    """
    from surelabel.data import PRE_ANNOTATION_WRITERS, write_prediction_blocks

    assert options.out is not None
    blocks = partial.finished_blocks()
    if options.selects_labels or options.format:
        blocks = (with_shown_labels(block, selection) for block in blocks)
    if options.format == "cvat":
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
        PRE_ANNOTATION_WRITERS["cvat"](blocks, options.out, images_root=folder)
    elif options.format:
        PRE_ANNOTATION_WRITERS[options.format](blocks, options.out)
    else:
        write_prediction_blocks(
            blocks, options.out, skipped=partial.skipped, spreadsheet_safe=options.spreadsheet_safe
        )
    terminal.print_status(f"Written: {options.out}")


def with_shown_labels(block: "Predictions", selection: TagSelection) -> "Predictions":
    """Return the predictions of a block with the shown labels, and with their thresholds."""
    import numpy as np

    from surelabel.recognizer import shown_label_mask

    mask = shown_label_mask(block, **vars(selection))
    thresholds = None
    if selection.threshold is not None:
        values = np.asarray(selection.threshold, dtype=float)
        thresholds = np.broadcast_to(values, len(block.names))
    return replace(block, shown=mask, thresholds=thresholds)


def print_tag_summary(terminal: Terminal, counts: TagCounts, seconds: float) -> None:
    """Print the number of images per second, and the images that were skipped.

    Args:
        terminal: Object that prints results, status lines and progress.
        counts: Total counts of the run.
        seconds: Duration of tagging in seconds.
    """
    n_new = counts.n_images - counts.n_resumed
    resumed = format_count(counts.n_resumed, f"{counts.noun} was", f"{counts.noun}s were")
    before = f" {resumed} predicted before an interruption." if counts.n_resumed else ""
    terminal.print_status(
        f"Predicted {format_count(counts.n_images, counts.noun)} in {seconds:.1f} s "
        f"({n_new / seconds:.0f} per second; {counts.n_cached:,} cached). Decoding took "
        f"{counts.decode_seconds:.1f} s and the encoder {counts.model_seconds:.1f} s.{before}"
    )
    print_tag_skipped_images(counts.skipped)


def print_no_shown_tag(terminal: Terminal, counts: TagCounts, selection: TagSelection) -> None:
    """Print a status line if no label of any image reaches the threshold.

    Args:
        terminal: Object that prints results, status lines and progress.
        counts: Total counts of the run.
        selection: Selection of the labels that are shown.
    """
    if counts.has_shown_label or selection.threshold is None:
        return
    is_common = isinstance(selection.threshold, float)
    threshold = (
        f"the threshold {selection.threshold:g}" if is_common else "the thresholds of the labels"
    )
    remedy = "Give a lower --threshold, or give --top-k K" if is_common else "Give --top-k K"
    terminal.print_status(
        f"No label is shown, because all probabilities are below {threshold}. {remedy} without a "
        "threshold to show the K most probable labels of each image."
    )


def print_tag_skipped_images(skipped: Sequence["SkippedImage"]) -> None:
    """Print a list of unreadable images on stderr, also if ``--quiet`` is given."""
    if skipped:
        images = format_count(len(skipped), "image")
        click.echo(f"Skipped {images} that cannot be read:", err=True)
    for image in skipped:
        path, reason = escape_terminal_line(image.path), escape_terminal_line(image.reason)
        click.echo(f"  {path}: {reason}", err=True)
