"""Write predictions of ``tag --shard`` to a folder, and print the progress of all shards."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from surelabel.cli.tag_blocks import TagCounts
from surelabel.cli.tag_options import TagOptions, TagSelection
from surelabel.cli.tag_output import print_tag_summary, with_shown_labels
from surelabel.cli.terminal import Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.data import ImageCounts, PredictionFolderStatus
    from surelabel.recognizer import Recognizer


def write_tag_shard(
    terminal: Terminal,
    recognizer: "Recognizer",
    images: Sequence[str],
    options: TagOptions,
    selection: TagSelection,
) -> None:
    """Predict the images of a shard, and write the predictions to the folder ``options.out``.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        images: Paths of the images of all shards.
        options: Options of ``tag``, with the shard and the folder.
        selection: Selection of the labels that are shown, which is written if an option selects
            labels.

    Raises:
        DataError: If the folder belongs to another run or cannot be written, or if
            ``options.strict`` is True and an image cannot be read.
    """
    from surelabel.data import prediction_folder_status
    from surelabel.recognizer import predict_image_shard

    assert options.out is not None
    assert options.shard is not None
    start, counts = time.perf_counter(), TagCounts()
    with terminal.progress(f"Tagging shard {options.shard}") as progress:
        for block in predict_image_shard(
            options.out,
            recognizer,
            images,
            options.shard,
            options=_options_of_shard(options, selection),
            select=partial(with_shown_labels, selection=selection)
            if options.selects_labels
            else None,
            progress=progress,
            uncertainty=options.uncertainty,
            workers=options.workers,
            strict=options.strict,
        ):
            counts.add(block)
    status = prediction_folder_status(options.out)
    shard = status.shards[options.shard.number - 1]
    counts.n_resumed = shard.images - counts.n_images
    counts.n_images = shard.images
    print_tag_summary(terminal, counts, time.perf_counter() - start)
    print_prediction_folder_status(terminal, options.out, status)


def _options_of_shard(options: TagOptions, selection: TagSelection) -> dict[str, Any]:
    """Return the options that determine the predictions, as values of JSON."""
    import numpy as np

    from surelabel.data import max_image_memory

    values: dict[str, Any] = {"max_image_memory": max_image_memory()}
    if options.uncertainty is not None:
        values["uncertainty"] = options.uncertainty
    if options.selects_labels:
        threshold = selection.threshold
        values["threshold"] = None if threshold is None else np.asarray(threshold).tolist()
        values["top_k"] = selection.top_k
    return values


def print_prediction_folder_status(
    terminal: Terminal, folder: str, status: "PredictionFolderStatus"
) -> None:
    """Print the numbers of predicted, failed and missing images of a folder, by shard.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the predictions.
        status: Progress of the run of the folder.
    """
    run, n_shards = status.run, len(status.shards)
    labels = format_count(len(run.labels), "label")
    lines = [
        f"{folder} contains {_format_image_counts(status.total)}. Recognizer: {run.recognizer} "
        f"with {labels}; calibration: {run.calibration}.",
        *(
            f"  shard {number}/{n_shards}: {_format_image_counts(counts)}"
            for number, counts in enumerate(status.shards, start=1)
        ),
    ]
    if status.total.failed:
        lines.append(
            f"To tag the failed images again, delete {folder}/failed*.parquet, and run the same "
            "command again."
        )
    value = {
        "folder": folder,
        **asdict(status.total),
        "shards": [
            {"shard": f"{number}/{n_shards}"} | asdict(counts)
            for number, counts in enumerate(status.shards, start=1)
        ],
        "names": list(run.labels),
        "model": run.recognizer,
        "calibration": run.calibration,
    }
    terminal.print_result(value, "\n".join(lines))


def _format_image_counts(counts: "ImageCounts") -> str:
    return (
        f"predictions of {counts.predicted:,} of {format_count(counts.images, 'image')}, "
        f"{counts.failed:,} failed, {counts.missing:,} missing"
    )
