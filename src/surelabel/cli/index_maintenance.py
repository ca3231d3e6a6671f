"""Define the options of ``surelabel index`` that change an index without tagging images."""

from typing import TYPE_CHECKING

import click

from surelabel.cli.given_options import check_options_are_not_given
from surelabel.cli.input_options import parse_labels_input_option
from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.retrieval import Index

TAGGING_OPTIONS = {  # of index, besides --model and --labels
    *("calibrate_unlabelled", "image_column", "ignore", "cluster", "cluster_workers"),
    "max_image_memory",
}


def index_maintenance_options(function: Command) -> Command:
    """Add the options ``--compact``, ``--rescore`` and ``--ann``."""
    function = click.option(
        "--ann",
        is_flag=True,
        help="Build files for an approximate search with like:, for an index of more than "
        "1,000,000 images. Needs no IMAGES, and the package usearch.",
    )(function)
    function = click.option(
        "--rescore",
        is_flag=True,
        help="Compute the probabilities of all indexed images again, from their stored vectors, "
        "for example after a new calibration of --model or with other --labels. Needs no IMAGES.",
    )(function)
    return click.option(
        "--compact",
        is_flag=True,
        help="Write the index again in the current format, without removed images, and add dates "
        "and sizes of images to an index of an earlier version. Needs no IMAGES.",
    )(function)


def maintain_index(
    terminal: Terminal,
    folder: str,
    *,
    root: str | None,
    is_compaction: bool,
    is_rescoring: bool,
    is_ann: bool,
    model: str | None,
    labels: str | None,
) -> None:
    """Rescore or compact an index, or build files for approximate search, and print its sizes.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        root: Root folder of the images, or None.
        is_compaction: Whether the index is compacted.
        is_rescoring: Whether the index is rescored.
        is_ann: Whether files for approximate search are built, after the other changes.
        model: Recognizer for rescoring. If None, the recognizer that is recorded in the index.
        labels: Value of ``--labels`` for rescoring, or None.

    Raises:
        UsageError: If an option has no effect.
        MissingPart: If the package for approximate search is not installed.
        InputError, ConfigError, NotFitted: If the recognizer cannot rescore the index.
        DataError: If the index is damaged or cannot be written.
    """
    if not is_rescoring:
        check_options_are_not_given({"model", "names"}, "needs --rescore or IMAGES.")
    name = "--rescore" if is_rescoring else "--compact" if is_compaction else "--ann"
    check_options_are_not_given(TAGGING_OPTIONS, f"has no effect with {name}.")
    terminal.print_import_status()

    from surelabel.retrieval import Index

    index = Index.open(folder, root=root)
    if is_rescoring:
        index = _rescore(terminal, index, root, model, labels)
    if is_compaction:
        index.compact()
    if is_ann:
        with terminal.progress("Building") as progress:
            index.build_ann(progress)
    changes = {
        "rescored": is_rescoring,
        "compacted": is_compaction,
        "prepared for approximate search": is_ann,
    }
    what = " and ".join(verb for verb, is_done in changes.items() if is_done)
    counts = f"{format_count(len(index), 'image')} and {format_count(len(index.names), 'label')}"
    values = {"index": folder, "images": len(index), "labels": index.names}
    values |= {"calibration": index.calibration, "ann_recall": index.ann_recall}
    text = f"{folder} is {what}; it has {counts}."
    if is_ann:
        text += "\n" + describe_ann_recall(index.ann_recall)
    terminal.print_result(values, text)


def describe_ann_recall(recall: float | None) -> str:
    """Return a sentence on the measured recall of an approximate search.

    Args:
        recall: Mean recall@100, or None if the index has no files for approximate search.
    """
    if recall is None:
        return "like: searches all image vectors."
    return (
        f"like: is approximate: recall@100 is {recall:.3f}, the mean share of the 100 nearest "
        "images that are found, for 100 sampled images of each shard."
    )


def _rescore(
    terminal: Terminal, index: "Index", root: str | None, model: str | None, labels: str | None
) -> "Index":
    from surelabel.errors import InputError
    from surelabel.recognizer import (
        rescore_index,
        resolve_model,
        restore_calibration_for_indexing,
    )

    recorded = index.recognizer
    if recorded is None:
        raise InputError(
            f"--rescore needs the recognizer of {index.folder}, which the index does not record. "
            "Run `surelabel index` with its images and --model once."
        )
    names = parse_labels_input_option(labels)
    recognizer = resolve_model(
        model or recorded.model, default_names=recorded.labels, device=terminal.device
    )
    restore_calibration_for_indexing(index.folder, recognizer)
    if names is not None and list(names) != recognizer.names_with_aliases:
        recognizer = recognizer.with_names(names)
    with terminal.progress("Rescoring") as progress:
        return rescore_index(index.folder, recognizer, model=model, root=root, progress=progress)
