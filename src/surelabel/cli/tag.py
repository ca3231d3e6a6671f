"""Define ``surelabel tag``, which predicts the labels of images."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.cluster_options import (
    cluster_options,
    parse_cluster_options,
    write_cluster_tags,
)
from surelabel.cli.engine_options import apply_engine_options, engine_options
from surelabel.cli.gallery import gallery_options
from surelabel.cli.heat_maps import collect_heat_map_labels, heat_maps_option, write_heat_maps
from surelabel.cli.input_options import (
    fit_without_labels_on_input_options,
    labels_input_option,
    load_unlabelled_from_input_options,
    max_image_memory_input_option,
    max_passes_input_option,
    method_input_options,
    model_input_option,
    parse_labels_input_option,
    run_overrides_from_input_options,
)
from surelabel.cli.operating_point_options import OperatingPointRange, operating_point_options
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.score_inputs import read_unlabelled_scores, score_table_options
from surelabel.cli.shard_options import shard_option
from surelabel.cli.tag_blocks import TagCounts, open_partial_tags, predict_tag_blocks
from surelabel.cli.tag_gallery import TagGallery, write_tag_gallery
from surelabel.cli.tag_options import (
    TagOptions,
    TagSelection,
    calibrate_selected_method_option,
    check_images_of_tag_options,
    check_recognizer_of_tag_options,
    check_recognizer_of_vectors,
    check_tag_options_of_vectors,
    parse_tag_options,
    selection_of_tag_options,
)
from surelabel.cli.tag_output import (
    print_no_shown_tag,
    print_tag_summary,
    print_tags,
    write_tags,
)
from surelabel.cli.tag_shard import write_tag_shard
from surelabel.cli.tag_sidecars import (
    DEFAULT_NAMING,
    check_sidecar_options,
    print_sidecar_changes,
    remove_tags_from_sidecars,
    sidecar_options,
    write_sidecars_of_blocks,
)
from surelabel.cli.tag_watch import parse_watch_options, watch_and_tag_folder, watch_options
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.unlabelled_calibration import (
    calibrate_uncalibrated_without_labels,
    calibrate_unlabelled_option,
)
from surelabel.recognizer_folder_checks import is_recognizer_path

if TYPE_CHECKING:
    from surelabel.cli.tag_blocks import TagSource
    from surelabel.recognizer import Recognizer
    from surelabel.report import HeatMapLabel


@click.command()
@click.argument("images", nargs=-1, required=True)
@labels_input_option
@model_input_option
@method_input_options
@max_passes_input_option
@click.option(
    "--template",
    metavar="TEXT",
    help='Prompt templates: "one", "ensemble", or a text with {} such as "a drawing of a {}".',
)
@engine_options
@calibrate_unlabelled_option
@click.option(
    "--threshold",
    type=OperatingPointRange(0, 1),
    help="Minimum probability of a label. [0.5]",
)
@operating_point_options
@click.option("--top-k", type=click.IntRange(1), help="Maximum number of labels per image.")
@click.option(
    "--uncertainty",
    type=click.Choice(["bernoulli_variance", "residual_error", "match_variance"]),
    help="Add the uncertainty of each label, in brackets after the probability.",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    metavar="FILE.{parquet,csv,jsonl}",
    help="Write the scores and probabilities of all labels for all images to a file. If an option "
    "selects labels, the file also contains the shown labels. The suffix sets the format.",
)
@click.option(
    "--format",
    type=click.Choice(["label-studio", "cvat", "fiftyone"]),
    help="Write the shown labels to --out as pre-annotations of an annotation tool: JSON tasks of "
    "Label Studio, XML of CVAT for images 1.1, or labels.json of FiftyOne.",
)
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="In a .csv file, put an apostrophe before each path that a spreadsheet program would "
    "execute as a formula.",
)
@shard_option
@cluster_options
@sidecar_options
@watch_options
@heat_maps_option
@gallery_options
@score_table_options
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
    max_passes: int | None,
    template: str | None,
    image_column: str | None,
    ignore: tuple[str, ...],
    **values: Any,
) -> None:
    """Predict the labels of images, with probabilities.

    IMAGES are folders, image files, .txt files with one path per line, or - for paths on standard
    input. For a recognizer that was fitted on vectors, IMAGES is an .npz file with the array
    features, or a split of this file such as vectors.npz:test. For a recognizer that was calibrated
    or fitted on scores of another program, IMAGES is scores:FILE. An operating point such as
    --precision 0.9 sets the thresholds and does not change probabilities. Operating points require
    a recognizer that was calibrated on 20 or more images. To resume an interrupted run, run the
    same command again. With --out, the folder FILE.partial contains the finished part of the run
    until FILE is written. With --shard, --out is a folder, which other commands accept in place of
    a file. To join the folders of several machines, copy all files into one folder. With --cluster,
    --out is also a folder, to which all machines must have access.

    With --watch, IMAGES is one folder. Its images are tagged when they arrive or change, and the
    tags are written to --index, to --sidecar, or to standard output. Ctrl-C stops the command.
    """
    from surelabel.data import check_sidecars, find_images

    watch = parse_watch_options(values, images)
    check_sidecar_options(values)
    if values.pop("remove"):
        remove_tags_from_sidecars(terminal, find_images(images), values["sidecar_name"])
        return

    engine, dtype = values.pop("engine"), values.pop("dtype")
    cluster = parse_cluster_options(values)
    options = parse_tag_options(values)
    overrides = run_overrides_from_input_options(settings, method__name=method)
    if watch is not None:
        watch_and_tag_folder(
            terminal,
            watch,
            options,
            model=model,
            labels=parse_labels_input_option(names),
            template=template,
            settings=overrides,
            max_passes=max_passes,
            engine=engine,
            dtype=dtype,
        )
        return
    scores = read_unlabelled_scores(images, model, image_column, ignore)
    source = load_unlabelled_from_input_options(images) if scores is None else scores
    labels = parse_labels_input_option(names)
    if not isinstance(source, list):
        check_tag_options_of_vectors(options, images[0])
    else:
        check_images_of_tag_options(source, options)
        if options.sidecar:
            check_sidecars(source, options.sidecar_name or DEFAULT_NAMING)
    terminal.print_import_status()

    from surelabel.config import method_settings_of_run
    from surelabel.recognizer import resolve_model
    from surelabel.recognizer.label_free_methods import default_max_passes

    has_method = bool(method_settings_of_run(overrides=overrides))
    n_images = len(source) if isinstance(source, list) else 0
    if max_passes is None and not has_method and not is_recognizer_path(model):
        max_passes = default_max_passes(n_images)
    recognizer = resolve_model(
        model,
        labels,
        template=template,
        settings=overrides,
        max_passes=max_passes,
        n_images=n_images,
        device=terminal.device,
    )
    recognizer = apply_engine_options(recognizer, engine, dtype)
    if not isinstance(source, list):
        check_recognizer_of_vectors(recognizer, images[0])
    elif not has_method and not is_recognizer_path(model):
        options = calibrate_selected_method_option(terminal, recognizer, options, len(source))
    check_recognizer_of_tag_options(recognizer, options)
    fit_without_labels_on_input_options(terminal, recognizer, source)
    if options.calibrate_unlabelled and isinstance(source, list):
        text = calibrate_uncalibrated_without_labels(terminal, recognizer, source)
        terminal.print_status(text)
    if options.uncertainty:
        recognizer.check_uncertainty(options.uncertainty)
    if cluster is not None:
        write_cluster_tags(terminal, recognizer, source, cluster)
        return
    selection = selection_of_tag_options(terminal, recognizer, options)
    if options.shard is not None and isinstance(source, list):
        write_tag_shard(terminal, recognizer, source, options, selection)
        return
    write_tag_outputs(terminal, recognizer, source, options, selection)


def write_tag_outputs(
    terminal: Terminal,
    recognizer: "Recognizer",
    source: "TagSource",
    options: TagOptions,
    selection: TagSelection,
) -> None:
    """Predict the labels of images block by block, and write or print all outputs of ``tag``.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        source: Paths of the images, or vectors.
        options: Options of ``tag``.
        selection: Selection of the labels that are shown.

    Raises:
        DataError: If no image can be read, if ``options.strict`` is True and an image cannot be
            read, or if an output cannot be written.
    """
    from surelabel.data import SidecarChanges
    from surelabel.recognizer.vector_normalization import row_noun

    start, counts, sidecar_changes = (
        time.perf_counter(),
        TagCounts(row_noun(recognizer.encoder)),
        SidecarChanges(),
    )
    labels_to_render: dict[str, list[HeatMapLabel]] = {}
    gallery = TagGallery()
    with ExitStack() as stack:
        partial = open_partial_tags(stack, recognizer, source, options) if options.out else None
        with terminal.progress("Tagging") as progress:
            blocks = counts.count_blocks(
                predict_tag_blocks(recognizer, source, partial, options, progress), selection
            )
            if options.sidecar:
                naming = options.sidecar_name or DEFAULT_NAMING
                blocks = write_sidecars_of_blocks(blocks, selection, naming, sidecar_changes)
            if options.heat_maps:
                blocks = collect_heat_map_labels(
                    blocks,
                    labels_to_render,
                    threshold=selection.threshold,
                    top_k=options.top_k,
                    label_tree=selection.label_tree,
                )
            if options.gallery:
                blocks = gallery.collect_blocks(blocks, selection)
            if terminal.as_json or not options.out:
                print_tags(terminal, blocks, selection)
            else:
                for _ in blocks:
                    pass
        if partial is not None:
            paths = source if isinstance(source, Sequence) else source.paths
            write_tags(terminal, partial, paths, options, selection)
    seconds = time.perf_counter() - start
    if options.heat_maps:
        write_heat_maps(terminal, recognizer, labels_to_render, options.heat_maps)
    if options.gallery:
        write_tag_gallery(terminal, recognizer, gallery, options, selection)
    print_tag_summary(terminal, counts, seconds)
    if terminal.as_json or options.shows_labels:
        print_no_shown_tag(terminal, counts, selection)
    if options.sidecar:
        print_sidecar_changes(terminal, sidecar_changes)
