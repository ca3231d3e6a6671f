"""``surelabel fit``: fit and save a recognizer."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

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
from surelabel.cli.label_table_options import label_table_options, print_label_table_reading
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_folder
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import join_lines_for_terminal
from surelabel.cli.unlabelled_calibration import NOT_VERIFIED

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData
    from surelabel.config import Run
    from surelabel.recognizer import LabelledInput, Recognizer
    from surelabel.records import SkippedImage


@click.command()
@click.argument("dataset", nargs=-1, required=True, metavar="DATASET|IMAGES...|CAPTIONS")
@click.option(
    "--out",
    callback=validate_terminal_output_folder,
    required=True,
    metavar="FOLDER",
    help="Folder for the fitted recognizer.",
)
@click.option(
    "--run",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE.toml",
    help="File with the settings of the run; missing settings have default values.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the run."
)
@click.option(
    "--model",
    callback=validate_terminal_model_path,
    help="Encoder; short for --set encoder.name=MODEL.",
)
@click.option("--method", help="Method to fit; short for --set method.name=METHOD.")
@click.option("--loss", help="Training loss; short for --set loss.name=LOSS.")
@click.option("--regularizer", help="Regularizer; short for --set regularizer.name=REGULARIZER.")
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    help="Also calibrate on DATASET, with K-fold cross-fitting.",
)
@click.option(
    "--shots",
    type=click.IntRange(1),
    metavar="K",
    help="Fit on a random sample of DATASET with at least K positive images per label.",
)
@click.option(
    "--caption-noise",
    type=click.FloatRange(0, 1),
    metavar="RATIO",
    help="Fraction of captions to permute at random, for experiments with noisy correspondence.",
)
@images_root_input_option
@label_table_options
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
    shots: int | None,
    caption_noise: float | None,
    images_root: str | None,
    table_options: dict[str, Any],
    names: str | None,
) -> None:
    """Fit a recognizer on annotated or other images, or on captions.

    DATASET contains annotated images. It is an annotation file (CSV, JSON lines, COCO), a folder of
    VOC XML, xmp:FOLDER for the keywords in XMP sidecars, a split of a collection such as
    scenes-80:train, or feature vectors (.npz with features, targets and names). A CSV file
    image,caption or COCO captions need --labels, which are searched in the captions of each image.

    A method with self-training, such as tailor, requires unlabelled IMAGES, given as for
    `surelabel tag`, and --labels. Self-training uses no annotations for fitting or calibration.

    A method of texts, such as tai, requires a file of CAPTIONS (text, CSV, COCO, scenes.jsonl) and
    --labels, and no image.

    A method of images with captions, such as variational, requires CAPTIONS with images (COCO, CSV,
    JSON lines, a Flickr token file, scenes-80:train) or vectors (.npz with image_features,
    text_features and image_rows). --labels is optional; labels are scored like captions.

    To resume an interrupted fit, run the same command again.
    """
    from surelabel.config import load_run
    from surelabel.recognizer import Recognizer, check_saved_recognizer_folder
    from surelabel.recognizer.vector_normalization import vector_normalization_description
    from surelabel.records import Images, LabelledImages, LabelledTexts

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
    given_labels = parse_labels_input_option(names)
    training_data = load_training_data_from_input_options(
        resolved_run.method.name, dataset, images_root, given_labels, table_options
    )
    if caption_noise is not None:
        training_data = add_caption_noise_in_fit_command(
            terminal, training_data, caption_noise, resolved_run.seed
        )
    if not model:
        resolved_run = use_vector_encoder_in_fit_command(resolved_run, training_data)
    labels = given_labels or labels_of_fit_data(resolved_run, training_data)
    recognizer = Recognizer(resolved_run, labels, device=terminal.device)
    if isinstance(training_data, LabelledTexts) and training_data.n_dropped:
        n_captions = len(training_data) + training_data.n_dropped
        terminal.print_status(
            f"{training_data.n_dropped} of {n_captions} captions mention no label and are not used."
        )
    print_label_table_reading(terminal, dataset[0], training_data)
    if shots is not None:
        training_data = sample_shots_in_fit_command(terminal, recognizer, training_data, shots)
    checkpoint = f"{os.path.normpath(out)}.unfinished"  # out may end with a slash
    with terminal.progress("Fitting") as progress:
        recognizer.fit(training_data, folds=folds or 0, checkpoint=checkpoint, progress=progress)
    skipped = skipped_images_of_input_options(recognizer, training_data)
    if recognizer.method.learns_from == "images" and isinstance(
        training_data, Images | LabelledImages
    ):
        skipped_paths = {image.path for image in skipped}
        paths = [path for path in training_data.paths if path not in skipped_paths]
        calibrate_in_fit_command(terminal, recognizer, paths)
    recognizer.save(out)
    count = count_of_fit_data(training_data, skipped)
    unit = unit_of_fit_data(training_data)
    calibrated = f", calibrated with {folds} folds" if folds else ""
    labels_text = f" for {len(recognizer.names)} labels" if recognizer.names else ""
    text = (
        f"Fitted {resolved_run.method.name} on {count} {unit}{labels_text}{calibrated}. "
        f"Saved in {out}."
    )
    vectors = vector_normalization_description(recognizer.encoder)
    text += f"\nVectors: {vectors}." if vectors else ""
    terminal.print_result(
        {"recognizer": out, "names": recognizer.names, unit: count}
        | ({"vectors": vectors} if vectors else {}),
        f"{text}\n{command_after_fit(recognizer, out)}",
    )
    print_tag_skipped_images(skipped)


def add_caption_noise_in_fit_command(
    terminal: Terminal, training_data: "TrainingData", ratio: float, seed: int
) -> "TrainingData":
    """Return images with captions of which some are permuted, and print their number.

    Args:
        terminal: Object that prints results, status lines and progress.
        training_data: Images with captions, or precomputed vectors of both.
        ratio: Fraction of the captions that are permuted, in [0, 1].
        seed: Seed of the permutation.

    Raises:
        InputError: If the training data are not images with captions.
    """
    from surelabel.errors import InputError
    from surelabel.records import PairFeatures, Pairs

    if not isinstance(training_data, Pairs | PairFeatures):
        raise InputError(
            "--caption-noise requires images with captions and a method of pairs, such as "
            f"variational; got {len(training_data):,} {unit_of_fit_data(training_data)}. Remove "
            "--caption-noise."
        )
    terminal.print_status(
        f"{int(ratio * len(training_data))} of {len(training_data)} captions are permuted "
        f"(seed {seed})."
    )
    return training_data.with_noise(ratio, seed=seed)


def unit_of_fit_data(training_data: "TrainingData") -> str:
    """Return the unit in which training data are counted: captions or images."""
    from surelabel.records import LabelledTexts, PairFeatures, Pairs

    is_text = isinstance(training_data, LabelledTexts | Pairs | PairFeatures)
    return "captions" if is_text else "images"


def count_of_fit_data(training_data: "TrainingData", skipped: "Sequence[SkippedImage]") -> int:
    """Return the number of captions or images that were used, without those of skipped images."""
    import numpy as np

    from surelabel.records import Pairs

    if not isinstance(training_data, Pairs):
        return len(training_data) - len(skipped)
    skipped_paths = {image.path for image in skipped}
    rows = [row for row, path in enumerate(training_data.paths) if path in skipped_paths]
    return int((~np.isin(training_data.image_rows, rows)).sum())


def sample_shots_in_fit_command(
    terminal: Terminal,
    recognizer: "Recognizer",
    training_data: "TrainingData",
    shots: int,
) -> "LabelledInput":
    """Return a few-shot sample of the training data, and print its size and counts.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer with the labels and the seed of the sample.
        training_data: Training data of any kind.
        shots: Number of positive images per label, >= 1.

    Raises:
        InputError: If the images have no labels, or no target of the labels is positive.
    """
    import numpy as np

    from surelabel.data import describe_shots, sample_shots
    from surelabel.errors import InputError
    from surelabel.records import LabelledFeatures, LabelledImages

    if not isinstance(training_data, LabelledImages | LabelledFeatures):
        unit = unit_of_fit_data(training_data)
        unit = "images without labels" if unit == "images" else unit
        raise InputError(
            "--shots requires an annotated DATASET, because it samples images by their labels; got "
            f"{len(training_data):,} {unit}. Remove --shots."
        )
    labelled = recognizer.align_labels(training_data)
    targets, known = labelled.targets, labelled.known
    rows = sample_shots(targets, known, shots, np.random.default_rng(recognizer.run.seed))
    if not len(rows):
        raise InputError(
            f"--shots requires images with a positive label; none of the {len(labelled):,} images "
            "has one. Check the annotations and --labels."
        )
    for sentence in describe_shots(recognizer.names, targets, known, rows, shots):
        terminal.print_status(sentence)
    return training_data.take(rows)


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
    if recognizer.method.learns_from == "pairs":
        return f"Next: surelabel evaluate {out} OTHER_CAPTIONS"
    if calibration is None:
        return f"Next: surelabel calibrate {out} OTHER_DATASET --out {out}"
    if calibration.uses_labels:
        return f"Next: surelabel evaluate {out} OTHER_DATASET"
    return (
        f"Calibrated: {calibration.description}.\n{NOT_VERIFIED}\n"
        f"Next: surelabel tag IMAGES --model {out}"
    )


def use_vector_encoder_in_fit_command(run: "Run", training_data: "TrainingData") -> "Run":
    """Return the run, with the encoder ``features:WIDTH`` if the data are vectors.

    If the vectors of captions have another width, the setting ``text_width`` of the method is set.
    """
    from surelabel.records import PairFeatures

    encoder = vector_encoder_of_input_options(training_data)
    if encoder is None:
        return run
    method = run.method
    if isinstance(training_data, PairFeatures):
        text_width = training_data.text_vectors.shape[1]
        method = replace(method, settings={"text_width": text_width, **method.settings})
    return replace(run, encoder=replace(run.encoder, name=encoder), method=method)


def labels_of_fit_data(run: "Run", training_data: "TrainingData") -> list[str]:
    """Return the labels of the training data; images with captions need none.

    Args:
        run: Settings of the fit.
        training_data: Training data of any kind.

    Raises:
        InputError: If there are no labels.
    """
    from surelabel.errors import InputError
    from surelabel.records import Images, PairFeatures, Pairs

    if isinstance(training_data, Pairs | PairFeatures):
        return []
    labels = [] if isinstance(training_data, Images) else list(training_data.names)
    if not labels:
        raise InputError(
            f"{run.method.name} requires labels, but unlabelled images have none. Give labels with "
            '--labels: as text ("dog, bicycle"), as a file with one label per line, or - for '
            "standard input."
        )
    return labels
