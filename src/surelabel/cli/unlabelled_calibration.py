"""Calibrate without labels in ``tag`` and ``index``, and describe the calibration."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count
from surelabel.errors import InputError

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

NOT_VERIFIED = (
    "Not verified: no labels were available. Run `surelabel evaluate` on an annotated dataset to "
    "measure the calibration error."
)


def calibrate_unlabelled_option(function: Command) -> Command:
    """Add the option ``--calibrate-unlabelled``, which calibrates on the images of the command."""
    return click.option(
        "--calibrate-unlabelled",
        is_flag=True,
        help="Calibrate an uncalibrated model without labels, on at most 500 of IMAGES. Ten views "
        "of each of these images are encoded. The probabilities are not verified.",
    )(function)


def calibrate_without_labels(
    terminal: Terminal, recognizer: "Recognizer", paths: Sequence[str]
) -> str:
    """Calibrate a recognizer on images without labels, and describe the calibration.

    If there are fewer than 100 images, emit a warning.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer, whose calibration is replaced.
        paths: Paths of the images.

    Returns:
        Text that names the calibrator and the images, and states that the calibration is not
        verified.
    """
    from surelabel.recognizer.label_free_methods import MIN_CALIBRATION_IMAGES
    from surelabel.records import Images

    if len(paths) < MIN_CALIBRATION_IMAGES:
        images = format_count(len(paths), "image")
        warnings.warn(
            f"The calibration without labels uses only {images}, so the probabilities are "
            f"unreliable. Give {MIN_CALIBRATION_IMAGES} or more images in one command, or "
            "calibrate on annotated images.",
            UserWarning,
            stacklevel=2,
        )
    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(Images(paths), progress=progress)
    return f"Calibrated: {recognizer.calibrated_on}.\n{NOT_VERIFIED}"


def calibrate_uncalibrated_without_labels(
    terminal: Terminal, recognizer: "Recognizer", paths: Sequence[str]
) -> str:
    """Calibrate an uncalibrated recognizer on images without labels, and describe the calibration.

    At most 500 images are used, at equal distances in the list of images.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer without calibration.
        paths: Paths of the images.

    Returns:
        Text of :func:`calibrate_without_labels`.

    Raises:
        InputError: If the recognizer is already calibrated.
    """
    from surelabel.recognizer.label_free_methods import select_calibration_images

    if recognizer.calibration is not None:
        raise InputError(
            "--calibrate-unlabelled requires an uncalibrated model; got a calibrated model: "
            f"{recognizer.calibrated_on}. Remove --calibrate-unlabelled. To adapt the calibration "
            "to these images, run `surelabel calibrate MODEL IMAGES --unlabelled --out FOLDER`."
        )
    return calibrate_without_labels(terminal, recognizer, select_calibration_images(paths))


def calibrate_new_index_without_labels(
    terminal: Terminal, recognizer: "Recognizer", folder: str, paths: Sequence[str]
) -> None:
    """Calibrate a recognizer without calibration on the images of a new index.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer without calibration.
        folder: Folder of the new index.
        paths: Paths of the images.

    Raises:
        InputError: If the folder contains an index, or if the recognizer is already calibrated.
    """
    from surelabel.recognizer import read_calibration_for_indexing

    existing = read_calibration_for_indexing(folder)
    if existing is not None:
        raise InputError(
            f"--calibrate-unlabelled requires a new index; {folder} contains an index with another "
            f"calibration: {existing}. Give a new folder, or remove --calibrate-unlabelled and "
            "give the model of the index."
        )
    calibrate_uncalibrated_without_labels(terminal, recognizer, paths)
