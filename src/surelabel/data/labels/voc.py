"""Labels as Pascal VOC: a folder with one XML file a picture."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from surelabel.data.labels.resolving import labelled_images, vocabulary
from surelabel.errors import DataError
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    pictures_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read which objects each picture has; those that are only there as difficult are unknown.

    Args:
        path: The folder of XML files, or one that holds it as ``Annotations``.
        pictures_root: Where ``filename`` starts. None takes the folder ``JPEGImages``
            beside the annotations if there is one, else the folder of the XML files.
        names: Labels that were looked for, in this order; all that are mentioned, sorted,
            when None.

    Raises:
        DataError: a file is no VOC annotation or declares a document type or an entity,
            pictures do not exist, or labels are not in ``names``.
    """
    folder = Path(path)
    if (folder / "Annotations").is_dir():
        folder = folder / "Annotations"
    files = sorted(folder.glob("*.xml"))
    if not files:
        raise DataError(f"{path} must be a folder of VOC annotations (*.xml). Found none there.")
    entries = [_entry(file) for file in files]
    columns = vocabulary(folder, {label for _, objects in entries for label in objects}, names)
    place = {label: column for column, label in enumerate(columns)}
    targets = np.zeros((len(entries), len(columns)))
    for row, (_, objects) in zip(targets, entries, strict=True):
        for label, certain in objects.items():
            row[place[label]] = 1.0 if certain else np.nan
    return labelled_images(
        folder,
        [picture for picture, _ in entries],
        columns,
        targets,
        pictures_root=_root(folder) if pictures_root is None else pictures_root,
        names=names,
    )


def _root(folder: Path) -> Path:
    beside = folder.parent / "JPEGImages"
    return beside if beside.is_dir() else folder


def _entry(file: Path) -> tuple[str, dict[str, bool]]:
    """The picture of a file, and its labels: True unless all objects of it are difficult."""
    root = _parsed(file)
    picture = (root.findtext("filename") or "").strip()
    objects: dict[str, bool] = {}
    for thing in root.findall("object"):
        label = (thing.findtext("name") or "").strip()
        if not label:
            raise DataError(f"{file}: an object has no name. Add it.")
        certain = (thing.findtext("difficult") or "0").strip() != "1"
        objects[label] = objects.get(label, False) or certain
    if root.tag != "annotation" or not picture:
        raise DataError(f"{file} must be a VOC annotation with a filename. Got <{root.tag}>.")
    return picture, objects


def _parsed(file: Path) -> ElementTree.Element:
    """Parse without document types and entities: they can read files and fill the memory."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise DataError(
                f"{file} declares a document type or an entity, which is refused as unsafe. "
                "Take the declaration out."
            )
        return ElementTree.fromstring(text)
    except (OSError, UnicodeDecodeError, ElementTree.ParseError) as error:
        raise DataError(f"{file} must be an XML file in UTF-8. Got: {error}.") from error
