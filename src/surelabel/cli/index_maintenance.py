"""Define the options of ``surelabel index`` that change an index without tagging images."""

from typing import TYPE_CHECKING

import click

from surelabel.cli.given_options import check_options_are_not_given
from surelabel.cli.input_options import parse_labels_input_option
from surelabel.cli.operating_point_options import OperatingPointRange
from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.retrieval import Index

TAGGING_OPTIONS = {  # of index, besides --model and --labels
    *("calibrate_unlabelled", "image_column", "ignore", "cluster", "cluster_workers"),
    *("max_image_memory", "engine", "dtype"),
}


def index_maintenance_options(function: Command) -> Command:
    """Add the options ``--compact``, ``--drop-below``, ``--rescore`` and ``--ann``."""
    function = click.option(
        "--ann",
        is_flag=True,
        help="Build files for approximate nearest-neighbour search with like:, for an index of "
        "more than 1,000,000 images. This requires the package usearch. Give no IMAGES.",
    )(function)
    function = click.option(
        "--rescore",
        is_flag=True,
        help="Compute the probabilities of all indexed images again from their stored vectors, "
        "for a newly calibrated --model or for other --labels. Give no IMAGES.",
    )(function)
    function = click.option(
        "--drop-below",
        type=OperatingPointRange(0, 0.5, min_open=True),
        metavar="P",
        help="With --compact, store only probabilities of at least P, at most 0.5, so that the "
        "index takes less space. Smaller probabilities are replaced by their mean for each label. "
        "Searches are then approximate.",
    )(function)
    return click.option(
        "--compact",
        is_flag=True,
        help="Rewrite the index in the current format, without removed images. Dates and sizes of "
        "images are added to an index of an earlier version. Give no IMAGES.",
    )(function)


def maintain_index(
    terminal: Terminal,
    folder: str,
    *,
    root: str | None,
    is_compaction: bool,
    is_rescoring: bool,
    is_ann: bool,
    drop_below: float | None,
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
        drop_below: Value of ``--drop-below``, or None.
        model: Recognizer for rescoring. If None, the recognizer that is recorded in the index.
        labels: Value of ``--labels`` for rescoring, or None.

    Raises:
        UsageError: If an option has no effect.
        MissingPart: If the package for approximate search is not installed.
        InputError, ConfigError, NotFitted: If the recognizer cannot rescore the index.
        DataError: If the index is damaged or cannot be written.
    """
    if not is_rescoring:
        check_options_are_not_given(
            {"model", "names"}, "can be given only with --rescore or IMAGES."
        )
    name = "--rescore" if is_rescoring else "--compact" if is_compaction else "--ann"
    check_options_are_not_given(TAGGING_OPTIONS, f"cannot be combined with {name}.")

    from surelabel.retrieval import Index
    from surelabel.retrieval.hnsw_graph import check_usearch_is_installed

    if is_ann:
        check_usearch_is_installed()
    index = Index.open(folder, root=root)
    n_bytes = index.n_bytes
    if is_rescoring:
        index = _rescore(terminal, index, root, model, labels)
    if is_compaction:
        index.compact(drop_below=drop_below)
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
    values |= {"drop_below": index.drop_below, "stored_share": index.stored_share}
    values |= {"bytes_before": n_bytes, "bytes": index.n_bytes}
    text = f"{folder} was {what}. The index contains {counts}."
    if drop_below is not None:
        text += (
            f"\n{describe_drop_below(index.drop_below, index.stored_share)} Size of the index: "
            f"{n_bytes:,} bytes before, {index.n_bytes:,} bytes after."
        )
    if is_ann:
        text += "\n" + describe_ann_recall(index.ann_recall)
    terminal.print_result(values, text)


def describe_drop_below(drop_below: float | None, stored_share: float | None) -> str:
    """Return sentences on the sparse form of an index, and on the share of stored probabilities.

    Args:
        drop_below: Value of ``Index.drop_below``. If the index is empty, the value is None.
        stored_share: Value of ``Index.stored_share``, or None.
    """
    from surelabel.retrieval.search_approximation import describe_sparse_form

    if drop_below is None or stored_share is None:
        return "The index is empty."
    return (
        f"{describe_sparse_form(drop_below)} {100 * stored_share:.3g} % of the probabilities are "
        "stored."
    )


def describe_ann_recall(recall: float | None) -> str:
    """Return a sentence on the measured recall of an approximate search.

    Args:
        recall: Mean recall@100, or None if the index has no files for approximate search.
    """
    if recall is None:
        return "A search with like: compares all image vectors."
    return (
        f"A search with like: is approximate. For 100 sampled images of each shard, the mean "
        f"recall@100 is {recall:.3f}."
    )


def _rescore(
    terminal: Terminal, index: "Index", root: str | None, model: str | None, labels: str | None
) -> "Index":
    terminal.print_import_status()

    from surelabel.errors import InputError
    from surelabel.recognizer import (
        rescore_index,
        resolve_model,
        restore_calibration_for_indexing,
    )

    recorded = index.recognizer
    if recorded is None:
        raise InputError(
            f"--rescore requires an index that records its recognizer; {index.folder} records "
            "no recognizer. Run `surelabel index` once with the images and --model."
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
