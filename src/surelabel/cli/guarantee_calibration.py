"""Define ``--calibration`` and ``--max-wrong`` for commands with a bound on the share of errors."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import load_dataset_from_input_options
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.operating_point_options import SHARE
from surelabel.cli.score_inputs import join_score_labels, read_score_input
from surelabel.cli.terminal import Command, Terminal
from surelabel.errors import InputError
from surelabel.recognizer_folder_checks import score_kind_of_recognizer_folder

if TYPE_CHECKING:
    from surelabel.recognizer import LabelledInput


def guarantee_calibration_options(
    *, required: bool, default_max_wrong: float | None, help_text: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds the options for the calibration images and the bound.

    Args:
        required: Whether ``--calibration`` is required.
        default_max_wrong: Default of ``--max-wrong``, in (0, 1), or None.
        help_text: Help of ``--max-wrong``.
    """
    options = (
        click.option(
            "--max-wrong",
            type=SHARE,
            default=default_max_wrong,
            show_default=default_max_wrong is not None,
            help=help_text,
        ),
        click.option(
            "--calibration",
            required=required,
            callback=validate_terminal_input_paths,
            metavar="DATASET",
            help="Annotated random sample of the image collection. The recognizer must not be "
            "fitted or calibrated on this sample.",
        ),
        click.option(
            "--calibration-scores",
            metavar="scores:FILE",
            help="Scores of the images of --calibration, for a recognizer that was calibrated or "
            "fitted on scores.",
        ),
    )

    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def load_guarantee_calibration(
    terminal: Terminal,
    dataset: str,
    scores: str | None,
    model: str,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledInput":
    """Load the calibration images of a guarantee, with their labels.

    Args:
        terminal: Object that prints how tables of scores and of their labels were read.
        dataset: Value of ``--calibration``.
        scores: ``scores:FILE`` with the scores of the images, or None.
        model: Folder of a saved recognizer, or name of an encoder.
        images_root: Root of relative image paths, or None.
        table_options: Options for the columns and cells of tables.

    Raises:
        InputError: If the recognizer needs scores and there are none.
        DataError: If a file cannot be read.
    """
    if scores is not None:
        file = read_score_input(scores, model, None, table_options)
        return join_score_labels(terminal, file, scores, dataset, images_root, table_options)
    if score_kind_of_recognizer_folder(model) is not None:
        raise InputError(
            f"{model} requires scores of the calibration images; got {dataset} without scores. Add "
            "--calibration-scores scores:FILE."
        )
    return load_dataset_from_input_options(dataset, images_root, table_options)
