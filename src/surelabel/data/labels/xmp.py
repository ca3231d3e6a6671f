"""Read keywords in XMP sidecars: a folder of images, each with ``IMG.xmp`` or ``IMG.JPG.xmp``."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.image_sources import find_images
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.table_options import TARGET_READINGS, TargetReading
from surelabel.data.xmp_keywords import comparable_keyword, xmp_user_keywords
from surelabel.data.xmp_sidecar_paths import (
    images_of_stem,
    read_sidecar,
    shared_sidecar_error,
    sidecar_belongs_to,
    sidecar_path,
)
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    missing: TargetReading | None = None,
) -> LabelledImages:
    """Read the keywords of the user in the XMP sidecars of a folder of images as labels.

    The keywords are in ``dc:subject`` and ``lr:hierarchicalSubject``. Each level of a hierarchical
    keyword is a separate keyword. Keywords that ``surelabel tag --sidecar`` has added are not read.
    Keywords that differ only in case are one label. The targets of an image without keywords of the
    user are unknown.

    Args:
        path: Path of a folder of images, which is searched recursively.
        images_root: Must be None, because sidecars are beside their images.
        names: Labels to return, in the order of the columns. If None, the sorted keywords of all
            images are returned.
        missing: Meaning of the labels that are not among the keywords of an image with keywords,
            ``negative`` or ``unknown``. If None, these labels are negative.

    Raises:
        InputError: If ``images_root`` is given, or ``missing`` has an invalid value.
        DataError: If the folder has no image or no keyword of the user, or if a sidecar is no XMP
            or can belong to several images. Also if a keyword contains a control character, or is
            not in ``names``.
    """
    if images_root is not None:
        raise InputError(
            "XMP sidecars are beside their images, so --images-root cannot be given; got "
            f"{images_root}. Remove --images-root."
        )
    if missing not in (None, *TARGET_READINGS):
        raise InputError(f"missing must be one of {', '.join(TARGET_READINGS)}; got {missing!r}.")
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(
            f"{path} must be a folder of images with XMP sidecars; got a path that is not a "
            "folder. Check the path."
        )
    images = find_images([folder])
    labels_of = _merge_spellings(_keywords_of_images(images))
    n_labelled = sum(map(bool, labels_of))
    if not n_labelled:
        noun = "image" if len(images) == 1 else "images"
        raise DataError(
            f"{path} must contain XMP sidecars with keywords of the user; got no keyword for "
            f"{len(images)} {noun}. Add keywords to some images."
        )
    columns = resolve_label_columns(folder, set().union(*labels_of), names)
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.full((len(images), len(columns)), np.nan)
    for row, labels in zip(targets, labels_of, strict=True):
        if labels and missing != "unknown":
            row[:] = 0.0
        row[[column_of[label] for label in labels]] = 1.0
    return resolve_labelled_images(
        folder,
        [os.path.relpath(image, folder) for image in images],
        columns,
        targets,
        images_root=folder,
        names=names,
        reading=f"keywords in XMP sidecars of {n_labelled} of {format_count(len(images), 'image')}",
    )


def _keywords_of_images(images: Sequence[str]) -> list[list[str]]:
    """Return the keywords of the user for each image.

    Raises:
        DataError: If a sidecar is no XMP or can belong to several images, or if a keyword contains
            a control character.
    """
    shared = images_of_stem(images)
    return [
        _keywords_of_sidecar(sidecar_path(image, "full"), image, [])
        + _keywords_of_sidecar(sidecar_path(image, "stem"), image, shared.get(image, []))
        for image in images
    ]


def _keywords_of_sidecar(path: str, image: str, sharing: Sequence[str]) -> list[str]:
    """Return the keywords of the user in the sidecar of an image, which need not exist.

    Args:
        path: Path of the sidecar.
        image: Path of the image.
        sharing: Names of the images that share the sidecar, if there are several.

    Raises:
        DataError: If the file is no XMP, a keyword contains a control character, or the sidecar can
            belong to several images.
    """
    if not os.path.lexists(path):
        return []
    packet = read_sidecar(path)
    if sharing and not sidecar_belongs_to(packet, image, is_declared=True):
        if any(sidecar_belongs_to(packet, name, is_declared=True) for name in sharing):
            return []
        full_names = " or ".join(f"{name}.xmp" for name in sharing)
        raise shared_sidecar_error(path, sharing, f"Rename it to {full_names}")
    if not sidecar_belongs_to(packet, image):
        return []
    keywords = xmp_user_keywords(packet)
    for keyword in keywords:
        if has_control_character(keyword):
            raise DataError(
                f"{path}: a keyword must not contain a control character, such as a tab or a line "
                f"break; got {quote_of_file(keyword)}. Correct this keyword."
            )
    return keywords


def _merge_spellings(keywords_of: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the keywords of each image, in the most frequent of the spellings that are equal."""
    counts = Counter(keyword for keywords in keywords_of for keyword in keywords)
    spelling: dict[str, str] = {}
    for keyword, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        spelling.setdefault(comparable_keyword(keyword), keyword)
    return [{spelling[comparable_keyword(k)] for k in keywords} for keywords in keywords_of]
