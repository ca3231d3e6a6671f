"""Define the option ``--corrections`` for corrected targets of a dataset."""

from typing import TYPE_CHECKING, overload

import click

from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData
    from surelabel.recognizer import LabelledInput


def corrections_option(function: Command) -> Command:
    """Add the option ``--corrections`` for a file of corrected targets."""
    return click.option(
        "--corrections",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.csv",
        help="Correct targets of DATASET with a file of `surelabel serve`, or with corrections.csv "
        "of `surelabel audit`. First fill the column corrected of corrections.csv with 1, 0 or "
        "unknown.",
    )(function)


@overload
def correct_labels_of_dataset(
    terminal: Terminal, data: "LabelledInput", corrections: str | None
) -> "LabelledInput": ...
@overload
def correct_labels_of_dataset(
    terminal: Terminal, data: "TrainingData", corrections: str | None
) -> "TrainingData": ...
def correct_labels_of_dataset(
    terminal: Terminal, data: "TrainingData", corrections: str | None
) -> "TrainingData":
    """Return a dataset with the corrections of a file, and print how many targets they change.

    Args:
        terminal: Object that prints results, status lines and progress.
        data: Dataset of the command.
        corrections: Value of the option ``--corrections``, or None.

    Raises:
        InputError: If the data have no labels.
        DataError: If the file is invalid, or does not belong to the dataset.
    """
    if corrections is None:
        return data

    from surelabel.data import correct_labels
    from surelabel.errors import InputError
    from surelabel.records import LabelledFeatures, LabelledImages

    if not isinstance(data, LabelledImages | LabelledFeatures):
        raise InputError(
            "--corrections requires annotated images, vectors or scores; got data of type "
            f"{type(data).__name__}. Remove --corrections."
        )
    corrected = correct_labels(data, corrections)
    is_changed = (corrected.known != data.known) | (corrected.targets != data.targets)
    changed = format_count(int(is_changed.sum()), "target")
    terminal.print_status(f"{corrections}: {changed} changed.")
    return corrected
