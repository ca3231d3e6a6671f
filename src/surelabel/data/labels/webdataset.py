"""Read tar shards of WebDataset, with the labels of each image in a JSON member: ``0001.json``."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from surelabel.data.container_images import list_images_of_container
from surelabel.data.labels.resolution.image_entries import (
    ImageEntry,
    image_entry,
    is_image_entry,
    resolve_image_entries,
)
from surelabel.errors import DataError
from surelabel.file_readers import parse_json
from surelabel.records import LabelledImages
from surelabel.storage.image_paths import is_tar_path
from surelabel.storage.stored_images import is_stored_image_missing, open_stored_image

MAX_JSON_BYTES = 2**20  # of a member with labels


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from tar shards of WebDataset.

    The labels of ``0001.jpg`` are in the member ``0001.json`` of the same archive:
    ``{"labels": ["dog"], "absent": ["cat"]}``. The key of a sample is the path of the member up to
    the first dot of its file name, so that ``0001.left.jpg`` has the same labels. If there is the
    key ``absent``, labels in neither list are unknown. Otherwise, labels that are not in ``labels``
    are negative. Other keys are ignored.

    Args:
        path: Path of a tar archive, or of a folder with tar archives.
        images_root: Must be None, because the images are in the archives.
        names: Labels to return, in the order of the columns. If None, the sorted labels of all
            images are returned.

    Raises:
        DataError: If there is no image, if an archive is damaged, if an image has no JSON member,
            or if a member contains no labels. Also if ``images_root`` is given, or if a label is
            not in ``names``.
    """
    if images_root is not None:
        raise DataError(
            f"The images of {path} are inside tar archives, so images_root cannot be given; got "
            f"{images_root}. Remove images_root."
        )
    source = Path(path)
    shards = [source] if source.is_file() else tar_shards_of_folder(source)
    entries = [entry for shard in shards for entry in _read_entries(str(shard))]
    if not entries:
        raise DataError(
            f"{path} must contain tar archives with images; got no image. Give another file or "
            "folder."
        )
    return resolve_image_entries(source, entries, images_root=os.curdir, names=names)


def tar_shards_of_folder(folder: Path) -> list[Path]:
    """Return the sorted paths of the tar archives in a folder, without archives in subfolders."""
    return sorted(file for file in folder.iterdir() if is_tar_path(file.name) and file.is_file())


def _read_entries(shard: str) -> Iterator[ImageEntry]:
    images, _ = list_images_of_container(shard)
    for image in images:
        folder, name = os.path.split(image)
        member = f"{folder}/{name.partition('.')[0]}.json"
        if is_stored_image_missing(member):
            raise DataError(
                f"{image}: the labels of this image must be in the member "
                f"{os.path.basename(member)}; the member is missing. Add this member, or give a "
                "CSV file with image paths in the column path."
            )
        yield _read_entry(image, member)


def _read_entry(image: str, member: str) -> ImageEntry:
    with open_stored_image(member) as stream:
        content = stream.read(MAX_JSON_BYTES + 1)
    try:
        value = parse_json(content)
    except ValueError as error:
        raise DataError(
            f"{member} must be a JSON object; got {error}. Correct this member."
        ) from error
    entry = {**value, "path": image} if isinstance(value, dict) else value
    if not is_image_entry(entry) or len(content) > MAX_JSON_BYTES:
        raise DataError(
            f'{member}: expected {{"labels": ["…"], "absent": ["…"]}}, where absent is optional; '
            f"got {content[:60]!r}. Correct this member."
        )
    return image_entry(member, entry, remedy="Correct this member.")
