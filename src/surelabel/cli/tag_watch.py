"""Define the option ``--watch`` of ``tag``, which tags the images of a folder as they arrive."""

import os
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.engine_options import apply_engine_options
from surelabel.cli.given_options import check_options_are_not_given
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.tag_options import (
    TagOptions,
    check_recognizer_of_tag_options,
    selection_of_tag_options,
)
from surelabel.cli.tag_output import with_shown_labels
from surelabel.cli.tag_sidecars import DEFAULT_NAMING
from surelabel.cli.tag_watch_output import WatchOutput
from surelabel.cli.terminal import Command, Terminal
from surelabel.errors import ConfigError

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

DEFAULT_INTERVAL, MIN_INTERVAL, MAX_INTERVAL = 5.0, 0.5, 86_400  # seconds
FINITE_OPTIONS = {  # options of outputs that need the last image, or of other inputs
    *("out", "format", "spreadsheet_safe", "shard", "cluster", "cluster_workers", "remove"),
    *("heat_maps", "gallery", "open_gallery", "strict", "image_column", "ignore"),
}
METHOD_OPTIONS = {"method", "settings", "template", "max_passes"}  # not recorded in an index


@dataclass(frozen=True)
class WatchOptions:
    """Values of the options for a watched folder.

    Attributes:
        folder: Folder whose images are tagged.
        index: Folder of the index, or None.
        interval: Time between two scans in seconds.
    """

    folder: str
    index: str | None
    interval: float


def watch_options(function: Command) -> Command:
    """Add the options ``--watch``, ``--interval`` and ``--index``."""
    watch_option = click.option(
        "--watch",
        is_flag=True,
        help="Tag the images of the folder IMAGES when they arrive or change, until Ctrl-C. "
        "Requires one folder.",
    )
    interval_option = click.option(
        "--interval",
        type=click.FloatRange(MIN_INTERVAL, MAX_INTERVAL),
        metavar="SECONDS",
        help=f"With --watch, time between two scans of the folder. [{DEFAULT_INTERVAL:g}]",
    )
    index_option = click.option(
        "--index",
        callback=validate_terminal_output_path,
        metavar="INDEX",
        help="With --watch, index that is created or updated. Deleted images are removed from the "
        "index.",
    )
    return watch_option(interval_option(index_option(function)))


def parse_watch_options(
    values: MutableMapping[str, Any], images: Sequence[str]
) -> WatchOptions | None:
    """Remove the options for a watched folder from the options of ``tag``, and return them.

    Args:
        values: Values of the options of ``tag``, by name.
        images: Arguments of the command.

    Returns:
        The options, or None without ``--watch``.

    Raises:
        UsageError: If an option needs or excludes another option, or there is not one folder.
    """
    is_watched, interval, index = (values.pop(name) for name in ("watch", "interval", "index"))
    if not is_watched:
        if given := [n for n, v in (("--interval", interval), ("--index", index)) if v is not None]:
            verb = "requires" if len(given) == 1 else "require"
            raise click.UsageError(f"{' and '.join(given)} {verb} --watch. Add --watch.")
        return None
    check_options_are_not_given(
        FINITE_OPTIONS, "cannot be combined with --watch, which has no end."
    )
    check_options_are_not_given(
        {"calibrate_unlabelled"},
        "cannot be combined with --watch, because each start would give other probabilities. "
        "Calibrate first: `surelabel calibrate MODEL IMAGES --unlabelled --out RECOGNIZER`.",
    )
    if index is not None:
        check_options_are_not_given(
            METHOD_OPTIONS,
            "cannot be combined with --index, which records only --model and --labels. Save a "
            "recognizer (`surelabel fit`) and give its folder with --model.",
        )
    if len(images) != 1 or not os.path.isdir(images[0]):
        raise click.UsageError(
            f"--watch requires one folder of images; got {' '.join(images)}. Give one folder."
        )
    return WatchOptions(images[0], index, DEFAULT_INTERVAL if interval is None else interval)


def watch_and_tag_folder(
    terminal: Terminal,
    watch: WatchOptions,
    options: TagOptions,
    *,
    model: str,
    labels: Sequence[str] | None,
    engine: str | None,
    dtype: str | None,
    **method_options: Any,
) -> None:
    """Tag the images of a folder as they arrive, until the user presses Ctrl-C.

    Args:
        terminal: Object that prints results, status lines and progress.
        watch: Options for the folder.
        options: Options of ``tag``.
        model: Folder of a saved recognizer, or name of an encoder.
        labels: Labels of ``--labels``, or None.
        engine: Value of ``--engine``, or None.
        dtype: Value of ``--dtype``, or None.
        method_options: Further arguments of ``resolve_model``.

    Raises:
        InputError: If the index belongs to another recognizer, or contains the folder.
        NotFitted: If an output requires probabilities, and the recognizer is not calibrated.
        ConfigError: If the method has to be fitted on the images first.
        DataError: If the folder cannot be read, or the index is damaged.
    """
    terminal.print_import_status()

    from surelabel.recognizer import (
        read_names_for_indexing,
        resolve_model,
        restore_calibration_for_indexing,
    )
    from surelabel.recognizer.folder_watching import FolderWatch
    from surelabel.recognizer.watched_index import WatchedIndex
    from surelabel.recognizer.watched_outputs import WatchedOutputs

    default_names = None if watch.index is None else read_names_for_indexing(watch.index)
    recognizer = resolve_model(
        model, labels, default_names=default_names, device=terminal.device, **method_options
    )
    recognizer = apply_engine_options(recognizer, engine, dtype)
    _check_recognizer_is_fitted(recognizer)
    if watch.index is not None:
        restore_calibration_for_indexing(watch.index, recognizer)
    check_recognizer_of_tag_options(recognizer, options)
    if options.uncertainty:
        recognizer.check_uncertainty(options.uncertainty)
    index = None
    if watch.index is not None:
        root = os.path.abspath(watch.folder)
        index = WatchedIndex(watch.index, recognizer, root=root, model=model)
    selection = selection_of_tag_options(terminal, recognizer, options)
    naming = (options.sidecar_name or DEFAULT_NAMING) if options.sidecar else None
    folder_watch = FolderWatch(
        watch.folder,
        recognizer,
        WatchedOutputs(recognizer.fingerprint, index, naming, recognizer.label_tree),
        select=partial(with_shown_labels, selection=selection),
        interval=watch.interval,
        uncertainty=options.uncertainty,
        workers=options.workers,
    )
    shows_tags = watch.index is None and naming is None
    output = WatchOutput(terminal, selection, shows_tags=shows_tags)
    output.print_start(folder_watch, recognizer, index)
    with suppress(KeyboardInterrupt):
        for event in folder_watch.events(open_progress=partial(terminal.progress, "Tagging")):
            output.print_event(event)
    output.print_summary()


def _check_recognizer_is_fitted(recognizer: "Recognizer") -> None:
    """Check that a recognizer needs no images before it predicts.

    Raises:
        ConfigError: If the method is fitted on unlabelled images.
    """
    if not recognizer.is_fitted:
        name = recognizer.run.method.name
        raise ConfigError(
            f"--watch requires a fitted model; {name} is fitted on the images. Run `surelabel fit "
            f"IMAGES --method {name} --labels LABELS --out RECOGNIZER` and give --model RECOGNIZER."
        )
