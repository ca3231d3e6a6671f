"""``surelabel tag``: predict the labels of images."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.heat_maps import heat_maps_option, write_heat_maps
from surelabel.cli.input_options import (
    fit_without_labels_on_input_options,
    labels_input_option,
    method_input_options,
    model_input_option,
    parse_labels_input_option,
    run_overrides_from_input_options,
)
from surelabel.cli.operating_point_options import (
    operating_point_options,
    parse_operating_point_options,
    thresholds_of_operating_point_options,
)
from surelabel.cli.terminal import Terminal, validate_terminal_output_path, with_terminal_options

if TYPE_CHECKING:
    from surelabel.arrays import Array
    from surelabel.records import Predictions, SkippedImage


@click.command()
@click.argument("images", nargs=-1, required=True)
@labels_input_option
@model_input_option
@method_input_options
@click.option(
    "--template",
    metavar="TEXT",
    help='Prompt template: one, ensemble, or a text such as "a drawing of a {}".',
)
@click.option("--threshold", type=float, help="Minimum probability of a label. [0.5]")
@operating_point_options
@click.option("--top-k", type=int, help="Maximum number of labels per image.")
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    metavar="FILE.{parquet,csv,jsonl}",
    help="Write all labels of all images to a file; the suffix sets the format.",
)
@heat_maps_option
@click.option("--strict", is_flag=True, help="Stop with an error if an image cannot be read.")
@click.option("--workers", type=click.IntRange(0), help="Number of processes that decode images.")
@with_terminal_options
def tag(
    terminal: Terminal,
    images: tuple[str, ...],
    names: str | None,
    model: str,
    method: str | None,
    settings: tuple[str, ...],
    template: str | None,
    threshold: float | None,
    top_k: int | None,
    out: str | None,
    heat_maps: str | None,
    strict: bool,
    workers: int | None,
    **operating_points: Any,
) -> None:
    """Predict the labels of images, with probabilities.

    IMAGES are folders, image files, .txt files with one path per line, or - for paths on standard
    input. An operating point such as --precision 0.9 sets the thresholds and does not change
    probabilities. Operating points require a recognizer that was calibrated on 20 or more images.
    To resume an interrupted run, run the same command again.
    """
    from surelabel.data import find_images, write_predictions
    from surelabel.recognizer import check_recognizer_can_localize, resolve_model

    point = parse_operating_point_options(threshold, operating_points)
    check_tag_output_options(threshold, top_k, out, has_operating_point=point is not None)
    paths, labels = find_images(images), parse_labels_input_option(names)
    recognizer = resolve_model(
        model,
        labels,
        template=template,
        settings=run_overrides_from_input_options(settings, method__name=method),
        device=terminal.device,
    )
    if heat_maps:
        check_recognizer_can_localize(recognizer)
    fit_without_labels_on_input_options(terminal, recognizer, paths)
    thresholds = (
        thresholds_of_operating_point_options(terminal, recognizer, point) if point else threshold
    )
    start = time.perf_counter()
    with terminal.progress("Tagging") as progress:
        predictions = recognizer.predict(paths, workers=workers, strict=strict, progress=progress)
    seconds = time.perf_counter() - start
    if out:
        write_predictions(predictions, out)
        terminal.print_status(f"Written: {out}")
    if terminal.as_json or not out:
        print_tags(terminal, predictions, thresholds, top_k)
    if heat_maps:
        write_heat_maps(terminal, recognizer, predictions, heat_maps, top_k)
    print_tag_summary(terminal, predictions, seconds)


def check_tag_output_options(
    threshold: float | None, top_k: int | None, out: str | None, *, has_operating_point: bool
) -> None:
    """Check the options that select labels, before any image is read.

    Args:
        threshold: Value of the option ``--threshold``.
        top_k: Value of the option ``--top-k``.
        out: Value of the option ``--out``.
        has_operating_point: True if an operating point was given.

    Raises:
        UsageError: If ``--out`` is combined with an option that selects labels.
        InputError: If an option is out of range, or the suffix of ``out`` is unknown.
    """
    from surelabel.data import check_predictions_suffix
    from surelabel.recognizer import check_tagging_options

    if out:
        check_predictions_suffix(out)
        if threshold is not None or top_k is not None or has_operating_point:
            raise click.UsageError(
                "--out writes all labels, so it cannot be combined with --threshold, --top-k or "
                "an operating point such as --precision."
            )
    check_tagging_options(threshold=threshold, top_k=top_k)


def print_tags(
    terminal: Terminal,
    predictions: "Predictions",
    threshold: "float | Array | None",
    top_k: int | None,
) -> None:
    """Print the labels of each image.

    Args:
        terminal: Object that prints results, status lines and progress.
        predictions: Predictions of the images.
        threshold: Minimum probability, as one number for all labels or as an array ``(c,)`` with
            one number for each of c labels.
        top_k: Maximum number of labels per image. If ``threshold`` and ``top_k`` are None, labels
            with a calibrated probability of at least 0.5 are printed. If there are no calibrated
            probabilities, the five labels with the highest scores are printed.
    """
    from surelabel.recognizer import select_tags

    if threshold is None and top_k is None:
        threshold, top_k = (0.5, None) if predictions.calibration else (None, 5)
    if threshold is None and not predictions.calibration:
        terminal.print_status(
            f"These scores are not calibrated and only rank labels, so the first {top_k} labels "
            "are printed. Run `surelabel calibrate` to fit a calibrator on annotated images or, "
            "less reliably, on images without labels (--unlabelled)."
        )
    tags = select_tags(predictions, threshold=threshold, top_k=top_k)
    pairs = list(zip(predictions.paths, tags, strict=True))
    terminal.print_result(
        [{"path": path, "tags": image_tags} for path, image_tags in pairs],
        "\n".join(f"{path}: {format_tags(image_tags)}" for path, image_tags in pairs),
    )


def format_tags(tags: list[dict[str, Any]]) -> str:
    """Format tags as ``lion 0.97, bear 0.62``, or as a dash if there are no tags."""
    texts = []
    for item in tags:
        score = item["score"] if item["probability"] is None else item["probability"]
        texts.append(f"{item['label']} {score:.2f}")
    return ", ".join(texts) or "-"


def print_tag_summary(terminal: Terminal, predictions: "Predictions", seconds: float) -> None:
    """Print the number of images per second, and the images that were skipped.

    Args:
        terminal: Object that prints results, status lines and progress.
        predictions: Predictions of the images.
        seconds: Duration of tagging in seconds.
    """
    n_images, stats = len(predictions) + len(predictions.skipped), predictions.encoding_stats
    if stats:
        terminal.print_status(
            f"{n_images} images in {seconds:.1f} s, {n_images / seconds:.0f} per second: decoding "
            f"{stats.decode_seconds:.1f} s, encoder {stats.model_seconds:.1f} s; "
            f"{stats.n_cached} were cached."
        )
    print_tag_skipped_images(predictions.skipped)


def print_tag_skipped_images(skipped: Sequence["SkippedImage"]) -> None:
    """Print a list of unreadable images on stderr, also if ``--quiet`` is given."""
    if skipped:
        images = "image" if len(skipped) == 1 else "images"
        click.echo(f"Skipped {len(skipped)} {images} that cannot be read:", err=True)
    for image in skipped:
        click.echo(f"  {image.path}: {image.reason}", err=True)
