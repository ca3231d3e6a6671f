"""Define the option ``--heat-maps`` of ``tag``, which writes heat maps of the labels of images."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surelabel.cli.output_paths import validate_terminal_output_directory
from surelabel.cli.tag_options import DEFAULT_THRESHOLD
from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count
from surelabel.errors import DataError

if TYPE_CHECKING:
    from surelabel.arrays import Array
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelTree, Predictions
    from surelabel.report import HeatMapLabel

DEFAULT_LABELS, MAX_LABELS = 3, 6  # labels of an image: without --top-k, and at most
BATCH_SIZE = 32  # images between two updates of the progress
MAX_NAME_BYTES = 200  # bytes of a file name without suffix; most file systems allow 255


def heat_maps_option(function: Command) -> Command:
    """Add the option ``--heat-maps`` for the folder of heat maps."""
    return click.option(
        "--heat-maps",
        callback=validate_terminal_output_directory,
        metavar="FOLDER",
        help="For each image, write a PNG file with its labels and their heat maps. Labels "
        f"below the threshold (by default {DEFAULT_THRESHOLD}) are listed without a heat map. "
        f"--top-k sets the number of labels (by default {DEFAULT_LABELS}, at most {MAX_LABELS}).",
    )(function)


def collect_heat_map_labels(
    blocks: "Iterable[Predictions]",
    labels: "dict[str, list[HeatMapLabel]]",
    *,
    threshold: "float | Array | None",
    top_k: int | None,
    label_tree: "LabelTree | None" = None,
) -> "Iterator[Predictions]":
    """Add the labels in the heat-map file of each image to ``labels``, and yield the blocks.

    Args:
        blocks: Predictions of blocks of images.
        labels: Dictionary for the labels of each image, by path.
        threshold: Minimum probability of a label with a heat map; see `select_heat_map_labels`.
        top_k: Number of labels of each image, at most 6. If None, there are three labels.
        label_tree: Tree of the labels; the ancestors of a shown label are shown too. If None, the
            labels have no tree.
    """
    for block in blocks:
        labels.update(
            select_heat_map_labels(block, threshold=threshold, top_k=top_k, label_tree=label_tree)
        )
        yield block


def select_heat_map_labels(
    predictions: "Predictions",
    *,
    threshold: "float | Array | None",
    top_k: int | None,
    label_tree: "LabelTree | None" = None,
) -> "dict[str, list[HeatMapLabel]]":
    """Return the labels in the heat-map file of each image, by path, with the shown labels first.

    Args:
        predictions: Predictions of the images.
        threshold: Minimum probability of a shown label, as one number or as an array ``(c,)`` for c
            labels. If None, the threshold is 0.5 for calibrated scores, and there is no threshold
            otherwise.
        top_k: Number of labels of each image, at most 6. If None, there are three labels.
        label_tree: Tree of the labels; the ancestors of a shown label are shown too. If None, the
            labels have no tree.
    """
    import numpy as np

    from surelabel.recognizer import select_tags
    from surelabel.report import HeatMapLabel

    n_labels = min(top_k or DEFAULT_LABELS, MAX_LABELS)
    if threshold is None and predictions.calibration is not None:
        threshold = DEFAULT_THRESHOLD
    thresholds = dict.fromkeys(predictions.names)
    if threshold is not None:
        values = np.broadcast_to(np.asarray(threshold, dtype=float), len(predictions.names))
        thresholds = dict(zip(predictions.names, values.tolist(), strict=True))
    labels = {}
    for path, shown, highest in zip(
        predictions.paths,
        select_tags(predictions, threshold=threshold, top_k=n_labels, label_tree=label_tree),
        select_tags(predictions, top_k=n_labels),
        strict=True,
    ):
        names = {tag["label"] for tag in shown}
        others = [tag for tag in highest if tag["label"] not in names]
        labels[path] = [
            HeatMapLabel(
                tag["label"],
                tag["score"] if tag["probability"] is None else tag["probability"],
                thresholds[tag["label"]],
                is_shown=tag["label"] in names,
            )
            for tag in [*shown, *others][:n_labels]
        ]
    return labels


def write_heat_maps(
    terminal: Terminal,
    recognizer: "Recognizer",
    labels: "Mapping[str, Sequence[HeatMapLabel]]",
    folder: str,
) -> None:
    """Write a PNG file with heat maps for each image, and replace existing files.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer that computed the predictions.
        labels: Labels in the heat-map file of each image, by path.
        folder: Folder for the files.

    Raises:
        ConfigError: If the recognizer cannot localize labels.
        DataError: If an image cannot be read a second time, or the folder cannot be written.
    """
    from surelabel.files import atomic_file
    from surelabel.recognizer import localize_labels
    from surelabel.report import render_heat_map_sheet

    file_names = dict(zip(labels, heat_map_file_names(list(labels)), strict=True))
    with terminal.progress("Rendering") as progress:
        for start in range(0, len(file_names), BATCH_SIZE):
            batch = list(file_names)[start : start + BATCH_SIZE]
            names_by_path = {
                path: [label.name for label in labels[path] if label.is_shown] for path in batch
            }
            region_maps = localize_labels(recognizer, names_by_path)
            _check_heat_map_images_were_read(batch, region_maps)
            for path in batch:
                with atomic_file(Path(folder) / file_names[path]) as file:
                    file.write_bytes(render_heat_map_sheet(path, region_maps[path], labels[path]))
            if progress:
                progress(start + len(batch), len(file_names))
    terminal.print_status(
        f"Written: heat maps of {format_count(len(file_names), 'image')}, in {folder}"
    )


def heat_map_file_names(paths: Sequence[str]) -> list[str]:
    """Return a unique file name for each image.

    A number is appended to a file name that is already used. Upper and lower case are not
    distinguished, as on some file systems. Long file names are truncated.

    Example:
        >>> heat_map_file_names(["a/cat.jpg", "b/cat.png", "b/dog.png"])
        ['cat.heat-maps.png', 'cat-2.heat-maps.png', 'dog.heat-maps.png']
    """
    counts: Counter[str] = Counter()
    file_names: list[str] = []
    for path in paths:
        name = stem = _truncate_heat_map_file_stem(Path(path).stem)
        while counts[name.casefold()]:
            counts[stem.casefold()] += 1
            name = f"{stem}-{counts[stem.casefold()]}"
        counts[name.casefold()] += 1
        file_names.append(f"{name}.heat-maps.png")
    return file_names


def _check_heat_map_images_were_read(
    paths: Sequence[str], region_maps: Mapping[str, object]
) -> None:
    missing = [path for path in paths if path not in region_maps]
    if missing:
        raise DataError(
            f"{missing[0]} was tagged, but the file cannot be read again for its heat maps. Check "
            "the file, and run the command again."
        )


def _truncate_heat_map_file_stem(stem: str) -> str:
    """Truncate a file name without suffix to ``MAX_NAME_BYTES`` bytes."""
    while len(os.fsencode(stem)) > MAX_NAME_BYTES:
        stem = stem[:-1]
    return stem
