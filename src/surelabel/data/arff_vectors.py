"""Read vectors with labels from ARFF files of Mulan and MEKA."""

from pathlib import Path

import numpy as np

from surelabel.counts import format_count
from surelabel.data.labels.resolution.arff_files import read_arff_file
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import LabelledFeatures


def read_arff_vectors(
    path: str | Path, *, label_file: str | Path | None = None, with_labels: bool = True
) -> LabelledFeatures:
    """Read feature vectors and targets from an ARFF file.

    The labels are the attributes that an XML file of Mulan names, or the first or last attributes
    according to the option ``-C`` of MEKA in the relation. All other attributes are features. A
    numeric feature, or a nominal feature with the values 0 and 1, is one number of the vector. Any
    other nominal feature is one-hot encoded: one number for each of its values. If there is a
    string attribute of image paths, such as ``path``, its values are the paths of the rows.

    A label is positive if its value is 1, negative if its value is 0, and unknown if its value is
    ``?``. A number between 0 and 1 is a soft target. In a sparse row, an omitted label is negative.

    Args:
        path: Path of the file, with dense or sparse rows.
        label_file: XML file of Mulan. If None, the file with the name of ``path`` is used if it
            exists; ``emotions.xml`` also belongs to ``emotions-train.arff``.
        with_labels: Whether the labels are returned. If False, the file need not state its labels:
            all attributes of such a file are features, except the image paths.

    Raises:
        DataError: If the file or the XML file is not valid, has no row or no feature, if a feature
            is missing, a text or a date, if a target is not in [0, 1], or if an image path is
            repeated.
    """
    table = read_arff_file(
        Path(path), label_file=label_file, with_features=True, with_labels=with_labels
    )
    n_rows, width = table.rows.features.shape
    if not n_rows or not width:
        raise DataError(
            f"{path} must contain at least one row and one feature; got "
            f"{format_count(n_rows, 'row')} and {format_count(width, 'feature')}. Give another "
            "file."
        )
    row_names = table.rows.images or [f"{Path(path).name}, row {i}" for i in range(n_rows)]
    lines: dict[str, int] = {}
    for name, line in zip(row_names, table.rows.lines, strict=True):
        if (first := lines.setdefault(name, line)) != line:
            raise DataError(
                f"{path}, line {line}: the image paths must be distinct; got "
                f"{quote_of_file(name)}, which is also on line {first}. Correct the path."
            )
    if not with_labels:
        return LabelledFeatures(table.rows.features, [], np.empty((n_rows, 0)), paths=row_names)
    return LabelledFeatures(table.rows.features, table.names, table.rows.targets, paths=row_names)
