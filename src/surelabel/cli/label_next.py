"""Define ``surelabel label-next``, which chooses the images to annotate next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    images_root_input_option,
    is_dataset_input_option,
    labels_input_option,
    load_dataset_from_input_options,
    max_image_memory_input_option,
    parse_labels_input_option,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_table_options import label_table_options, print_label_table_reading
from surelabel.cli.output_paths import (
    validate_terminal_model_path,
    validate_terminal_output_path,
)
from surelabel.cli.score_inputs import (
    PREFIX,
    check_no_score_options,
    is_score_input,
    read_score_input,
    score_kind_option,
    score_labels_argument,
)
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.errors import DataError
from surelabel.files import check_is_new_file

if TYPE_CHECKING:
    from surelabel.records import Images, LabelledFeatures, LabelledImages, LabelledScores

FORMATS = ("csv", "label-studio", "list")


@click.command("label-next")
@click.argument("dataset", callback=validate_terminal_input_paths)
@score_labels_argument
@score_kind_option
@click.option(
    "--pool",
    multiple=True,
    callback=validate_terminal_input_paths,
    metavar="IMAGES",
    help="Further images to choose from: a folder, an image file or a .txt file of paths. The "
    "option may be repeated.",
)
@click.option("--count", type=click.IntRange(1), required=True, help="Number of images to choose.")
@click.option(
    "--random-share",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Fraction of the chosen images that are sampled at random. Calibration, evaluation and "
    "guarantees use only images that were sampled at random.",
)
@click.option(
    "--annotated-at-random",
    is_flag=True,
    help="Declare that the annotated images are a random sample of DATASET and --pool. By default, "
    "annotated images of a table without the column chosen_by do not count as sampled at random.",
)
@click.option(
    "--out",
    required=True,
    callback=validate_terminal_output_path,
    metavar="FILE",
    help="New file for the result.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    default="csv",
    show_default=True,
    help="csv writes the whole table, with empty cells to fill. label-studio writes JSON tasks of "
    "the chosen images, and list writes the paths of the chosen images.",
)
@click.option(
    "--model",
    callback=validate_terminal_model_path,
    help="Encoder, or folder of a saved recognizer. With a saved recognizer, the Label Studio "
    "tasks contain the predicted probabilities. [tiny-vit]",
)
@images_root_input_option
@label_table_options
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def label_next(
    terminal: Terminal,
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    pool: tuple[str, ...],
    count: int,
    random_share: float,
    annotated_at_random: bool,
    out: str,
    file_format: str,
    model: str | None,
    images_root: str | None,
    table_options: dict[str, Any],
    names: str | None,
) -> None:
    """Choose the images to annotate next.

    DATASET contains annotated images in a format of `surelabel fit`. DATASET can also be a folder
    of images without labels; then give --labels. Images of DATASET whose targets are all unknown,
    and images of --pool, can be chosen. Some images are chosen at random. The others are chosen by
    their image vectors, to represent the images that are far from annotated images. If no image has
    labels, all images are chosen at random.

    In the result, the column chosen_by states how each image was chosen. The column
    inclusion_probability contains the sampling probability of each random image. Fill the empty
    cells with 1 or 0, and give the file to `surelabel fit`, or to `surelabel label-next` with the
    same --pool and --seed.

    For scores of another program, give scores:FILE as DATASET, the annotations of some of its
    images as LABELS, and --as.
    """
    check_is_new_file(out)
    labels = parse_labels_input_option(names)
    options = (images_root, table_options)
    if is_score_input(dataset):
        data: Any = load_scores_to_label(dataset, score_labels, model, score_kind, *options)
    else:
        check_no_score_options(score_kind, score_labels)
        data = load_rows_to_label(dataset, *options)
    print_label_table_reading(terminal, dataset, data)
    terminal.print_import_status()

    from surelabel.recognizer import label_next as choose_rows

    with terminal.progress("Encoding") as progress:
        batch = choose_rows(
            data,
            count=count,
            pool=find_pool(pool),
            names=labels,
            random_share=random_share,
            annotated_at_random=annotated_at_random,
            model=model,
            seed=terminal.seed or 0,
            device=terminal.device,
            progress=progress,
        )
    writers = {"csv": batch.to_csv, "label-studio": batch.to_label_studio, "list": batch.to_list}
    writers[file_format](out)
    hint = " Fill the empty cells with 1 or 0." if file_format == "csv" else ""
    text = f"{batch.describe()}\nSaved in {out}.{hint}"
    terminal.print_result({"file": out, **batch.as_dict()}, text)


def find_pool(sources: Sequence[str]) -> list[str] | None:
    """Return the paths of the images of ``--pool``, or None without the option.

    Raises:
        DataError: If a source has labels or contains no images.
    """
    from surelabel.data import find_images

    if labelled := next(filter(is_dataset_input_option, sources), None):
        raise DataError(
            f"--pool requires images without labels: a folder, an image or a .txt file of paths; "
            f"got {labelled}. Give annotated images as DATASET."
        )
    return find_images(sources) if sources else None


def load_rows_to_label(
    dataset: str, images_root: str | None, table_options: Mapping[str, Any]
) -> "LabelledImages | LabelledFeatures | Images":
    """Return a dataset, or the images of a folder without labels.

    Args:
        dataset: Annotated dataset, folder of images, or ``.txt`` file of paths.
        images_root: Root of relative paths in an annotation file, or None.
        table_options: Options for the columns and cells of a table.

    Raises:
        DataError: If the dataset does not exist or cannot be read.
    """
    from surelabel.data import find_images
    from surelabel.records import Images

    path = Path(dataset)
    has_voc_files = path.is_dir() and next(path.glob("*.xml"), None) is not None
    if table_options or is_dataset_input_option(dataset) or has_voc_files:
        return load_dataset_from_input_options(dataset, images_root, table_options)
    return Images(find_images([dataset]))


def load_scores_to_label(
    source: str,
    labels: str | None,
    model: str | None,
    kind: str | None,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledScores":
    """Return all scores of ``scores:FILE``, with the labels of the annotated images.

    Args:
        source: ``scores:FILE``.
        labels: Annotations of some of the scored images. If None, no image has labels.
        model: Folder of a saved recognizer, or None.
        kind: Value of the option ``--as``, or None.
        images_root: Root of image paths in the annotations, or None.
        table_options: Options for the columns and cells of tables.

    Raises:
        InputError: If the kind is missing, or if no image has scores and labels.
        DataError: If a file cannot be read.
    """
    from surelabel.data import add_labels_to_scores, read_label_entries

    scores = read_score_input(source, model or source, kind, table_options)
    if labels is None:
        return scores
    labelled = read_label_entries(labels, images_root=images_root, **table_options)
    return add_labels_to_scores(scores, labelled, source=source.removeprefix(PREFIX))
