"""``surelabel fit``: fit and save a recognizer."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from surelabel.cli.calibrate import NOT_VERIFIED
from surelabel.cli.input_options import (
    images_root_input_option,
    labels_input_option,
    load_training_data_from_input_options,
    max_image_memory_input_option,
    parse_labels_input_option,
    run_overrides_from_input_options,
    skipped_images_of_input_options,
    vector_encoder_of_input_options,
)
from surelabel.cli.tag import print_tag_skipped_images
from surelabel.cli.terminal import (
    Terminal,
    join_lines_for_terminal,
    validate_terminal_output_folder,
    with_terminal_options,
)

if TYPE_CHECKING:
    from surelabel.config import Run
    from surelabel.recognizer import LabelledInput, Recognizer
    from surelabel.records import Images


@click.command()
@click.argument("dataset", nargs=-1, required=True, metavar="DATASET|IMAGES...")
@click.option(
    "--out",
    callback=validate_terminal_output_folder,
    required=True,
    metavar="FOLDER",
    help="Folder for the fitted recognizer.",
)
@click.option(
    "--run",
    metavar="FILE.toml",
    help="File with the settings of the run; missing settings have default values.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the run."
)
@click.option("--model", help="Encoder; short for --set encoder.name=MODEL.")
@click.option("--method", help="Method to fit; short for --set method.name=METHOD.")
@click.option("--loss", help="Training loss; short for --set loss.name=LOSS.")
@click.option("--regularizer", help="Regularizer; short for --set regularizer.name=REGULARIZER.")
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    help="Also calibrate on DATASET, with K-fold cross-fitting.",
)
@images_root_input_option
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def fit(
    terminal: Terminal,
    dataset: tuple[str, ...],
    out: str,
    run: str | None,
    settings: tuple[str, ...],
    model: str | None,
    method: str | None,
    loss: str | None,
    regularizer: str | None,
    folds: int | None,
    images_root: str | None,
    names: str | None,
) -> None:
    """Fit a recognizer on annotated images, or on unlabelled images.

    DATASET contains annotated images. It is an annotation file (CSV, JSON lines, COCO), a folder of
    VOC XML, a split of a collection such as scenes-80:train, or feature vectors (.npz with
    features, targets and names).

    A method with self-training, such as tailor, requires unlabelled IMAGES, given as for
    `surelabel tag`, and --labels. Self-training uses no annotations for fitting or calibration. To
    resume an interrupted fit, run the same command again.
    """
    from surelabel.config import load_run
    from surelabel.recognizer import Recognizer, check_saved_recognizer_folder

    check_saved_recognizer_folder(out)
    resolved_run = load_run(
        run,
        run_overrides_from_input_options(
            settings,
            seed=terminal.seed,
            method__name=method,
            loss__name=loss,
            regularizer__name=regularizer,
            encoder__name=model,
        ),
    )
    training_data = load_training_data_from_input_options(
        resolved_run.method.name, dataset, images_root
    )
    if not model:
        resolved_run = use_vector_encoder_in_fit_command(resolved_run, training_data)
    labels = parse_fit_labels(resolved_run, training_data, names)
    recognizer = Recognizer(resolved_run, labels, device=terminal.device)
    checkpoint = f"{os.path.normpath(out)}.unfinished"  # out may end with a slash
    with terminal.progress("Fitting") as progress:
        recognizer.fit(training_data, folds=folds or 0, checkpoint=checkpoint, progress=progress)
    skipped = skipped_images_of_input_options(recognizer, training_data)
    if recognizer.method.learns_from == "images" and not vector_encoder_of_input_options(
        training_data
    ):
        skipped_paths = {image.path for image in skipped}
        paths = [path for path in training_data.paths if path not in skipped_paths]
        calibrate_in_fit_command(terminal, recognizer, paths)
    recognizer.save(out)
    n_images = len(training_data) - len(skipped)
    calibrated = f", calibrated with {folds} folds" if folds else ""
    text = (
        f"Fitted {resolved_run.method.name} on {n_images} images for {len(recognizer.names)} "
        f"labels{calibrated}. Saved in {out}."
    )
    terminal.print_result(
        {"recognizer": out, "names": recognizer.names, "images": n_images},
        f"{text}\n{command_after_fit(recognizer, out)}",
    )
    print_tag_skipped_images(skipped)


def calibrate_in_fit_command(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> None:
    """Calibrate a recognizer on its unlabelled training images, if this is possible.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer that was fitted on unlabelled images.
        paths: Paths of the training images.
    """
    from surelabel.errors import ConfigError, InputError
    from surelabel.records import Images

    try:
        with terminal.progress("Calibrating") as progress:
            recognizer.calibrate(Images(paths), progress=progress)
    except (ConfigError, InputError) as error:
        terminal.print_status(
            f"The recognizer returns scores, not probabilities: {join_lines_for_terminal(error)}"
        )


def command_after_fit(recognizer: "Recognizer", out: str) -> str:
    """Return the next command to run, after the description of a calibration without labels.

    Args:
        recognizer: Fitted recognizer.
        out: Folder of the recognizer.
    """
    calibration = recognizer.calibration
    if calibration is None:
        return f"Next: surelabel calibrate {out} OTHER_DATASET --out {out}"
    if calibration.uses_labels:
        return f"Next: surelabel evaluate {out} OTHER_DATASET"
    return (
        f"Calibrated: {calibration.description}.\n{NOT_VERIFIED}\n"
        f"Next: surelabel tag IMAGES --model {out}"
    )


def use_vector_encoder_in_fit_command(run: "Run", training_data: "Images | LabelledInput") -> "Run":
    """Return the run, with the encoder ``features:WIDTH`` if the data are feature vectors."""
    encoder = vector_encoder_of_input_options(training_data)
    return replace(run, encoder=replace(run.encoder, name=encoder)) if encoder else run


def parse_fit_labels(
    run: "Run", training_data: "Images | LabelledInput", names: str | None
) -> list[str]:
    """Return the labels of ``--labels``, or the labels of the training data.

    Args:
        run: Settings of the fit.
        training_data: Annotated images, feature vectors, or unlabelled images.
        names: Value of the option ``--labels``.

    Raises:
        InputError: If there are no labels.
    """
    from surelabel.errors import InputError
    from surelabel.records import Images

    labels = parse_labels_input_option(names)
    if not labels and not isinstance(training_data, Images):
        labels = list(training_data.names)
    if not labels:
        raise InputError(
            f"{run.method.name} requires labels, but unlabelled images have none. Give labels with "
            '--labels: as text ("dog, bicycle"), as a file with one label per line, or - for '
            "standard input."
        )
    return labels
