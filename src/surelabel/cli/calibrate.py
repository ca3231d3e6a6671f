"""Define ``surelabel calibrate``, which fits or adapts the calibrator of a recognizer."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    find_images_from_input_options,
    fit_without_labels_on_input_options,
    images_root_input_option,
    labels_input_option,
    max_image_memory_input_option,
    method_input_options,
    parse_labels_input_option,
    run_overrides_from_input_options,
    skipped_images_of_input_options,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_corrections import correct_labels_of_dataset, corrections_option
from surelabel.cli.label_table_options import (
    check_no_label_table_options,
    label_table_options,
    print_label_table_reading,
)
from surelabel.cli.label_tree_option import (
    label_tree_metrics_as_json,
    label_tree_metrics_as_text,
    label_tree_option,
    read_label_tree_option,
)
from surelabel.cli.metric_tables import (
    CALIBRATION_METRICS,
    calibration_as_text,
    format_metric_table,
)
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_folder
from surelabel.cli.recalibration import recalibrate_in_calibrate_command
from surelabel.cli.score_inputs import (
    check_no_score_options,
    is_score_input,
    load_dataset_or_scores,
    model_of_dataset,
    score_kind_option,
    score_labels_argument,
)
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.cli.unlabelled_calibration import calibrate_without_labels
from surelabel.counts import format_count
from surelabel.recognizer_folder_checks import check_saved_recognizer_folder

if TYPE_CHECKING:
    from surelabel.encoders.quantized.quantized_encoder import QuantizationRecord
    from surelabel.evaluation import Evaluation, LabelCoverage
    from surelabel.recognizer import LabelledInput, Recognizer
    from surelabel.recognizer.calibration_record import CalibrationRecord
    from surelabel.recognizer.dtype_check import DtypeCheck
MAX_SHIFTS = 10  # number of printed labels, those with the largest change
NOT_SAVED = "The recognizer was not saved. Add --out FOLDER to save the recognizer."


@click.command()
@click.argument("model", callback=validate_terminal_model_path)
@click.argument("dataset", callback=validate_terminal_input_paths)
@score_labels_argument
@score_kind_option
@click.option(
    "--out",
    callback=validate_terminal_output_folder,
    metavar="FOLDER",
    help="Folder for the calibrated recognizer.",
)
@click.option(
    "--test",
    callback=validate_terminal_input_paths,
    metavar="DATASET",
    help="Annotated dataset for the metrics. [the calibration dataset]",
)
@click.option(
    "--unlabelled",
    is_flag=True,
    help="Calibrate without labels. DATASET is a folder of images, or a .txt file of paths. If "
    "MODEL is already calibrated, adapt its calibration to the label frequencies of these images.",
)
@click.option(
    "--recalibrate",
    is_flag=True,
    help="Adjust the calibration of MODEL with a scale and a shift of the log-odds, for 20 to 500 "
    "annotated images that were sampled at random. If the log loss does not improve, the "
    "calibration is kept.",
)
@click.option(
    "--engine",
    type=click.Choice(["torch", "openvino"]),
    default="torch",
    show_default=True,
    help="Engine for which the changes of the probabilities in bf16 are measured, for `--dtype "
    "auto` of other commands. Processors without bf16 instructions measure nothing.",
)
@click.option(
    "--dtype",
    type=click.Choice(["fp32", "int8"]),
    default="fp32",
    show_default=True,
    help="Number format of the image encoder. int8 quantizes the encoder with 300 random images of "
    "DATASET, fits the calibrator on the new scores, and requires --out. If the mean average "
    "precision falls by more than 1 percentage point, nothing is saved. int8 requires "
    "surelabel[int8].",
)
@method_input_options
@images_root_input_option
@corrections_option
@label_table_options
@label_tree_option
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def calibrate(
    terminal: Terminal,
    model: str,
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    out: str | None,
    test: str | None,
    unlabelled: bool,
    recalibrate: bool,
    engine: str,
    dtype: str,
    method: str | None,
    settings: tuple[str, ...],
    images_root: str | None,
    corrections: str | None,
    table_options: dict[str, Any],
    label_tree: str | None,
    names: str | None,
) -> None:
    """Fit a calibrator on held-out annotated images.

    MODEL is a saved recognizer, an exported .onnx or .xml file, or an encoder. DATASET contains
    annotated images that were not used for fitting: an annotation file, or a split of a collection
    such as scenes-80:validation.
    MODEL can also be scores:FILE with --as: a table (CSV, Parquet or .npz) of scores that another
    program computed for the same images. To calibrate a recognizer that was fitted on scores, give
    scores:FILE as DATASET and the annotations of its images as LABELS.

    The result includes the labels with the fewest positives, which need more annotated images.
    """
    if out:
        check_saved_recognizer_folder(out)
    overrides = run_overrides_from_input_options(settings, method__name=method)
    if recalibrate and (unlabelled or test):
        raise click.UsageError(
            "--recalibrate cannot be combined with --unlabelled or --test. Remove these options; "
            "the metrics of --recalibrate are cross-fitted."
        )
    if recalibrate and label_tree:
        raise click.UsageError(
            "--recalibrate cannot be combined with --label-tree, because the tree needs a new "
            "calibration. Remove one of these options."
        )
    read_label_tree_option(label_tree)  # raises an error before other files are read
    if dtype == "int8":
        check_int8_options(out, unlabelled or recalibrate, is_score_input(model))
    if unlabelled:
        check_no_score_options(score_kind, score_labels)
        if is_score_input(model) or is_score_input(dataset):
            raise click.UsageError(
                "--unlabelled requires images; got scores. Remove "
                "--unlabelled, and give the annotations of the scored images."
            )
        check_no_label_table_options(table_options, dataset)
        if test or images_root or corrections:
            raise click.UsageError(
                "--unlabelled cannot be combined with --test, --images-root or --corrections. "
                "Remove these options."
            )
        run_unlabelled_calibrate_command(
            terminal, model, dataset, out, names, overrides, label_tree
        )
        return
    options = (score_kind, images_root, table_options)
    held_out = load_dataset_or_scores(terminal, model, dataset, score_labels, *options)
    held_out = correct_labels_of_dataset(terminal, held_out, corrections)
    test_set = held_out
    if test:
        test_dataset, test_labels = (dataset, test) if is_score_input(dataset) else (test, None)
        test_set = load_dataset_or_scores(terminal, model, test_dataset, test_labels, *options)
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.evaluation import measure_label_coverage
    from surelabel.recognizer import basic_evaluation_run, resolve_model
    from surelabel.recognizer.quantization_record import quantization_record
    from surelabel.recognizer.random_rows import take_random_rows

    model, default_names, overrides = model_of_dataset(model, held_out, overrides)
    recognizer = resolve_model(
        model,
        labels,
        default_names=default_names,
        settings=overrides,
        device=terminal.device,
    )
    if label_tree is not None:
        recognizer.label_tree = read_label_tree_option(label_tree, recognizer.names)
    print_label_table_reading(terminal, dataset, held_out)
    if test:
        print_label_table_reading(terminal, test, test_set)
    fit_without_labels_on_input_options(terminal, recognizer, held_out)
    if recalibrate:
        recalibrate_in_calibrate_command(terminal, recognizer, held_out, out, NOT_SAVED)
        return
    with terminal.progress("Encoding") as progress:
        before = basic_evaluation_run(recognizer, test_set, progress=progress)
    if dtype == "int8":
        recognizer = quantize_in_calibrate_command(terminal, recognizer, held_out)
    else:
        with terminal.progress("Calibrating") as progress:
            recognizer.calibrate(held_out, progress=progress)
    check = check_dtype_in_calibrate_command(terminal, recognizer, held_out, engine)
    if out:
        recognizer.save(out)
    calibration_rows = take_random_rows(held_out, "The calibration")
    coverage = measure_label_coverage(recognizer.align_labels(calibration_rows))
    after = basic_evaluation_run(recognizer, test_set)
    calibration = recognizer.calibration
    assert calibration is not None  # calibrated above
    record = quantization_record(recognizer.encoder) if dtype == "int8" else None
    print_calibrate_command_result(
        terminal, before, after, coverage, calibration, check, record, test, out
    )
    skipped = skipped_images_of_input_options(recognizer, held_out) if test else ()
    print_tag_skipped_images(list(dict.fromkeys([*before.predictions.skipped, *skipped])))


def check_int8_options(out: str | None, has_other_mode: bool, has_scores: bool) -> None:
    """Check that ``--dtype int8`` is not combined with options that encode no annotated images.

    Args:
        out: Value of the option ``--out``.
        has_other_mode: Whether ``--unlabelled`` or ``--recalibrate`` is given.
        has_scores: Whether the model is a file of scores.

    Raises:
        click.UsageError: If the options cannot be combined.
    """
    if has_other_mode or has_scores:
        raise click.UsageError(
            "--dtype int8 requires annotated images; it cannot be combined with --unlabelled, "
            "--recalibrate or scores:FILE. Remove --dtype."
        )
    if out is None:
        raise click.UsageError(
            "--dtype int8 requires --out, because it makes another recognizer. Add --out FOLDER."
        )


def quantize_in_calibrate_command(
    terminal: Terminal, recognizer: "Recognizer", held_out: "LabelledInput"
) -> "Recognizer":
    """Return the recognizer with an image encoder in int8 and a new calibration.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer before the quantization.
        held_out: Annotated images of the calibration.
    """
    from surelabel.recognizer.quantization import quantize_recognizer

    with terminal.progress("Quantizing") as progress:
        return quantize_recognizer(recognizer, held_out, progress=progress)


def check_dtype_in_calibrate_command(
    terminal: Terminal, recognizer: "Recognizer", held_out: "LabelledInput", engine: str
) -> "DtypeCheck | None":
    """Measure the changes of the probabilities in bf16, or return None without support of bf16.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Calibrated recognizer, which stores the result.
        held_out: Annotated images of the calibration.
        engine: Value of the option ``--engine``.
    """
    from surelabel.recognizer.dtype_check import can_check_dtype

    if not can_check_dtype(recognizer.encoder, engine):
        return None
    with terminal.progress("Checking bf16") as progress:
        return recognizer.check_dtype(held_out, engine=engine, progress=progress)


def run_unlabelled_calibrate_command(
    terminal: Terminal,
    model: str,
    source: str,
    out: str | None,
    names: str | None,
    settings: Sequence[str],
    label_tree: str | None,
) -> None:
    """Calibrate a recognizer on unlabelled images, or adapt an existing calibration to the images.

    Args:
        terminal: Object that prints results, status lines and progress.
        model: Folder of a saved recognizer, or name of an encoder.
        source: Folder of images, image file, or ``.txt`` file of paths.
        out: Folder for the calibrated recognizer. If None, the recognizer is not saved.
        names: Value of the option ``--labels``.
        settings: Settings of the run, as strings ``KEY=VALUE``.
        label_tree: Value of the option ``--label-tree``.

    Raises:
        UsageError: If there is a tree, and the recognizer is already calibrated.
    """
    paths, labels = find_images_from_input_options(source), parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.recognizer import resolve_model

    recognizer = resolve_model(model, labels, settings=settings, device=terminal.device)
    if label_tree is not None:
        if recognizer.calibration is not None:
            raise click.UsageError(
                f"--unlabelled with --label-tree requires a MODEL without calibration; {model} is "
                "calibrated. Give annotated images without --unlabelled, or remove --label-tree."
            )
        recognizer.label_tree = read_label_tree_option(label_tree, recognizer.names)
    fit_without_labels_on_input_options(terminal, recognizer, paths)
    if recognizer.calibration is None:
        text = calibrate_without_labels(terminal, recognizer, paths)
        value: dict[str, Any] = {"calibration": recognizer.calibrated_on}
    else:
        value, text = adapt_to_shift_in_calibrate_command(terminal, recognizer, paths)
    if out:
        recognizer.save(out)
    lines = [text, f"Saved in {out}." if out else NOT_SAVED]
    if label_tree is not None and recognizer.calibration is not None:
        assert recognizer.calibration.tree is not None  # of the calibration above
        lines.insert(1, label_tree_metrics_as_text(recognizer.calibration.tree))
    terminal.print_result({"recognizer": out, "images": len(paths), **value}, "\n".join(lines))


def adapt_to_shift_in_calibrate_command(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> tuple[dict[str, Any], str]:
    """Adapt a calibration to the label shift of images, and return the shifts as JSON and text."""
    with terminal.progress("Encoding") as progress:
        recognizer.adapt_to_shift(paths, progress=progress)
    calibration = recognizer.calibration
    shifts = dict(zip(recognizer.names, calibration.shift if calibration else (), strict=True))
    largest_shifts = sorted(shifts.items(), key=lambda pair: -abs(pair[1]))[:MAX_SHIFTS]
    rows = [[name, f"{shift:+.2f}"] for name, shift in largest_shifts]
    text = [
        f"The calibration was adapted to {format_count(len(paths), 'image')}. The adaptation "
        "assumes that only the label frequencies changed.",
        format_terminal_table(["label", "change of the log-odds"], rows),
    ]
    return {"shift": shifts}, "\n".join(text)


def print_calibrate_command_result(
    terminal: Terminal,
    before: "Evaluation",
    after: "Evaluation",
    coverage: "LabelCoverage",
    calibration: "CalibrationRecord",
    check: "DtypeCheck | None",
    quantization: "QuantizationRecord | None",
    test: str | None,
    out: str | None,
) -> None:
    """Print the number of positives of each label, and the metrics before and after calibration.

    If rows of scores were used for the calibration, their probabilities are cross-fitted.

    Args:
        terminal: Object that prints results, status lines and progress.
        before: Evaluation before calibration.
        after: Evaluation of the same images after calibration.
        coverage: Number of positives of each label in the calibration dataset.
        calibration: Fitted calibration.
        check: Changes of the probabilities in bf16, or None if bf16 is not supported.
        quantization: Quality before and after the quantization to int8, or None for fp32.
        test: Value of the option ``--test``. If None, both evaluations use the calibration dataset.
        out: Folder of the saved recognizer. If None, the recognizer was not saved.
    """
    from surelabel.records.calibration_description import CROSS_FITTED

    evaluated_on = test or (
        "the calibration dataset, with cross-fitted probabilities"
        if CROSS_FITTED in (after.predictions.calibration or "")
        else "the calibration dataset, so the metrics are optimistic; give a test set with --test"
    )
    text = [
        format_terminal_table(["label", "positives"], list(coverage.positives.items())),
        "",
        format_metric_table({"before": before, "after": after}, CALIBRATION_METRICS),
        f"The metrics were computed on {evaluated_on}.",
        calibration_as_text(calibration),
        *([check.description] if check else []),
        *([quantization.description] if quantization else []),
        f"Labels with the fewest positives: {', '.join(coverage.rarest_labels)}. Annotate more "
        "images with these labels.",
        f"Saved in {out}." if out else NOT_SAVED,
    ]
    value = {
        "positives": coverage.positives,
        "rarest_labels": coverage.rarest_labels,
        "before": {"summary": before.summary, "noise_floor": before.noise_floor},
        "after": {"summary": after.summary, "noise_floor": after.noise_floor},
        "measured_on": evaluated_on,
        "calibration": calibration.description,
        "calibrator_log_losses": dict(calibration.log_losses),
        "label_tree": label_tree_metrics_as_json(calibration.tree),
        "bf16": None if check is None else asdict(check) | {"passes": check.passes},
        "int8": None if quantization is None else asdict(quantization),
        "recognizer": out,
    }
    terminal.print_result(value, "\n".join(text))
