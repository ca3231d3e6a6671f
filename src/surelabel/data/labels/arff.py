"""Read ARFF files with an attribute of image paths, and labels as in Mulan or MEKA."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data.labels.resolution.arff_files import has_arff_image_paths, read_arff_file
from surelabel.data.labels.resolution.image_resolution import resolve_labelled_images
from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError
from surelabel.records import LabelledImages


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    label_file: str | Path | None = None,
) -> LabelledImages:
    """Read annotated images from an ARFF file.

    A string attribute contains the paths of the images. Its name is one of the names that the image
    column of a CSV file can have, such as ``path`` or ``filename``. The labels are the attributes
    that an XML file of Mulan names, or the first or last attributes according to the option ``-C``
    of MEKA in the relation. Other attributes are not used.

    A label is positive if its value is 1, negative if its value is 0, and unknown if its value is
    ``?``. A number between 0 and 1 is a soft target. In a sparse row, an omitted label is negative.

    Args:
        path: Path of the file, with dense or sparse rows.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.
        names: Labels to return, in the order of the columns. If None, the labels are returned in
            the order of the attributes.
        label_file: XML file of Mulan. If None, the file with the name of ``path`` is used if it
            exists; ``emotions.xml`` also belongs to ``emotions-train.arff``.

    Raises:
        DataError: If the file or the XML file is not valid, if no attribute contains image paths,
            if a path is absolute or leaves the folder, if an image does not exist, or if a target
            is not in [0, 1]. Also if a label is not in ``names``.
    """
    source = Path(path)
    if not has_arff_image_paths(source):
        raise DataError(
            f"{path} must have a string attribute of image paths, such as path or filename; got "
            "none. To read its attributes as vectors, use read_arff_vectors."
        )
    table = read_arff_file(source, label_file=label_file, with_features=False)
    for image, line in zip(table.rows.images, table.rows.lines, strict=True):
        check_relative_image_path(f"{path}, line {line}", image)
    unused = format_count(table.n_unused, "other attribute")
    return resolve_labelled_images(
        source,
        table.rows.images,
        table.names,
        table.rows.targets,
        images_root=images_root,
        names=names,
        reading=table.reading + (f"; {unused} not used" if table.n_unused else ""),
    )
