"""Read predictions that are arguments of a command, and the annotations of their images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import load_dataset_from_input_options
from surelabel.cli.label_table_options import print_label_table_reading
from surelabel.cli.output_paths import validate_terminal_model_path
from surelabel.storage.image_paths import absolute_image_path, join_image_path

if TYPE_CHECKING:
    from surelabel.cli.terminal import Terminal
    from surelabel.records import LabelledImages


def validate_model_or_prediction_path(
    context: click.Context, parameter: click.Parameter, model: str
) -> str:
    """Check that a model is a file or folder of predictions, or a valid model argument.

    Raises:
        DataError: If a path does not exist, or is a file of another kind.
    """
    from surelabel.data import is_prediction_file

    if is_prediction_file(model):
        return model
    return validate_terminal_model_path(context, parameter, model) or model


def read_annotated_images(
    terminal: "Terminal",
    annotations: str,
    images_root: str | None,
    table_options: Mapping[str, Any],
    *,
    purpose: str,
) -> "LabelledImages":
    """Return annotated images, whose files need not exist.

    If a file of annotations states how its rows were chosen, only random rows are returned.

    Args:
        terminal: Object that prints how a table of labels was read.
        annotations: File of annotations, split of a collection, or feature archive.
        images_root: Root of relative image paths, or None.
        table_options: Options for the columns and cells of tables.
        purpose: Subject of the warning about rows that were not chosen at random.

    Raises:
        DataError, InputError: If the annotations cannot be read, or no row was chosen at random.
    """
    from dataclasses import replace

    from surelabel.data import COLLECTIONS, read_label_entries
    from surelabel.recognizer.random_rows import take_random_rows
    from surelabel.records import LabelledImages

    name = annotations.rpartition(":")[0]
    if ".npz" in (annotations[-4:], name[-4:]) or name in COLLECTIONS:
        data = load_dataset_from_input_options(annotations, images_root, table_options)
        if isinstance(data, LabelledImages):
            return data
        return LabelledImages(data.paths, data.names, data.targets, data.known)
    entries = read_label_entries(annotations, images_root=images_root, **table_options)
    print_label_table_reading(terminal, annotations, entries)
    root = root_of_annotations(annotations, images_root)
    paths = [join_image_path(root, path) for path in entries.paths]
    labelled = replace(entries, paths=paths)
    taken = take_random_rows(labelled, purpose)
    assert isinstance(taken, LabelledImages)  # images stay images
    return taken


def paths_as_in_annotations(
    paths: Sequence[str], labelled: "LabelledImages", root: str
) -> list[str]:
    """Return paths of predictions, joined to the root of the annotations if more paths then match.

    Prediction files of scores contain image names that are relative to the folder of the table.

    Args:
        paths: Paths of the predicted images.
        labelled: Annotated images.
        root: Folder to which paths of the annotations are relative.
    """
    annotated = {absolute_image_path(path) for path in labelled.paths}
    relative = [join_image_path(root, path) for path in paths]
    matches = [
        sum(absolute_image_path(path) in annotated for path in some) for some in (paths, relative)
    ]
    return relative if matches[1] > matches[0] else list(paths)


def root_of_annotations(annotations: str, images_root: str | None) -> str:
    """Return the root of image paths of annotations, a folder or URL, or an empty text for ``.``.

    Args:
        annotations: File or folder of annotations, or ``xmp:FOLDER``.
        images_root: Value of the option ``--images-root``.
    """
    if images_root:
        return images_root
    path = Path(annotations.removeprefix("xmp:"))
    folder = str(path if path.is_dir() else path.parent)
    return "" if folder == "." else folder
