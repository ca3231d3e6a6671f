"""``surelabel tag``: predict the labels of images."""

import time
from contextlib import ExitStack
from typing import Any

import click

from surelabel.cli.heat_maps import collect_heat_map_labels, heat_maps_option, write_heat_maps
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
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.tag_blocks import TagCounts, open_partial_tags, predict_tag_blocks
from surelabel.cli.tag_output import print_tag_summary, print_tags, write_tags
from surelabel.cli.terminal import Terminal, with_terminal_options


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
    "--uncertainty",
    type=click.Choice(["bernoulli_variance", "residual_error", "match_variance"]),
    help="Add the uncertainty of each label, in brackets after the probability.",
)
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
    uncertainty: str | None,
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
    from surelabel.data import find_images
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
    if uncertainty:
        recognizer.check_uncertainty(uncertainty)
    thresholds = (
        thresholds_of_operating_point_options(terminal, recognizer, point) if point else threshold
    )
    start, counts = time.perf_counter(), TagCounts()
    labels_to_render: dict[str, list[str]] = {}
    with ExitStack() as stack:
        partial = open_partial_tags(stack, recognizer, paths, out, uncertainty) if out else None
        with terminal.progress("Tagging") as progress:
            blocks = counts.count_blocks(
                predict_tag_blocks(
                    recognizer,
                    paths,
                    partial,
                    uncertainty=uncertainty,
                    workers=workers,
                    strict=strict,
                    progress=progress,
                )
            )
            if heat_maps:
                blocks = collect_heat_map_labels(blocks, labels_to_render, top_k)
            if terminal.as_json or not out:
                is_calibrated = recognizer.calibrated_on is not None
                print_tags(terminal, blocks, thresholds, top_k, is_calibrated=is_calibrated)
            else:
                for _ in blocks:
                    pass
        if partial is not None and out:
            write_tags(terminal, partial, out, spreadsheet_safe=spreadsheet_safe)
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
