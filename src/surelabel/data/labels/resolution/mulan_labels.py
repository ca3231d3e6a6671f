"""Find the label attributes of an ARFF file: by the XML file of Mulan, or the option of MEKA."""

import re
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data.labels.resolution.arff_header import ArffHeader
from surelabel.data.labels.resolution.image_resolution import quote_first_unresolved
from surelabel.data.labels.resolution.xml_files import parse_annotation_xml
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

_LAST_PART = re.compile(r"[-_][^-_]*$")


def label_attributes_of_arff(
    path: Path, header: ArffHeader, label_file: str | Path | None
) -> tuple[list[int], str]:
    """Return the columns of the label attributes in the order of the file, and their source.

    The columns are stated by an XML file of Mulan, or by the option ``-C`` of MEKA in the relation
    (``-C 6``: the first 6 attributes; ``-C -6``: the last 6 attributes). If both are given, they
    must agree.

    Args:
        path: Path of the ARFF file.
        header: Header of the file.
        label_file: XML file of Mulan. If None, the file is found by its name, see
            :func:`find_mulan_xml`.

    Returns:
        Indices of the label attributes, and a description of their source without a full stop. If
        neither source exists, the list and the description are empty.

    Raises:
        DataError: If the XML file is invalid, if a label is not an attribute, or if both sources
            differ.
    """
    xml = find_mulan_xml(path) if label_file is None else Path(label_file)
    n_attributes, n_labels = len(header.attributes), header.n_labels
    by_option: list[int] = []
    if n_labels is not None:
        columns = range(n_labels) if n_labels > 0 else range(n_attributes + n_labels, n_attributes)
        by_option = list(columns)
    if xml is None:
        return by_option, f"labels from the option -C {n_labels}" if by_option else ""
    names = set(read_mulan_labels(xml))
    by_xml = [i for i, attribute in enumerate(header.attributes) if attribute.name in names]
    if len(by_xml) < len(names):
        missing = sorted(names - {attribute.name for attribute in header.attributes})
        raise DataError(
            f"{xml}: each label must be an attribute of {path}; got "
            f"{format_count(len(missing), 'other label')}: {quote_first_unresolved(missing)}. "
            "Give the XML file that belongs to the ARFF file."
        )
    if by_option and by_option != by_xml:
        raise DataError(
            f"{path}: the option -C {n_labels} in @relation and {xml} must state the same label "
            f"attributes; got {format_count(len(by_option), 'attribute')} and "
            f"{format_count(len(by_xml), 'attribute')} that differ. Correct one of them."
        )
    return by_xml, f"labels of {xml.name}"


def candidate_mulan_xml_files(path: Path) -> list[Path]:
    """Return the possible paths of the XML file of an ARFF file, the longest name first.

    Example:
        >>> [file.name for file in candidate_mulan_xml_files(Path("emotions-train.arff"))]
        ['emotions-train.xml', 'emotions.xml']
    """
    stems = [path.stem]
    while (shorter := _LAST_PART.sub("", stems[-1])) not in ("", stems[-1]):
        stems.append(shorter)
    return [path.with_name(f"{stem}.xml") for stem in stems]


def find_mulan_xml(path: Path) -> Path | None:
    """Return the XML file with the name of an ARFF file, or None if there is no such file.

    The name of the XML file can lack the last parts of the name: ``emotions.xml`` belongs to
    ``emotions-train.arff``. The file with the longest name is returned.
    """
    return next((file for file in candidate_mulan_xml_files(path) if file.is_file()), None)


def read_mulan_labels(file: Path) -> list[str]:
    """Return the labels of an XML file of Mulan, in the order of the file.

    A label inside another label, which is a child in a hierarchy, is returned after its parent.

    Args:
        file: Path of the file: ``<labels><label name="dog"/></labels>``.

    Raises:
        DataError: If the file is not XML, has another element, or has a label without a name, a
            repeated label or no label.
    """
    root = parse_annotation_xml(file)
    if _local_tag(root.tag) != "labels":
        raise DataError(
            f"{file}: the root element must be <labels>; got <{_local_tag(root.tag)[:40]}>. Give "
            "the XML file of the labels."
        )
    names: dict[str, None] = {}
    for number, element in enumerate((e for e in root.iter() if e is not root), start=1):
        name = element.get("name")
        if _local_tag(element.tag) != "label" or not name or name in names:
            got = f"<{_local_tag(element.tag)}> with the name {quote_of_file(name or '')}"
            got += ", which is repeated" if name in names else ""
            raise DataError(
                f'{file}, element {number}: expected <label name="…"> with a name that occurs '
                f"once; got {got}. Correct the element."
            )
        names[name] = None
    if not names:
        raise DataError(f"{file} must contain at least one <label>; got none. Add the labels.")
    return list(names)


def _local_tag(tag: str) -> str:
    """Return the tag of an element without its namespace."""
    return tag.rpartition("}")[2]
