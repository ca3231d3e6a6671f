"""Read COCO captions: a JSON file with ``images`` and ``annotations``, each with a ``caption``."""

from pathlib import Path
from typing import Any

from surelabel.data.captions.resolution.caption_entries import CaptionEntry, resolve_captions
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.data.coco_json import coco_values_by_id, read_coco_json
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import Captions, Pairs


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions in the order of ``annotations``; an image can have several captions.

    Images without a caption are ignored.

    Args:
        path: Path of the JSON file.
        images_root: Folder to which the paths in ``file_name`` are relative. If None, the folder of
            the JSON file is used.

    Raises:
        DataError: If the file is not a COCO file with captions, if an image id is repeated, or if
            an annotation refers to an unknown image or has no text.
    """
    path = Path(path)
    return resolve_captions(path, _coco_caption_entries(path)[0], images_root=images_root)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions and the ids of both, in the order of ``annotations``.

    Args:
        path: Path of the JSON file.
        images_root: Folder to which the paths in ``file_name`` are relative. If None, the folder of
            the JSON file is used.

    Raises:
        DataError: For the reasons of :func:`read`, if an image does not exist, or if some ids are
            missing or repeated.
    """
    path = Path(path)
    entries, images = _coco_caption_entries(path)
    return resolve_pairs(path, entries, images_root=images_root, listed_images=images)


def _coco_caption_entries(path: Path) -> tuple[list[CaptionEntry], list[str]]:
    """Return the captions of a file, and the paths of all images in the file."""
    content = read_coco_json(path)
    try:
        images = coco_values_by_id(path, "images", content["images"], "file_name")
        entries = [
            CaptionEntry(
                f"annotation {number}",
                _coco_caption_image(path, images, a["image_id"]),
                a["caption"],
                a["image_id"],
                a.get("id"),
            )
            for number, a in enumerate(content["annotations"], start=1)
        ]
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path} must be a COCO file with images (id, file_name) and annotations (image_id, "
            f"caption); got a missing or invalid entry: {error}. Correct the file; if the "
            "annotations are categories, read them with read_labels."
        ) from error
    return entries, list(images.values())


def _coco_caption_image(path: Path, images: dict[Any, str], image_id: object) -> str:
    if image_id not in images:
        raise DataError(
            f"Each annotation in {path} must refer to an image of the file; got image_id "
            f"{quote_of_file(image_id)}. Remove this annotation, or add the image."
        )
    return images[image_id]
