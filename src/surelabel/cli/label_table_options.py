"""Define the options of label tables and other label formats, and print how labels were read."""

import os
from collections.abc import Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command, Terminal

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData

EXISTING_FILE = click.Path(exists=True, dir_okay=False)
OPTIONS = (
    click.option(
        "--image-column",
        metavar="COLUMN",
        help="Column of the image paths in a table. [path, image or filename]",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="COLUMN",
        help="Column without labels in a table, such as split or width. The option may be "
        "repeated.",
    ),
    click.option(
        "--separator",
        type=click.Choice(["comma", "semicolon", "pipe", "space"]),
        help="Separator of the labels in a cell that contains several labels. [comma, semicolon or "
        "pipe, detected from the column]",
    ),
    click.option(
        "--minus-one",
        type=click.Choice(["negative", "unknown"]),
        help="Meaning of the target -1 in a table or a multi-hot array. Without this option, a "
        "file with -1 is refused.",
    ),
    click.option(
        "--zero",
        type=click.Choice(["negative", "unknown"]),
        help="Meaning of the target 0 in a table or a multi-hot array. The option is required if "
        "-1 is negative. [negative]",
    ),
    click.option(
        "--missing",
        type=click.Choice(["negative", "unknown"]),
        help="Meaning of missing annotations: labels that are not a keyword in xmp:FOLDER, tags of "
        "NUS-WIDE, images of YOLO without a .txt file, and images of CVAT or FiftyOne without a "
        "label. [negative for xmp and NUS-WIDE, otherwise unknown]",
    ),
    click.option("--split", metavar="SPLIT", help="Split of data.yaml of YOLO, such as train."),
    click.option(
        "--label-field",
        metavar="FIELD",
        help="Field of FiftyOne, or tag Choices of Label Studio, that contains the labels.",
    ),
    click.option(
        "--label-file",
        type=EXISTING_FILE,
        metavar="FILE",
        help="XML file of Mulan with the labels of an ARFF file. [file with the same name]",
    ),
    click.option(
        "--with-predictions",
        is_flag=True,
        default=None,
        help="Read the predictions of Label Studio for tasks without a finished annotation.",
    ),
    click.option(
        "--machine-labels",
        type=click.FloatRange(0, 1),
        metavar="MIN",
        help="Lowest confidence at which machine labels of Open Images are positive. [machine "
        "labels are unknown]",
    ),
    click.option(
        "--hierarchy",
        type=EXISTING_FILE,
        metavar="FILE",
        help="Hierarchy of Open Images in JSON. Positive targets are extended to ancestors, and "
        "negative targets to descendants.",
    ),
    click.option(
        "--class-descriptions",
        type=EXISTING_FILE,
        metavar="FILE",
        help="Names of the labels of Open Images in CSV. [class-descriptions.csv in the folder]",
    ),
)

NAMES = (
    *("image_column", "ignore", "separator", "minus_one", "zero", "missing", "split"),
    *("label_field", "label_file", "with_predictions", "machine_labels", "hierarchy"),
    "class_descriptions",
)


def label_table_options(function: Command) -> Command:
    """Add the options of label tables and other label formats.

    The given values are passed to the command as one dictionary ``table_options``, the keyword
    arguments of :func:`surelabel.data.read_labels`.
    """

    @wraps(function)
    def command(*arguments: Any, **options: Any) -> None:
        values = {name: options.pop(name) for name in NAMES}
        given = {name: value for name, value in values.items() if value not in (None, ())}
        function(*arguments, table_options=given, **options)

    for option in reversed(OPTIONS):
        command = option(command)
    return command


def check_no_label_table_options(table_options: Mapping[str, Any], source: str) -> None:
    """Check that no option of label formats is given for a source of another kind.

    Raises:
        UsageError: If an option is given.
    """
    if table_options:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in table_options)
        raise click.UsageError(
            f"{given} can be given only for a table, a file or a folder of images with labels; "
            f"got {source}. Remove {given}."
        )


def print_label_table_reading(terminal: Terminal, source: str, data: "TrainingData") -> None:
    """Print in two status lines how a label file was read, and the counts of its targets.

    Nothing is printed for a split of a collection, for vectors or scores, or for data without
    labels.

    Args:
        terminal: Object that prints results, status lines and progress.
        source: Value of the argument DATASET.
        data: Data that were read.
    """
    from surelabel.data import describe_labels
    from surelabel.records import LabelledImages

    is_file = os.path.exists(source) or source.startswith("xmp:")
    if isinstance(data, LabelledImages) and is_file:
        columns, counts = describe_labels(data)
        terminal.print_status(f"{source}: {columns}")
        terminal.print_status(counts)
