"""Option ``--heat-maps`` of ``tag``: write heat maps of the labels of each image."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.terminal import Command, Terminal
from surelabel.errors import DataError

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer
    from surelabel.records import Predictions

DEFAULT_LABELS, MAX_LABELS = 3, 6  # labels of an image: without --top-k, and at most
BATCH_SIZE = 32  # images between two updates of the progress
MAX_NAME_BYTES = 200  # bytes of a file name without suffix; most file systems allow 255


def _validate_heat_map_folder(
    context: click.Context, option: click.Parameter, path: str | None
) -> str | None:
    if path is not None and Path(path).is_file():
        raise DataError(f"--heat-maps requires a folder; got the file {path}. Give another path.")
    return validate_terminal_output_path(context, option, path)


def heat_maps_option(function: Command) -> Command:
    """Add the option ``--heat-maps`` for the folder of heat maps."""
    return click.option(
        "--heat-maps",
        callback=_validate_heat_map_folder,
        metavar="FOLDER",
        help="For each image, write a PNG file with heat maps of the labels with the highest "
        f"scores. --top-k sets the number of labels, at most {MAX_LABELS}; the default is "
        f"{DEFAULT_LABELS}.",
    )(function)


def collect_heat_map_labels(
    blocks: "Iterable[Predictions]", labels: dict[str, list[str]], top_k: int | None
) -> "Iterator[Predictions]":
    """Add the labels of each image whose heat maps are written to ``labels``, and yield the blocks.

    Args:
        blocks: Predictions of blocks of images.
        labels: Dictionary for the labels of each image, by path.
        top_k: Number of heat maps for each image, at most 6. If None, there are three heat maps.
    """
    for block in blocks:
        labels.update(select_heat_map_labels(block, top_k))
        yield block


def select_heat_map_labels(predictions: "Predictions", top_k: int | None) -> dict[str, list[str]]:
    """Return the labels of each image whose heat maps are written, by path.

    Args:
        predictions: Predictions of the images.
        top_k: Number of heat maps for each image, at most 6. If None, there are three heat maps.
    """
    from surelabel.recognizer import select_tags

    tags = select_tags(predictions, top_k=min(top_k or DEFAULT_LABELS, MAX_LABELS))
    return {
        path: [tag["label"] for tag in image_tags]
        for path, image_tags in zip(predictions.paths, tags, strict=True)
    }


def write_heat_maps(
    terminal: Terminal,
    recognizer: "Recognizer",
    labels: Mapping[str, Sequence[str]],
    folder: str,
) -> None:
    """Write a PNG file with heat maps for each image, and replace existing files.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer that computed the predictions.
        labels: Labels of each image whose heat maps are written, by path.
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
            region_maps = localize_labels(recognizer, {path: labels[path] for path in batch})
            _check_heat_map_images_were_read(batch, region_maps)
            for path in batch:
                with atomic_file(Path(folder) / file_names[path]) as file:
                    file.write_bytes(render_heat_map_sheet(path, region_maps[path]))
            if progress:
                progress(start + len(batch), len(file_names))
    terminal.print_status(f"Written: heat maps of {len(file_names)} images, in {folder}")


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
            f"{missing[0]} was tagged, but cannot be read a second time for its heat maps. Run the "
            "command again."
        )


def _truncate_heat_map_file_stem(stem: str) -> str:
    """Truncate a file name without suffix to ``MAX_NAME_BYTES`` bytes."""
    while len(os.fsencode(stem)) > MAX_NAME_BYTES:
        stem = stem[:-1]
    return stem
