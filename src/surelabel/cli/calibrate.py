"""``surelabel calibrate``: fit a calibrator, or adapt a calibration to unlabelled images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    find_unlabelled_images,
    fit_without_labels,
    images_root_option,
    labels_option,
    list_skipped_images,
    load_dataset,
    method_options,
    parse_labels,
    run_overrides,
)
from surelabel.cli.metric_tables import CALIBRATION_METRICS, format_metric_table
from surelabel.cli.tag import print_skipped_images
from surelabel.cli.terminal import (
    Terminal,
    format_table,
    validate_output_folder,
    with_terminal_options,
)

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, LabelCoverage
    from surelabel.recognizer import Recognizer

MAX_SHIFTS = 10  # labels with the largest change that are printed
NOT_VERIFIED = (
    "Not verified: no labels were available. Run `surelabel evaluate` on an annotated dataset to "
    "measure the calibration error."
)
NOT_SAVED = "The result was not saved; --out FOLDER saves it."


@click.command()
@click.argument("model")
@click.argument("dataset")
@click.option(
    "--out",
    callback=validate_output_folder,
    metavar="FOLDER",
    help="Folder for the calibrated recognizer.",
)
@click.option("--test", metavar="DATASET", help="Another dataset to evaluate on.")
@click.option(
    "--unlabelled",
    is_flag=True,
    help="Calibrate without labels. DATASET is a folder of images, or a .txt file of paths. A "
    "recognizer that is calibrated already is adapted to the label frequencies of these images.",
)
@method_options
@images_root_option
@labels_option
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
    names: str | None,
) -> None:
    """Fit a calibrator on held-out annotated images.

    MODEL is a saved recognizer or an encoder. DATASET contains annotated images that were not
    used for fitting: a label file, or a split of a collection such as scenes-80:validation. The
    result includes the labels with the fewest positives, which need more annotated images.
    """
    from surelabel.evaluation import measure_label_coverage
    from surelabel.recognizer import check_output_folder, predict_and_evaluate, resolve_model

    if out:
        check_output_folder(out)
    overrides = run_overrides(settings, method__name=method)
    if unlabelled:
        if test or images_root:
            raise click.UsageError("--unlabelled cannot be combined with --test or --images-root.")
        calibrate_unlabelled(terminal, model, dataset, out, names, overrides)
        return
    held_out = load_dataset(dataset, images_root)
    test_set = load_dataset(test, images_root) if test else held_out
    recognizer = resolve_model(
        model,
        parse_labels(names),
        default_names=held_out.names,
        settings=overrides,
        device=terminal.device,
    )
    fit_without_labels(terminal, recognizer, held_out)
    with terminal.progress("Encoding") as progress:
        before = predict_and_evaluate(recognizer, test_set, progress=progress)
    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(held_out, progress=progress)
    if out:
        recognizer.save(out)
    coverage = measure_label_coverage(recognizer.align_labels(held_out))
    after = predict_and_evaluate(recognizer, test_set)
    print_calibration_change(terminal, before, after, coverage, test, out)
    skipped = list_skipped_images(recognizer, held_out) if test else ()
    print_skipped_images(list(dict.fromkeys([*before.predictions.skipped, *skipped])))


def calibrate_unlabelled(
    terminal: Terminal,
    model: str,
    source: str,
    out: str | None,
    names: str | None,
    settings: Sequence[str],
) -> None:
    """Calibrate a recognizer on unlabelled images, or adapt its calibration to them.

    Args:
        terminal: Output of the command.
        model: Saved recognizer or encoder.
        source: Folder of images, image, or file of paths.
        out: Folder for the result; None does not save it.
        names: Value of ``--labels``.
        settings: Settings of the run.
    """
    from surelabel.recognizer import resolve_model

    paths = find_unlabelled_images(source)
    recognizer = resolve_model(
        model, parse_labels(names), settings=settings, device=terminal.device
    )
    fit_without_labels(terminal, recognizer, paths)
    if recognizer.calibrated_on is None:
        value, text = calibrate_on_unlabelled_images(terminal, recognizer, paths)
    else:
        value, text = adapt_to_unlabelled_images(terminal, recognizer, paths)
    if out:
        recognizer.save(out)
    saved = f"Saved in {out}." if out else NOT_SAVED
    terminal.print_result({"recognizer": out, "images": len(paths), **value}, f"{text}\n{saved}")


def calibrate_on_unlabelled_images(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> tuple[dict[str, Any], str]:
    """Calibrate a recognizer on unlabelled images; return the calibration as JSON and as text."""
    from surelabel.records import Images

    with terminal.progress("Calibrating") as progress:
        recognizer.calibrate(Images(paths), progress=progress)
    description = recognizer.calibrated_on
    return {"calibration": description}, f"Calibrated: {description}.\n{NOT_VERIFIED}"


def adapt_to_unlabelled_images(
    terminal: Terminal, recognizer: "Recognizer", paths: list[str]
) -> tuple[dict[str, Any], str]:
    """Adapt a calibration to the label shift of images; return the shifts as JSON and as text."""
    with terminal.progress("Encoding") as progress:
        recognizer.adapt_to_shift(paths, progress=progress)
    calibration = recognizer.calibration
    shifts = dict(zip(recognizer.names, calibration.shift if calibration else (), strict=True))
    largest_shifts = sorted(shifts.items(), key=lambda pair: -abs(pair[1]))[:MAX_SHIFTS]
    rows = [[name, f"{shift:+.2f}"] for name, shift in largest_shifts]
    text = [
        f"Adapted to {len(paths)} images, assuming that only the label frequencies changed.",
        format_table(["label", "change of the log-odds"], rows),
    ]
    return {"shift": shifts}, "\n".join(text)


def print_calibration_change(
    terminal: Terminal,
    before: "Evaluation",
    after: "Evaluation",
    coverage: "LabelCoverage",
    test: str | None,
    out: str | None,
) -> None:
    """Print the positives of each label, and the metrics before and after calibration.

    Args:
        terminal: Output of the command.
        before: Evaluation before calibration.
        after: Evaluation of the same images after calibration.
        coverage: Positives of each label in the calibration dataset.
        test: Value of ``--test``; None if both evaluations use the calibration dataset.
        out: Folder of the saved recognizer; None if it was not saved.
    """
    evaluated_on = test or (
        "the calibration dataset, so the metrics are optimistic; give another with --test DATASET"
    )
    text = [
        format_table(["label", "positives"], list(coverage.positives.items())),
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
