"""Read Pascal VOC annotations: a folder with one XML file per image."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surelabel.data.labels.resolution.image_resolution import (
    resolve_label_columns,
    resolve_labelled_images,
)
from surelabel.data.labels.resolution.xml_files import parse_annotation_xml
from surelabel.errors import DataError
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from a folder of VOC annotations.

    If all objects of a label in an image are marked difficult, the target of the label is unknown.
    Labels without an object in an image are negative.

    Args:
        path: Path of a folder of XML files, or of a folder whose subfolder ``Annotations`` contains
            the XML files.
        images_root: Folder to which the paths in ``filename`` are relative. If None, the folder
            ``JPEGImages`` next to the folder of the XML files is used if it exists, and otherwise
            the folder of the XML files.
        names: Labels to return, in the order of the columns. If None, the sorted labels of the
            objects are returned.

    Raises:
        DataError: If a file is not a VOC annotation or declares a document type or an entity,
            if an image does not exist, or if a label is not in ``names``.
    """
    folder = Path(path)
    if (folder / "Annotations").is_dir():
        folder = folder / "Annotations"
    files = sorted(folder.glob("*.xml"))
    if not files:
        raise DataError(
            f"{path} must be a folder of VOC annotations (*.xml); got no XML file. Give the folder "
            "of the XML files, or a label file."
        )
    entries = [_read_voc_annotation(file) for file in files]
    columns = resolve_label_columns(
        folder, {label for _, objects in entries for label in objects}, names
    )
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(entries), len(columns)))
    for row, (_, objects) in zip(targets, entries, strict=True):
        for label, is_certain in objects.items():
            row[column_of[label]] = 1.0 if is_certain else np.nan
    return resolve_labelled_images(
        folder,
        [image for image, _ in entries],
        columns,
        targets,
        images_root=_default_voc_images_root(folder) if images_root is None else images_root,
        names=names,
    )


def is_voc_folder(folder: Path) -> bool:
    """Return True if a folder contains XML files, or the subfolder ``Annotations``."""
    return (folder / "Annotations").is_dir() or next(folder.glob("*.xml"), None) is not None


def _default_voc_images_root(folder: Path) -> Path:
    images = folder.parent / "JPEGImages"
    return images if images.is_dir() else folder


def _read_voc_annotation(file: Path) -> tuple[str, dict[str, bool]]:
    """Return the image path of a file, and whether any object of each label is not difficult."""
    root = parse_annotation_xml(file)
    image = (root.findtext("filename") or "").strip()
    objects: dict[str, bool] = {}
    for element in root.findall("object"):
        label = (element.findtext("name") or "").strip()
        if not label:
            raise DataError(
                f"{file}: every object must have a name; got an object without a name. Add the "
                "element <name>."
            )
        is_certain = (element.findtext("difficult") or "0").strip() != "1"
        objects[label] = objects.get(label, False) or is_certain
    if root.tag != "annotation" or not image:
        raise DataError(
            f"{file} must contain the root element <annotation> with a <filename>; got the root "
            f"element <{root.tag}> {'with' if image else 'without'} a <filename>. Correct the file."
        )
    return image, objects
