"""``surelabel tag``: predict the labels of images."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.heat_maps import heat_maps_option, select_heat_map_labels, write_heat_maps
from surelabel.cli.input_options import (
    fit_without_labels_on_input_options,
    labels_input_option,
    max_image_memory_input_option,
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
from surelabel.cli.tag_blocks import TagCounts, open_partial_tags, predict_tag_blocks
from surelabel.cli.terminal import (
    Terminal,
    escape_terminal_line,
    validate_terminal_output_path,
    with_terminal_options,
)

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
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Prefix paths in a .csv file that a spreadsheet would execute as a formula with '.",
)
@heat_maps_option
@click.option("--strict", is_flag=True, help="Stop with an error if an image cannot be read.")
@click.option("--workers", type=click.IntRange(0), help="Number of processes that decode images.")
@max_image_memory_input_option
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
    spreadsheet_safe: bool,
    heat_maps: str | None,
    strict: bool,
    workers: int | None,
    **operating_points: Any,
) -> None:
    """Predict the labels of images, with probabilities.

    IMAGES are folders, image files, .txt files with one path per line, or - for paths on standard
    input. An operating point such as --precision 0.9 sets the thresholds and does not change
    probabilities. Operating points require a recognizer that was calibrated on 20 or more images.
    To resume an interrupted run, run the same command again; with --out, the folder FILE.partial
    holds the finished part of the run until FILE is written.
    """
    from surelabel.data import find_images, write_prediction_blocks
    from surelabel.recognizer import check_recognizer_can_localize, resolve_model

    point = parse_operating_point_options(threshold, operating_points)
    check_tag_output_options(threshold, top_k, out, has_operating_point=point is not None)
    check_spreadsheet_safe_tag_option(out, spreadsheet_safe=spreadsheet_safe)
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
    start, counts = time.perf_counter(), TagCounts()
    labels_to_render: dict[str, list[str]] = {}

    def count_blocks(blocks: "Iterator[Predictions]") -> "Iterator[Predictions]":
        for block in blocks:
            counts.add(block)
            if heat_maps:
                labels_to_render.update(select_heat_map_labels(block, top_k))
            yield block

    with ExitStack() as stack:
        partial = open_partial_tags(stack, recognizer, paths, out) if out else None
        with terminal.progress("Tagging") as progress:
            blocks = count_blocks(
                predict_tag_blocks(
                    recognizer, paths, partial, workers=workers, strict=strict, progress=progress
                )
            )
            if terminal.as_json or not out:
                is_calibrated = recognizer.calibrated_on is not None
                print_tags(terminal, blocks, thresholds, top_k, is_calibrated=is_calibrated)
            else:
                for _ in blocks:
                    pass
        if partial is not None and out is not None:
            write_prediction_blocks(
                partial.finished_blocks(),
                out,
                skipped=partial.skipped,
                spreadsheet_safe=spreadsheet_safe,
            )
            terminal.print_status(f"Written: {out}")
    seconds = time.perf_counter() - start
    if heat_maps:
        write_heat_maps(terminal, recognizer, labels_to_render, heat_maps)
    print_tag_summary(terminal, counts, seconds)


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


def check_spreadsheet_safe_tag_option(out: str | None, *, spreadsheet_safe: bool) -> None:
    """Check that ``--spreadsheet-safe`` is given with a CSV file only, before any image is read.

    Args:
        out: Value of the option ``--out``.
        spreadsheet_safe: Value of the option ``--spreadsheet-safe``.

    Raises:
        UsageError: If the option is given, but no CSV file is written.
    """
    if spreadsheet_safe and not (out or "").lower().endswith(".csv"):
        raise click.UsageError(
            f"--spreadsheet-safe needs --out FILE.csv; got {out or 'no file'}. Other formats are "
            "not executed."
        )


def print_tags(
    terminal: Terminal,
    blocks: "Iterable[Predictions]",
    threshold: "float | Array | None",
    top_k: int | None,
    *,
    is_calibrated: bool,
) -> None:
    """Print the labels of each image, as soon as a block of images is predicted.

    Args:
        terminal: Object that prints results, status lines and progress.
        blocks: Predictions of blocks of images.
        threshold: Minimum probability, as one number for all labels or as an array ``(c,)`` with
            one number for each of c labels.
        top_k: Maximum number of labels per image. If ``threshold`` and ``top_k`` are None, labels
            with a calibrated probability of at least 0.5 are printed. If there are no calibrated
            probabilities, the five labels with the highest scores are printed.
        is_calibrated: Whether the predictions have calibrated probabilities.
    """
    if threshold is None and top_k is None:
        threshold, top_k = (0.5, None) if is_calibrated else (None, 5)
    if threshold is None and not is_calibrated:
        terminal.print_status(
            f"These scores are not calibrated and only rank labels, so the first {top_k} labels "
            "are printed. Run `surelabel calibrate` to fit a calibrator on annotated images or, "
            "less reliably, on images without labels (--unlabelled)."
        )
    terminal.print_result_batches(_tag_results(block, threshold, top_k) for block in blocks)


def _tag_results(
    block: "Predictions", threshold: "float | Array | None", top_k: int | None
) -> list[tuple[dict[str, Any], str]]:
    """Return the result of each image for JSON, and as a line of text."""
    from surelabel.recognizer import select_tags

    tags = select_tags(block, threshold=threshold, top_k=top_k)
    return [
        (
            {"path": path, "tags": image_tags},
            f"{escape_terminal_line(path)}: {format_tags(image_tags)}",
        )
        for path, image_tags in zip(block.paths, tags, strict=True)
    ]


def format_tags(tags: list[dict[str, Any]]) -> str:
    """Format tags as ``lion 0.97, bear 0.62``, or as a dash if there are no tags."""
    texts = []
    for item in tags:
        score = item["score"] if item["probability"] is None else item["probability"]
        texts.append(f"{escape_terminal_line(item['label'])} {score:.2f}")
    return ", ".join(texts) or "-"


def print_tag_summary(terminal: Terminal, counts: TagCounts, seconds: float) -> None:
    """Print the number of images per second, and the images that were skipped.

    Args:
        terminal: Object that prints results, status lines and progress.
        counts: Total counts of the run.
        seconds: Duration of tagging in seconds.
    """
    n_new = counts.n_images - counts.n_resumed
    resumed = f"; {counts.n_resumed} were predicted before an interruption"
    terminal.print_status(
        f"{counts.n_images} images in {seconds:.1f} s, {n_new / seconds:.0f} per second: decoding "
        f"{counts.decode_seconds:.1f} s, encoder {counts.model_seconds:.1f} s; "
        f"{counts.n_cached} were cached{resumed if counts.n_resumed else ''}."
    )
    print_tag_skipped_images(counts.skipped)


def print_tag_skipped_images(skipped: Sequence["SkippedImage"]) -> None:
    """Print a list of unreadable images on stderr, also if ``--quiet`` is given."""
    if skipped:
        images = "image" if len(skipped) == 1 else "images"
        click.echo(f"Skipped {len(skipped)} {images} that cannot be read:", err=True)
    for image in skipped:
        path, reason = escape_terminal_line(image.path), escape_terminal_line(image.reason)
        click.echo(f"  {path}: {reason}", err=True)
