"""Read CVAT for images 1.1 (XML), and write predictions as tags with confidences."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.data.labels.resolution.pre_annotations import select_pre_annotations
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.data.labels.resolution.table_options import TARGET_READINGS, TargetReading
from surelabel.data.labels.resolution.xml_files import parse_annotation_xml
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_regular_file, quote_of_file
from surelabel.files import atomic_new_file, check_is_new_file
from surelabel.records import LabelledImages, Predictions
from surelabel.storage.image_paths import is_object_url

FILE_NAME = "annotations.xml"  # in the archive of an export
CONFIDENCE = "confidence"  # attribute of a tag

_REMEDY = "Export the task in the format CVAT for images 1.1."
_HEAD_SIZE = 4096  # bytes in which the root element begins
_ROOT = re.compile(  # after a byte order mark, the declaration and comments
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?[^>]*+>\s*+|<!--(?:(?!-->).)*+-->\s*+)*+<annotations[\s/>]",
    re.DOTALL,
)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    missing: TargetReading | None = None,
) -> LabelledImages:
    """Read annotated images from an XML file of CVAT for images 1.1.

    A label with a tag, a box, a polygon or another shape in an image is positive. The other labels
    of the task are negative for an image with at least one tag or shape. CVAT does not state
    whether an image without tags and shapes was annotated, so all its labels are unknown by
    default. Attributes such as a confidence are ignored.

    Args:
        path: Path of the XML file, or of a folder that contains ``annotations.xml``.
        images_root: Folder to which the names of images are relative. If None, the folder
            ``images`` next to the XML file is used if it exists, and otherwise the folder of the
            XML file.
        names: Labels to return, in the order of the columns. If None, the labels in ``meta`` are
            returned in the order of the file, or the sorted labels of the images if ``meta``
            contains none. If a label is not a label of the task, its targets are unknown.
        missing: Meaning of the labels of an image without tags and shapes, ``negative`` or
            ``unknown``. If None, the labels are unknown.

    Raises:
        InputError: If ``missing`` has an invalid value.
        DataError: If the file is not such an XML file or declares a document type or an entity, if
            a label is not in ``meta`` or not in ``names``, or if an image does not exist or is not
            in the folder.
    """
    if missing not in (None, *TARGET_READINGS):
        raise InputError(f"missing must be one of {', '.join(TARGET_READINGS)}; got {missing!r}.")
    file = Path(path) / FILE_NAME if Path(path).is_dir() else Path(path)
    root = parse_annotation_xml(file)
    if root.tag != "annotations" or root.find("track") is not None:
        content = "tracks of a video" if root.tag == "annotations" else f"<{root.tag}>"
        raise DataError(
            f"{file} must contain the root element <annotations> with <image> elements; got "
            f"{content}. {_REMEDY}"
        )
    columns = _read_task_labels(file, root)
    entries = [
        _read_image(file, number, image) for number, image in enumerate(root.findall("image"), 1)
    ]
    labels = {label for _, _, image_labels in entries for label in image_labels}
    columns = columns or sorted(labels)
    if not columns:
        raise DataError(
            f"{file} must contain labels in <meta>, or images with tags or shapes; got no label. "
            f"{_REMEDY}"
        )
    column_of = {label: column for column, label in enumerate(columns)}
    targets = np.full((len(entries), len(columns)), 0.0 if missing == "negative" else np.nan)
    for row, (place, _, image_labels) in zip(targets, entries, strict=True):
        if unknown := image_labels - column_of.keys():
            raise DataError(
                f"{place}: expected a label of <meta>; got {quote_of_file(min(unknown))}. Add the "
                "label to <meta>, or correct it."
            )
        if image_labels:
            row[:] = 0.0
        row[[column_of[label] for label in image_labels]] = 1.0
    n_labelled = sum(bool(image_labels) for _, _, image_labels in entries)
    return resolve_labelled_images(
        file,
        [name for _, name, _ in entries],
        columns,
        targets,
        images_root=_default_cvat_images_root(file) if images_root is None else images_root,
        names=names,
        reading=_describe_images(n_labelled, len(entries), missing or "unknown"),
    )


def is_cvat_file(path: Path) -> bool:
    """Return True if a path is an XML file whose root element is ``annotations``."""
    if not path.is_file():
        return False
    with open_regular_file(path) as stream:
        return _ROOT.match(stream.read(_HEAD_SIZE)) is not None


def is_cvat_folder(folder: Path) -> bool:
    """Return True if a folder contains ``annotations.xml`` of CVAT."""
    return is_cvat_file(folder / FILE_NAME)


def write_predictions(
    predictions: Predictions | Iterable[Predictions],
    path: str | Path,
    *,
    thresholds: float | Array | None = None,
    images_root: str | Path | None = None,
) -> None:
    """Write predictions as tags in the format CVAT for images 1.1, which CVAT imports into a task.

    Each label that reaches its threshold is a tag with ``source="auto"`` and the attribute
    ``confidence``, the probability of the label. CVAT keeps this attribute if the labels of the
    task have a text attribute of this name. ``id`` of an image is its index in the predictions.

    Args:
        predictions: Calibrated predictions, or blocks of them.
        path: Path of a new XML file.
        thresholds: Minimum probability of a tag; see :func:`select_pre_annotations`.
        images_root: Folder to which the names of images are relative. If None, the folder of the
            XML file is used.

    Raises:
        InputError, NotFitted: For the reasons of :func:`select_pre_annotations`. Also if a label
            contains a character that XML does not allow.
        DataError: If the file exists or cannot be written, or if an image is not in the folder or
            its path contains a character that XML does not allow.

    Source:
        CVAT documentation, page "XML annotation format", version 1.1.
    """
    check_is_new_file(path)
    names, pre_annotations = select_pre_annotations(predictions, thresholds)
    folder = Path(path).parent if images_root is None else Path(images_root)
    with atomic_new_file(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n')
        file.write(f"<version>1.1</version>\n{_xml_text(_meta_of_labels(names))}")
        for number, image in enumerate(pre_annotations):
            name = _name_of_image(image.path, folder)
            element = ElementTree.Element("image", {"id": str(number), "name": name})
            for label in image.labels:
                tag = ElementTree.SubElement(element, "tag", {"label": label, "source": "auto"})
                confidence = ElementTree.SubElement(tag, "attribute", {"name": CONFIDENCE})
                confidence.text = str(image.probabilities[label])
            file.write(_xml_text(element))
        file.write("</annotations>\n")


def _default_cvat_images_root(file: Path) -> Path:
    images = file.parent / "images"
    return images if images.is_dir() else file.parent


def _read_task_labels(file: Path, root: ElementTree.Element) -> list[str]:
    """Return the labels of a task, a job or a project, without the parts of skeletons."""
    labels: dict[str, None] = {}
    for number, element in enumerate(root.findall("meta/*/labels/label"), start=1):
        label = (element.findtext("name") or "").strip()
        if element.find("parent") is not None:
            continue
        if not label or label in labels:
            raise DataError(
                f"{file}, label {number} of <meta>: expected a name that is not empty and not "
                f"repeated; got {quote_of_file(label)}. Correct the element <name>."
            )
        labels[label] = None
    return list(labels)


def _read_image(file: Path, number: int, image: ElementTree.Element) -> tuple[str, str, set[str]]:
    """Return the place of an image in messages, its path, and the labels of its tags and shapes."""
    name = image.get("name", "")
    place = f"{file}, image {number} ({quote_of_file(name)})"
    check_relative_image_path(place, name)
    labels = set()
    for element in image:
        label = element.get("label", "").strip()
        if not label:
            raise DataError(
                f"{place}: every tag or shape must have a label; got <{element.tag}> without a "
                "label. Add the attribute label."
            )
        labels.add(label)
    return place, name, labels


def _describe_images(n_labelled: int, n_images: int, missing: str) -> str:
    """Return how the images were read, without a full stop."""
    text = f"CVAT tags and shapes of {n_labelled} of {format_count(n_images, 'image')}"
    if n_labelled == n_images:
        return text
    without = format_count(n_images - n_labelled, "image")
    return f"{text}, all labels are {missing} for {without} without tags and shapes"


def _meta_of_labels(names: Sequence[str]) -> ElementTree.Element:
    """Return the element ``meta``, in which each label has a text attribute for confidences."""
    meta = ElementTree.Element("meta")
    task = ElementTree.SubElement(meta, "task")
    ElementTree.SubElement(task, "mode").text = "annotation"
    labels = ElementTree.SubElement(task, "labels")
    for name in names:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = _xml_label(name)
        attributes = ElementTree.SubElement(label, "attributes")
        attribute = ElementTree.SubElement(attributes, "attribute")
        ElementTree.SubElement(attribute, "name").text = CONFIDENCE
        ElementTree.SubElement(attribute, "mutable").text = "False"
        ElementTree.SubElement(attribute, "input_type").text = "text"
        ElementTree.SubElement(attribute, "default_value")
        ElementTree.SubElement(attribute, "values")
    return meta


def _xml_label(name: str) -> str:
    if invalid := _NOT_XML.search(name):
        raise InputError(
            f"A label in an XML file must not contain the character {invalid[0]!r}; got {name!r}. "
            "Rename the label."
        )
    return name


def _name_of_image(path: str, folder: Path) -> str:
    """Return the path of an image relative to the folder of the images, separated by ``/``."""
    absolute, root = os.path.abspath(path), os.path.abspath(folder)
    if is_object_url(path) or os.path.commonpath([absolute, root]) != root:
        raise DataError(
            f"The images of a CVAT file must be in the folder {folder}; got {path}. Give the "
            "folder of the images as images_root."
        )
    name = Path(os.path.relpath(absolute, root)).as_posix()
    if invalid := _NOT_XML.search(name):
        raise DataError(
            f"The path of an image in an XML file must not contain the character {invalid[0]!r}; "
            f"got {path!r}. Rename the image file."
        )
    return name


def _xml_text(element: ElementTree.Element) -> str:
    ElementTree.indent(element)
    return ElementTree.tostring(element, encoding="unicode") + "\n"
