"""Find images of an index by path or by position, and read their stored log-odds."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.errors import DataError
from surelabel.retrieval import Index
from surelabel.retrieval.shards import Shard
from surelabel.web.image_identifiers import ImageIdentifier, image_path_checksum
from surelabel.web.index_session import IndexedImage

MAX_LISTED_LABELS = 30  # labels of an image in a list of images


def find_images_by_path(index: Index, paths: Iterable[str]) -> dict[str, IndexedImage]:
    """Return the images of an index that have the given absolute paths, by path.

    The images have the order of ``paths``. A path that is not in the index is left out.

    Raises:
        DataError: If the table of the paths is damaged.
    """
    searcher, wanted = index.searcher, dict.fromkeys(paths)
    if not wanted:
        return {}
    stored = [form for path in wanted for form in searcher.root.stored_forms(path)]
    images = dict[str, IndexedImage]()
    for shard in searcher.shards:
        rows = shard.find_rows(stored)
        for row, stored_path in zip(rows.tolist(), shard.paths.of_rows(rows), strict=True):
            path = searcher.root.resolve(stored_path)
            images[path] = IndexedImage(path, shard, row)
    return {path: images[path] for path in wanted if path in images}


def images_at_positions(
    index: Index, positions: Sequence[int] | npt.NDArray[np.integer]
) -> list[IndexedImage]:
    """Return the images at positions of ``index.paths``, in the order of the positions."""
    numbers = np.asarray(positions, np.int64)
    images: list[IndexedImage | None] = [None] * len(numbers)
    searcher, start = index.searcher, 0
    for shard in searcher.shards:
        places = np.flatnonzero((numbers >= start) & (numbers < start + len(shard)))
        rows = rows_of_positions(shard, numbers[places] - start)
        stored_paths = shard.paths.of_rows(rows)
        for place, row, path in zip(places.tolist(), rows.tolist(), stored_paths, strict=True):
            images[place] = IndexedImage(searcher.root.resolve(path), shard, row)
        start += len(shard)
    return [image for image in images if image is not None]


def positions_of_images(index: Index, images: Sequence[IndexedImage]) -> npt.NDArray[np.int64]:
    """Return the position of each image in ``index.paths``, ``(k,)``."""
    starts, start = dict[int, int](), 0
    for shard in index.searcher.shards:
        starts[shard.number] = start
        start += len(shard)
    counts = {
        image.shard.number: None
        if image.shard.is_active is None
        else np.cumsum(image.shard.is_active) - 1
        for image in images
    }
    positions = np.empty(len(images), np.int64)
    for place, image in enumerate(images):
        ranks = counts[image.shard.number]
        rank = image.row if ranks is None else int(ranks[image.row])
        positions[place] = starts[image.shard.number] + rank
    return positions


def rows_of_positions(shard: Shard, positions: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the row numbers of images, whose positions do not count the removed rows."""
    rows = np.asarray(positions, np.int64)
    return rows if shard.is_active is None else np.flatnonzero(shard.is_active)[rows]


def identifier_of_image(image: IndexedImage) -> str:
    """Return the identifier of an image in URLs."""
    checksum = image_path_checksum(image.path)
    return str(ImageIdentifier(image.shard.number, image.row, checksum))


def stored_logits(index: Index, images: Sequence[IndexedImage]) -> Array:
    """Return the stored log-odds of k images and c labels, ``(k, c)``.

    The checksums of the labels are not verified, because that would read all rows.

    Raises:
        DataError: If a file was truncated, or a value is not finite.
    """
    logits = np.empty((len(images), len(index.names)))
    places_of_shard = dict[int, list[int]]()
    for place, image in enumerate(images):
        places_of_shard.setdefault(image.shard.number, []).append(place)
    for places in places_of_shard.values():
        shard = images[places[0]].shard
        shard.mapped_files.check_not_truncated()
        rows = np.array([images[place].row for place in places])
        order = np.argsort(rows, kind="stable")
        ordered_places = np.array(places)[order]
        for column in range(logits.shape[1]):
            logits[ordered_places, column] = shard.label_table.logits(column, rows[order])
    if not np.isfinite(logits).all():
        raise DataError(
            "The stored log-odds must be finite; the index is damaged. Build the index again "
            "(`surelabel index`)."
        )
    return logits


def describe_images(index: Index, images: Sequence[IndexedImage]) -> list[dict[str, Any]]:
    """Return the identifier, the path, and at most 30 labels of the highest probability.

    The result has one JSON object for each image.

    Args:
        index: Index of the images.
        images: Images of the index.

    Raises:
        DataError: If a file was truncated, or a value is not finite.
    """
    probabilities = expit(stored_logits(index, images))
    descriptions = []
    for image, values in zip(images, probabilities, strict=True):
        order = np.argsort(-values, kind="stable")[:MAX_LISTED_LABELS].tolist()
        labels = [{"label": index.names[i], "probability": float(values[i])} for i in order]
        descriptions.append(
            {"id": identifier_of_image(image), "path": image.path, "labels": labels}
        )
    return descriptions
