"""Read ARFF files: select the features, labels and image paths among the attributes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from surelabel.data.labels.resolution.arff_header import (
    ArffHeader,
    NumberedLines,
    read_arff_header,
)
from surelabel.data.labels.resolution.arff_rows import (
    LABEL_VALUES,
    ArffColumns,
    ArffRows,
    read_arff_rows,
)
from surelabel.data.labels.resolution.mulan_labels import (
    candidate_mulan_xml_files,
    label_attributes_of_arff,
)
from surelabel.data.labels.resolution.table_columns import IMAGE_COLUMNS, MAIN_IMAGE_COLUMN
from surelabel.errors import DataError
from surelabel.file_readers import open_lines, quote_of_file
from surelabel.label_aliases import LiteralLabel

ARFF_SUFFIX = ".arff"


@dataclass(frozen=True)
class ArffTable:
    """Content of an ARFF file.

    Attributes:
        names: Names of the c label attributes, in the order of the file.
        rows: Vectors, targets and image paths.
        reading: Source of the labels, without a full stop.
        n_unused: Number of attributes that are neither a feature, a label nor the image path.
    """

    names: list[str]
    rows: ArffRows
    reading: str
    n_unused: int


def is_arff_path(path: str | Path) -> bool:
    """Return True if a path has the suffix ``.arff``, in capital or small letters."""
    return str(path).lower().endswith(ARFF_SUFFIX)


def has_arff_image_paths(path: str | Path) -> bool:
    """Return True if an ARFF file has a string attribute of image paths, such as ``path``.

    Only the header of the file is read. The names that the image column of a CSV file can have
    are accepted, and are not case-sensitive.

    Raises:
        DataError: If the file cannot be read, or its header is invalid.
    """
    with _open_arff_file(Path(path)) as (header, _):
        return _image_attribute(Path(path), header) is not None


def read_arff_file(
    path: Path, *, label_file: str | Path | None, with_features: bool, with_labels: bool = True
) -> ArffTable:
    """Read an ARFF file.

    Args:
        path: Path of the file.
        label_file: XML file of Mulan with the labels. If None, the file is found by its name.
        with_features: Whether all attributes except the labels and the image paths are features.
            If False, these attributes are not used, and the vectors have no numbers.
        with_labels: Whether the file must state its labels. If False, labels are optional.

    Raises:
        DataError: If the file or the XML file is invalid, if no label is stated, if a label is
            not in [0, 1], or if a feature is a text or a date.
    """
    with _open_arff_file(path) as (header, lines):
        labels, reading = label_attributes_of_arff(path, header, label_file)
        if with_labels and not labels:
            files = " or ".join(file.name for file in candidate_mulan_xml_files(path))
            raise DataError(
                f"{path} must state which attributes are labels, by an XML file of Mulan ({files}) "
                "or by the option -C in @relation; got neither. Add this "
                "XML file, or give --label-file FILE (in Python label_file=FILE)."
            )
        image = _image_attribute(path, header)
        used = {*labels, image}
        others = [i for i in range(len(header.attributes)) if i not in used]
        features = others if with_features else []
        _check_label_attributes(path, header, labels)
        _check_feature_attributes(path, header, features)
        columns = ArffColumns(header.attributes, features, labels, image)
        rows = read_arff_rows(path, lines, columns)
    names = [header.attributes[i].name for i in labels]
    literal = [LiteralLabel(name) if "|" in name else name for name in names]
    return ArffTable(literal, rows, reading, len(others) - len(features))


@contextmanager
def _open_arff_file(path: Path) -> Iterator[tuple[ArffHeader, NumberedLines]]:
    """Open an ARFF file, and return its header and its lines after the header."""
    with open_lines(path) as stream:
        lines = enumerate(stream, start=1)
        yield read_arff_header(path, lines), lines


def _image_attribute(path: Path, header: ArffHeader) -> int | None:
    """Return the index of the attribute of image paths, or None if there is none."""
    found = [
        i
        for i, attribute in enumerate(header.attributes)
        if attribute.type == "string"
        and attribute.name.casefold() in IMAGE_COLUMNS | {MAIN_IMAGE_COLUMN}
    ]
    if len(found) > 1:
        first, second = (header.attributes[i] for i in found[:2])
        raise DataError(
            f"{path}, line {second.line}: one string attribute must contain the image paths; got "
            f"{quote_of_file(first.name)} and {quote_of_file(second.name)}. Rename or remove one."
        )
    return found[0] if found else None


def _check_label_attributes(path: Path, header: ArffHeader, labels: Sequence[int]) -> None:
    for i in labels:
        attribute = header.attributes[i]
        is_nominal = attribute.type == "nominal" and LABEL_VALUES.issuperset(attribute.values)
        if not is_nominal and attribute.type != "numeric":
            values = f" {{{','.join(attribute.values[:8])}}}" if attribute.values else ""
            raise DataError(
                f"{path}, line {attribute.line}: the label {quote_of_file(attribute.name)} must "
                f"have the type {{0,1}} or numeric; got {attribute.type}{values}. Write 1 for a "
                "positive and 0 for a negative target, or correct the list of labels."
            )


def _check_feature_attributes(path: Path, header: ArffHeader, features: Sequence[int]) -> None:
    for i in features:
        attribute = header.attributes[i]
        if attribute.type in ("string", "date"):
            raise DataError(
                f"{path}, line {attribute.line}: a feature must be numeric or nominal; got the "
                f"attribute {quote_of_file(attribute.name)} of type {attribute.type}. Remove the "
                "attribute, or convert it to numbers."
            )
