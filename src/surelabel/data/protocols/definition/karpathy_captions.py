"""Read the captions of the splits of Karpathy and Li: one JSON file with all images."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surelabel.data.captions.resolution.caption_entries import clean_caption_text
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_json

KARPATHY_SPLITS = {  # parts of the file that each split of the evaluation protocol consists of
    "train": ("train", "restval"),
    "val": ("val",),
    "test": ("test",),
}
CAPTIONS_PER_IMAGE = 5
CAPTION_RULE = f"all images, with the first {CAPTIONS_PER_IMAGE} captions of each"
ARCHIVE = "caption_datasets.zip of Karpathy and Li, Deep Visual-Semantic Alignments, CVPR 2015"

_RESTORE = "Restore the official file."


class _KarpathyImage(NamedTuple):
    path: str
    image_id: int
    captions: list[str]
    caption_ids: list[int]


def read_karpathy_split(
    file: Path, split: str, *, folders: Mapping[str, str], id_key: str
) -> ProtocolRows:
    """Return the captions of a split; at most the first five captions of an image are used.

    Args:
        file: JSON file such as ``dataset_coco.json``. Each image has ``filename``, ``split`` and
            ``sentences`` with ``raw`` and ``sentid``. COCO also has ``filepath``.
        split: Split of the evaluation protocol: ``train``, ``val`` or ``test``.
        folders: Folder of the images by the value of ``filepath``, which is ``""`` if the images
            have no ``filepath``.
        id_key: Key of the id of an image, such as ``cocoid``.

    Raises:
        DataError: If the file is invalid, if a split has no image, or if an id is repeated. The
            message contains the position of the image in the file.
    """
    content = read_json(file, kind="a file of captions in JSON", remedy=_RESTORE)
    entries = content.get("images") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise DataError(
            f"{file} must be one JSON object with a list of images; got {quote_of_file(content)}. "
            f"{_RESTORE}"
        )
    images = []
    for number, entry in enumerate(entries):
        place = f"images[{number}]"
        if not isinstance(entry, dict):
            raise DataError(
                f"{file}: {place} must be an object; got {quote_of_file(entry)}. {_RESTORE}"
            )
        if _part_of(file, place, entry) in KARPATHY_SPLITS[split]:
            images.append(_karpathy_image(file, place, entry, folders, id_key))
    if not images:
        raise DataError(
            f"{file} must have images of the split {split!r}; got none among {len(entries)} "
            f"images. {_RESTORE}"
        )
    image_ids = [image.image_id for image in images]
    caption_ids = [id_ for image in images for id_ in image.caption_ids]
    _check_unique_ids(file, id_key, image_ids)
    _check_unique_ids(file, "sentid", caption_ids)
    return ProtocolRows(
        [image.path for image in images],
        (),
        np.zeros((len(images), 0)),
        [text for image in images for text in image.captions],
        [row for row, image in enumerate(images) for _ in image.captions],
        image_ids=image_ids,
        caption_ids=caption_ids,
    )


def _part_of(file: Path, place: str, entry: Mapping[str, object]) -> object:
    """Return the part of the file that an image belongs to, such as ``restval``.

    Raises:
        DataError: If the image has no part or an unknown part.
    """
    known = [part for parts in KARPATHY_SPLITS.values() for part in parts]
    if (part := entry.get("split")) not in known:
        raise DataError(
            f"{file}: split of {place} must be one of {', '.join(known)}; got "
            f"{quote_of_file(part)}. {_RESTORE}"
        )
    return part


def _karpathy_image(
    file: Path, place: str, entry: Mapping[str, object], folders: Mapping[str, str], id_key: str
) -> _KarpathyImage:
    """Return the path, the captions and the ids of an image.

    Raises:
        DataError: If the path, a caption or an id is missing or invalid.
    """
    name, folder = entry.get("filename"), entry.get("filepath", "")
    is_name = isinstance(name, str) and name and not name.startswith(".")
    if not is_name or any(character in str(name) for character in "/\\\0"):
        raise DataError(
            f"{file}: filename of {place} must be the name of an image without a folder; got "
            f"{quote_of_file(name)}. {_RESTORE}"
        )
    if not isinstance(folder, str) or folder not in folders:
        raise DataError(
            f"{file}: filepath of {place} must be one of {', '.join(map(repr, folders))}; got "
            f"{quote_of_file(folder)}. {_RESTORE}"
        )
    sentences = entry.get("sentences")
    if not isinstance(sentences, list) or not sentences:
        raise DataError(
            f"{file}: sentences of {place} must be a list with at least one caption; got "
            f"{quote_of_file(sentences)}. {_RESTORE}"
        )
    captions, caption_ids = [], []
    for number, sentence in enumerate(sentences[:CAPTIONS_PER_IMAGE]):
        where = f"sentences[{number}] of {place}"
        if not isinstance(sentence, dict):
            raise DataError(
                f"{file}: {where} must be an object; got {quote_of_file(sentence)}. {_RESTORE}"
            )
        captions.append(clean_caption_text(file, where, sentence.get("raw")))
        caption_ids.append(_integer_id(file, where, sentence, "sentid"))
    image_id = _integer_id(file, place, entry, id_key)
    return _KarpathyImage(f"{folders[folder]}/{name}", image_id, captions, caption_ids)


def _integer_id(file: Path, place: str, entry: Mapping[str, object], key: str) -> int:
    """Return an id.

    Raises:
        DataError: If the id is missing, or is not an integer >= 0.
    """
    value = entry.get(key)
    if type(value) is not int or value < 0:
        raise DataError(
            f"{file}: {key} of {place} must be an integer >= 0; got {quote_of_file(value)}. "
            f"{_RESTORE}"
        )
    return value


def _check_unique_ids(file: Path, key: str, ids: list[int]) -> None:
    """Check that no id is repeated.

    Raises:
        DataError: If an id is repeated.
    """
    repeated, count = Counter(ids).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{file}: {key} must be unique in a split; the id {repeated} is repeated. {_RESTORE}"
        )
