"""``surelabel calibrate``: fit a calibrator, or adapt a calibration to unlabelled images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    find_images_from_input_options,
    fit_without_labels_on_input_options,
    images_root_input_option,
    labels_input_option,
    load_dataset_from_input_options,
    max_image_memory_input_option,
    method_input_options,
    parse_labels_input_option,
    run_overrides_from_input_options,
    skipped_images_of_input_options,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_table_options import (
    check_no_label_table_options,
    label_table_options,
    print_label_table_reading,
)
from surelabel.cli.metric_tables import CALIBRATION_METRICS, format_metric_table
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_folder
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.cli.unlabelled_calibration import calibrate_without_labels
from surelabel.counts import format_count
from surelabel.recognizer_folders import check_saved_recognizer_folder

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, LabelCoverage
    from surelabel.recognizer import Recognizer

MAX_SHIFTS = 10  # labels with the largest change that are printed
NOT_SAVED = "The result was not saved; add --out FOLDER to save the result."


@click.command()
@click.argument("model", callback=validate_terminal_model_path)
@click.argument("dataset", callback=validate_terminal_input_paths)
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
@method_input_options
@images_root_input_option
@label_table_options
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def calibrate(
    terminal: Terminal,
    model: str,
    dataset: str,
    out: str | None,
    test: str | None,
    unlabelled: bool,
    method: str | None,
    settings: tuple[str, ...],
    images_root: str | None,
    table_options: dict[str, Any],
    names: str | None,
) -> None:
    """Fit a calibrator on held-out annotated images.

    MODEL is a saved recognizer or an encoder. DATASET contains annotated images that were not
    used for fitting: an annotation file, or a split of a collection such as scenes-80:validation.
    The result includes the labels with the fewest positives, which need more annotated images.
    """
    if out:
        check_saved_recognizer_folder(out)
    overrides = run_overrides_from_input_options(settings, method__name=method)
    if unlabelled:
        check_no_label_table_options(table_options, dataset)
        if test or images_root:
            raise click.UsageError("--unlabelled cannot be combined with --test or --images-root.")
        run_unlabelled_calibrate_command(terminal, model, dataset, out, names, overrides)
        return
    held_out = load_dataset_from_input_options(dataset, images_root, table_options)
    test_set = held_out
    if test:
        test_set = load_dataset_from_input_options(test, images_root, table_options)
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.evaluation import measure_label_coverage
    from surelabel.recognizer import basic_evaluation_run, resolve_model

    recognizer = resolve_model(
        model,
        labels,
        default_names=held_out.names,
        settings=overrides,
        device=terminal.device,
    )
    print_label_table_reading(terminal, dataset, held_out)
    if test:
        print_label_table_reading(terminal, test, test_set)
    fit_without_labels_on_input_options(terminal, recognizer, held_out)
    with terminal.progress("Encoding") as progress:
        before = basic_evaluation_run(recognizer, test_set, progress=progress)
    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(held_out, progress=progress)
    if out:
        recognizer.save(out)
    coverage = measure_label_coverage(recognizer.align_labels(held_out))
    after = basic_evaluation_run(recognizer, test_set)
    print_calibrate_command_result(terminal, before, after, coverage, test, out)
    skipped = skipped_images_of_input_options(recognizer, held_out) if test else ()
    print_tag_skipped_images(list(dict.fromkeys([*before.predictions.skipped, *skipped])))


def run_unlabelled_calibrate_command(
    terminal: Terminal,
    model: str,
    source: str,
    out: str | None,
    names: str | None,
    settings: Sequence[str],
) -> None:
    """Calibrate a recognizer on unlabelled images, or adapt an existing calibration to the images.

    Args:
        terminal: Object that prints results, status lines and progress.
        model: Folder of a saved recognizer, or name of an encoder.
        source: Folder of images, image file, or ``.txt`` file of paths.
        out: Folder for the calibrated recognizer. If None, the recognizer is not saved.
        names: Value of the option ``--labels``.
        settings: Settings of the run, as strings ``KEY=VALUE``.
    """
    paths, labels = find_images_from_input_options(source), parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.recognizer import resolve_model

    recognizer = resolve_model(model, labels, settings=settings, device=terminal.device)
    fit_without_labels_on_input_options(terminal, recognizer, paths)
    if recognizer.calibration is None:
        text = calibrate_without_labels(terminal, recognizer, paths)
        value: dict[str, Any] = {"calibration": recognizer.calibrated_on}
    else:
        value, text = adapt_to_shift_in_calibrate_command(terminal, recognizer, paths)
    if out:
        recognizer.save(out)
    saved = f"Saved in {out}." if out else NOT_SAVED
    terminal.print_result({"recognizer": out, "images": len(paths), **value}, f"{text}\n{saved}")


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
        f"The calibration was adapted to {format_count(len(paths), 'image')}, assuming that only "
        "the label frequencies changed.",
        format_terminal_table(["label", "change of the log-odds"], rows),
    ]
    return {"shift": shifts}, "\n".join(text)


def print_calibrate_command_result(
    terminal: Terminal,
    before: "Evaluation",
    after: "Evaluation",
    coverage: "LabelCoverage",
    test: str | None,
    out: str | None,
) -> None:
    """Print the number of positives of each label, and the metrics before and after calibration.

    Args:
        terminal: Object that prints results, status lines and progress.
        before: Evaluation before calibration.
        after: Evaluation of the same images after calibration.
        coverage: Number of positives of each label in the calibration dataset.
        test: Value of the option ``--test``. If None, both evaluations use the calibration dataset.
        out: Folder of the saved recognizer. If None, the recognizer was not saved.
    """
    evaluated_on = test or (
        "the calibration dataset, so the metrics are optimistic; give a test set with --test"
    )
    text = [
        format_terminal_table(["label", "positives"], list(coverage.positives.items())),
        "",
        format_metric_table({"before": before, "after": after}, CALIBRATION_METRICS),
        f"Evaluated on {evaluated_on}.",
        f"Labels with the fewest positives: {', '.join(coverage.rarest_labels)}. Annotate more "
        "images with these labels.",
        f"Saved in {out}." if out else NOT_SAVED,
    ]
    value = {
        "positives": coverage.positives,
        "label_next": coverage.rarest_labels,
        "before": {"summary": before.summary, "floor": before.noise_floor},
        "after": {"summary": after.summary, "floor": after.noise_floor},
        "measured_on": evaluated_on,
        "recognizer": out,
    }
    terminal.print_result(value, "\n".join(text))
