"""Options of ``surelabel index`` that change an index without tagging images."""

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
    """Add the options ``--compact`` and ``--rescore``."""
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
    model: str | None,
    labels: str | None,
) -> None:
    """Compact or rescore an index, and print the numbers of its images and labels.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        root: Root folder of the images, or None.
        is_compaction: Whether the index is compacted.
        is_rescoring: Whether the index is rescored.
        model: Recognizer for rescoring. If None, the recorded one.
        labels: Value of ``--labels`` for rescoring, or None.

    Raises:
        UsageError: If an option has no effect.
        InputError, ConfigError, NotFitted: If the recognizer cannot rescore the index.
        DataError: If the index is damaged or cannot be written.
    """
    if not is_rescoring:
        check_options_are_not_given({"model", "names"}, "needs --rescore or IMAGES.")
    name = "--rescore" if is_rescoring else "--compact"
    check_options_are_not_given(TAGGING_OPTIONS, f"has no effect with {name}.")
    terminal.print_import_status()

    from surelabel.retrieval import Index

    index = Index.open(folder, root=root)
    if is_rescoring:
        index = _rescore(terminal, index, root, model, labels)
    if is_compaction:
        index.compact()
    what = " and ".join(
        verb
        for verb, is_done in (("rescored", is_rescoring), ("compacted", is_compaction))
        if is_done
    )
    counts = f"{format_count(len(index), 'image')} and {format_count(len(index.names), 'label')}"
    values = {"index": folder, "images": len(index), "labels": index.names}
    values |= {"calibration": index.calibration}
    terminal.print_result(values, f"{folder} is {what}; it has {counts}.")


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
