"""Define ``surelabel fit``, which fits and saves a recognizer."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.fit_data import (
    add_caption_noise_in_fit_command,
    count_of_fit_data,
    labels_of_fit_data,
    noun_of_fit_data,
    sample_shots_in_fit_command,
    use_vector_encoder_in_fit_command,
)
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
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_corrections import correct_labels_of_dataset, corrections_option
from surelabel.cli.label_table_options import label_table_options, print_label_table_reading
from surelabel.cli.label_tree_option import (
    label_tree_metrics_as_json,
    label_tree_option,
    read_label_tree_option,
)
from surelabel.cli.method_selection import (
    MethodSelectionOptions,
    check_method_selection_options,
    method_selection_options,
    method_selection_text,
    select_in_fit_command,
)
from surelabel.cli.metric_tables import calibration_as_text
from surelabel.cli.output_paths import (
    unused_output_path,
    validate_terminal_model_path,
    validate_terminal_output_folder,
)
from surelabel.cli.score_inputs import (
    load_training_scores,
    score_kind_option,
    settings_of_score_encoder,
)
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import join_lines_for_terminal
from surelabel.cli.unlabelled_calibration import NOT_VERIFIED
from surelabel.counts import format_count
from surelabel.recognizer_folder_checks import check_saved_recognizer_folder

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData
    from surelabel.config import Run
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelTree, SkippedImage


@click.command()
@click.argument(
    "dataset",
    nargs=-1,
    required=True,
    metavar="DATASET|IMAGES...|CAPTIONS",
    callback=validate_terminal_input_paths,
)
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
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the run, such as epochs=5.",
)
@click.option(
    "--model",
    callback=validate_terminal_model_path,
    help="Encoder; short for --set encoder.name=MODEL.",
)
@click.option(
    "--method",
    help="Method to fit; short for --set method.name=METHOD. By default, the method with the "
    "lowest cross-validated log loss is selected.",
)
@click.option("--loss", help="Training loss; short for --set loss.name=LOSS.")
@click.option("--regularizer", help="Regularizer; short for --set regularizer.name=REGULARIZER.")
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    help="Also calibrate on DATASET, with K-fold cross-fitting. [5 if no method is given; "
    "otherwise no calibration]",
)
@method_selection_options
@score_kind_option
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
@click.option(
    "--devices",
    type=click.IntRange(1),
    metavar="N",
    help="Train with N processes. With --device cuda, each process uses one GPU. Otherwise, all "
    "processes use the CPU.",
)
@images_root_input_option
@corrections_option
@label_table_options
@label_tree_option
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def fit(
    terminal: Terminal,
    dataset: tuple[str, ...],
    score_kind: str | None,
    out: str,
    run: str | None,
    settings: tuple[str, ...],
    model: str | None,
    method: str | None,
    loss: str | None,
    regularizer: str | None,
    folds: int | None,
    selection_options: MethodSelectionOptions,
    shots: int | None,
    caption_noise: float | None,
    devices: int | None,
    images_root: str | None,
    corrections: str | None,
    table_options: dict[str, Any],
    label_tree: str | None,
    names: str | None,
) -> None:
    """Fit a recognizer on images or captions, with any supervision.

    DATASET contains annotated images. DATASET is an annotation file (CSV, JSON lines, COCO), a
    folder of VOC XML, or xmp:FOLDER for the keywords in XMP sidecars. DATASET can also be a split
    of a collection such as scenes-80:train, or feature vectors (.npz with features, targets and
    names). A CSV file with the header image,caption and COCO captions need --labels. These labels
    are searched in the captions of each image.

    Without a method, the methods that need no training or are trained on cached features are
    compared by the log loss of cross-validation on DATASET. The selected method is fitted on all
    images and calibrated. The expected time is printed first, and a table of the results
    afterwards.

    A method with self-training, such as tailor, requires --labels and unlabelled IMAGES, in a
    format of `surelabel tag`. Self-training uses no annotations for fitting or calibration.

    A method of texts, such as tai, requires a file of CAPTIONS (text, CSV, COCO, scenes.jsonl) and
    --labels, but no images.

    A method of images with captions, such as variational, requires CAPTIONS with images: COCO, CSV,
    JSON lines, a Flickr token file, or scenes-80:train. CAPTIONS can also be vectors (.npz with
    image_features, text_features and image_rows). --labels is optional; labels are scored like
    captions.

    To learn labels from the scores of another program, give scores:FILE, the file of the labels,
    and --as. Each label is learned from the scores of all columns. The columns can differ from the
    labels to learn.

    To resume an interrupted fit, run the same command again.
    """
    check_saved_recognizer_folder(out)
    given_labels = parse_labels_input_option(names)
    read_label_tree_option(label_tree)  # raises an error before other files are read
    terminal.print_import_status()

    from surelabel.config import load_run, method_settings_of_run

    overrides = run_overrides_from_input_options(
        settings,
        seed=terminal.seed,
        method__name=method,
        loss__name=loss,
        regularizer__name=regularizer,
        encoder__name=model,
    )
    method = method_settings_of_run(run, overrides).get("name")
    check_method_selection_options(method, selection_options, run, overrides)
    resolved_run = load_run(run, overrides)
    if devices is not None and method is None:
        raise click.UsageError(
            "--devices requires --method, because several methods are compared by default. Add "
            "--method METHOD."
        )
    scores = load_training_scores(terminal, dataset, score_kind, images_root, table_options)
    training_data = scores or load_training_data_from_input_options(
        method, dataset, images_root, given_labels, table_options
    )
    training_data = correct_labels_of_dataset(terminal, training_data, corrections)
    seed = resolved_run.seed
    if caption_noise is not None:
        training_data = add_caption_noise_in_fit_command(
            terminal, training_data, caption_noise, seed
        )
    labels = given_labels or labels_of_fit_data(method, training_data)
    print_training_data_in_fit_command(terminal, dataset[0], training_data)
    if shots is not None:
        training_data = sample_shots_in_fit_command(terminal, training_data, labels, shots, seed)
    encoder = None if model else vector_encoder_of_input_options(training_data)
    data: dict[str, Any] = {"training_data": training_data, "labels": labels, "folds": folds}
    data["label_tree"] = read_label_tree_option(label_tree, labels)
    data["checkpoint"] = f"{os.path.normpath(out)}.unfinished"  # out may end with a slash
    if method is None:
        overrides = run_overrides_from_input_options((*overrides,), encoder__name=encoder)
        overrides += [] if model else settings_of_score_encoder(training_data)
        recognizer = select_in_fit_command(terminal, selection_options, run, overrides, **data)
    else:
        resolved_run = use_vector_encoder_in_fit_command(resolved_run, encoder, training_data)
        recognizer = fit_in_fit_command(terminal, resolved_run, devices=devices, **data)
    skipped = skipped_images_of_input_options(recognizer, training_data)
    calibrate_in_fit_command(terminal, recognizer, training_data, skipped)
    recognizer.save(out)
    print_result_in_fit_command(terminal, recognizer, training_data, skipped, out, folds)
    print_tag_skipped_images(skipped)


def print_training_data_in_fit_command(
    terminal: Terminal, source: str, training_data: "TrainingData"
) -> None:
    """Print how a table of labels was read, and the number of captions without a label.

    Args:
        terminal: Object that prints results, status lines and progress.
        source: First argument of the command.
        training_data: Training data of any kind.
    """
    from surelabel.records import LabelledTexts

    if isinstance(training_data, LabelledTexts) and training_data.n_dropped:
        n_captions = len(training_data) + training_data.n_dropped
        terminal.print_status(
            f"{training_data.n_dropped} of {format_count(n_captions, 'caption')} mention no label "
            "and are not used."
        )
    print_label_table_reading(terminal, source, training_data)


def fit_in_fit_command(
    terminal: Terminal,
    run: "Run",
    *,
    training_data: "TrainingData",
    labels: "Sequence[str]",
    folds: int | None,
    label_tree: "LabelTree | None",
    devices: int | None,
    checkpoint: str,
) -> "Recognizer":
    """Return the fitted recognizer of a run.

    Args:
        terminal: Object that prints results, status lines and progress.
        run: Settings of the fit.
        training_data: Training data of any kind.
        labels: Labels of the recognizer.
        folds: Number of folds to calibrate with, or None.
        label_tree: Tree of the labels, or None.
        devices: Number of processes that train together, or None.
        checkpoint: File from which the fit resumes.
    """
    from surelabel.recognizer import Recognizer

    recognizer = Recognizer(run, labels, device=terminal.device, label_tree=label_tree)
    with terminal.progress("Fitting") as progress:
        recognizer.fit(
            training_data,
            folds=folds or 0,
            devices=devices,
            checkpoint=checkpoint,
            progress=progress,
        )
    return recognizer


def print_result_in_fit_command(
    terminal: Terminal,
    recognizer: "Recognizer",
    training_data: "TrainingData",
    skipped: "Sequence[SkippedImage]",
    out: str,
    folds: int | None,
) -> None:
    """Print the method, the training data and the next command.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Fitted recognizer.
        training_data: Training data of any kind.
        skipped: Images that cannot be read.
        out: Folder of the recognizer.
        folds: Value of ``--folds``, or None.
    """
    from surelabel.recognizer.penalty_fitting import penalties_description
    from surelabel.recognizer.vector_normalization import vector_normalization_description

    n_used = count_of_fit_data(training_data, skipped)
    noun = noun_of_fit_data(training_data)
    key = "captions" if noun == "caption" else "images"  # also for rows of vectors
    n_labels, selection = len(recognizer.names), recognizer.selection
    labels_text = f" for {format_count(n_labels, 'label')}" if n_labels else ""
    calibrated = f", calibrated with {folds} folds" if folds and selection is None else ""
    verb = "Calibrated" if recognizer.method.learns_from == "nothing" else "Fitted"
    text = (
        f"{verb} {recognizer.run.method.name} on {format_count(n_used, noun)}{labels_text}"
        f"{calibrated}. Saved in {out}."
    )
    vectors = vector_normalization_description(recognizer.encoder)
    text += f"\nVectors: {vectors}." if vectors else ""
    penalties = penalties_description(recognizer.run, recognizer.method.state_dict())
    text += f"\nRegularization: {penalties}." if penalties else ""
    calibration = recognizer.calibration
    tree = calibration.tree if calibration else None
    if calibration is not None and calibration.uses_labels:
        text += f"\n{calibration_as_text(calibration)}"
    terminal.print_result(
        {"recognizer": out, "names": recognizer.names, key: n_used}
        | ({"vectors": vectors} if vectors else {})
        | ({"regularization": penalties} if penalties else {})
        | ({"calibration": recognizer.calibrated_on} if calibration else {})
        | ({"label_tree": label_tree_metrics_as_json(tree)} if tree else {})
        | ({"selection": selection.state()} if selection else {}),
        f"{method_selection_text(selection)}{text}\n{command_after_fit(recognizer, out)}",
    )


def calibrate_in_fit_command(
    terminal: Terminal,
    recognizer: "Recognizer",
    training_data: "TrainingData",
    skipped: "Sequence[SkippedImage]",
) -> None:
    """Calibrate a recognizer that was fitted on unlabelled images, or print why this is impossible.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Fitted recognizer. The recognizer is not changed if it is calibrated, or if its
            method was fitted on other data.
        training_data: Training data of any kind.
        skipped: Images that cannot be read.
    """
    from surelabel.errors import ConfigError, InputError
    from surelabel.records import Images, LabelledImages

    is_uncalibrated = recognizer.method.learns_from == "images" and recognizer.calibration is None
    if not is_uncalibrated or not isinstance(training_data, Images | LabelledImages):
        return
    skipped_paths = {image.path for image in skipped}
    paths = [path for path in training_data.paths if path not in skipped_paths]
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
        calibrated = unused_output_path(f"{os.path.normpath(out)}-calibrated")
        return f"Next: surelabel calibrate {out} OTHER_DATASET --out {calibrated}"
    if calibration.uses_labels:
        return f"Next: surelabel evaluate {out} OTHER_DATASET"
    return (
        f"Calibrated: {calibration.description}.\n{NOT_VERIFIED}\n"
        f"Next: surelabel tag IMAGES --model {out}"
    )
