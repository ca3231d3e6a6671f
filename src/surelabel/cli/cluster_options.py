"""Define the options ``--cluster`` and ``--cluster-workers`` of ``tag`` and ``index``."""

import os
import shutil
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.shard_options import FILE_SUFFIXES
from surelabel.cli.tag_output import print_tag_skipped_images
from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.cluster import ClusterTagging
    from surelabel.progress import Progress
    from surelabel.recognizer import Recognizer
    from surelabel.recognizer.indexing import PredictBlocks

ALLOWED_OPTIONS = {"calibrate_unlabelled", "remove", "sidecar_name"}  # of tag with --cluster


@dataclass(frozen=True)
class ClusterOptions:
    """Values of the options for a cluster.

    Attributes:
        address: ``local``, ``auto`` or HOST:PORT.
        workers: Number of actors, or None for one per GPU or CPU.
        out: Folder of the predictions, or None for an index.
    """

    address: str
    workers: int | None
    out: str | None


def cluster_options(function: Command) -> Command:
    """Add the options for a Ray cluster."""
    for option in (
        click.option(
            "--cluster-workers",
            type=click.IntRange(1),
            help="Number of cluster processes that encode images. [one per GPU or CPU]",
        ),
        click.option(
            "--cluster",
            metavar="local|auto|HOST:PORT",
            help="Run on a Ray cluster: local starts a cluster on this machine, auto detects a "
            "running cluster, and HOST:PORT is the address of a cluster.",
        ),
    ):
        function = option(function)
    return function


def parse_cluster_options(values: MutableMapping[str, Any]) -> ClusterOptions | None:
    """Remove the cluster options from the options of a command, and return the cluster options.

    Args:
        values: Values of the options by name. With ``--cluster``, the value of ``out`` is replaced
            by None.

    Raises:
        UsageError: If the options exclude each other, or the folder is missing or is a file.
        MissingPart: If Ray is not installed.
    """
    address, workers = values.pop("cluster"), values.pop("cluster_workers")
    if address is None:
        if workers is not None:
            raise click.UsageError(
                f"--cluster-workers requires --cluster; got only --cluster-workers {workers}. "
                "Add --cluster, such as --cluster local."
            )
        return None
    from surelabel.cluster.ray_connection import check_ray_is_installed

    out: str | None = None
    if "out" in values:
        out, values["out"] = values["out"], None
        _check_other_options(values)
        _check_cluster_folder(out)
    check_ray_is_installed()
    return ClusterOptions(address, workers, out)


def write_cluster_tags(
    terminal: Terminal, recognizer: "Recognizer", source: Any, options: ClusterOptions
) -> None:
    """Predict images on a cluster, write the folder of predictions, and print a summary.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        source: Paths of the images.
        options: Options for the cluster, with the folder ``out``.

    Raises:
        UsageError: If the source is not a list of images.
        ConfigError: If the cluster does not respond, or has other versions of packages.
        DataError: If the run fails, or if no image can be read.
    """
    from surelabel.cluster import tag_on_cluster
    from surelabel.cluster.part_writer import WORK_FOLDER
    from surelabel.data import check_prediction_folder_is_complete

    if not isinstance(source, list):
        raise click.UsageError(
            "--cluster requires image files; got vectors or scores. Remove --cluster."
        )
    assert options.out is not None
    start = time.perf_counter()
    with terminal.progress("Tagging") as progress:
        result = tag_on_cluster(
            recognizer,
            source,
            options.out,
            address=options.address,
            workers=options.workers,
            progress=progress,
        )
    print_cluster_summary(terminal, result, time.perf_counter() - start)
    print_tag_skipped_images(result.failed)
    check_prediction_folder_is_complete(options.out)
    shutil.rmtree(result.folder / WORK_FOLDER, ignore_errors=True)
    n_tagged = result.n_images - len(result.failed)
    terminal.print_result(
        {
            "folder": options.out,
            "images": n_tagged,
            "failed": len(result.failed),
            "resumed": result.n_resumed,
            "encoded_again": result.n_repeated,
        },
        f"{options.out} contains the predictions of {format_count(n_tagged, 'image')}. Tagging "
        f"failed for {format_count(len(result.failed), 'image')}.",
    )


def predict_index_on_cluster(
    stack: ExitStack,
    terminal: Terminal,
    recognizer: "Recognizer",
    images: Sequence[str],
    index: str,
    options: ClusterOptions,
    progress: "Progress | None",
) -> "PredictBlocks":
    """Return a function that predicts images of an index on a cluster.

    The predictions are in the folder ``index.cluster``, which is deleted at the end of ``stack``,
    except after an error.

    Args:
        stack: Stack of context managers.
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        images: Paths of all images.
        index: Folder of the index.
        options: Options for the cluster.
        progress: Function called with the number of finished images and the number of all images.
    """
    from surelabel.cluster.cluster_indexing import predict_for_index_on_cluster
    from surelabel.storage.image_paths import absolute_image_path

    folder, start = f"{index.rstrip(os.sep)}.cluster", time.perf_counter()
    stack.push(lambda error, *_: None if error else shutil.rmtree(folder, ignore_errors=True))
    return predict_for_index_on_cluster(
        recognizer,
        list(dict.fromkeys(map(absolute_image_path, images))),
        folder,
        address=options.address,
        workers=options.workers,
        progress=progress,
        report=lambda result: print_cluster_summary(terminal, result, time.perf_counter() - start),
    )


def print_cluster_summary(terminal: Terminal, result: "ClusterTagging", seconds: float) -> None:
    """Print the speed of a run on a cluster, and the numbers of resumed and repeated images.

    Args:
        terminal: Object that prints results, status lines and progress.
        result: Numbers of the run.
        seconds: Duration in seconds.
    """
    n_new = result.n_images - result.n_resumed
    text = (
        f"Predicted {format_count(result.n_images, 'image')} in {seconds:.1f} s with "
        f"{format_count(result.workers, 'worker')} ({n_new / seconds:.0f} per second). Summed over "
        f"the workers, decoding took {result.decode_seconds:.1f} s and the encoder "
        f"{result.model_seconds:.1f} s."
    )
    if result.n_resumed:
        resumed = format_count(result.n_resumed, "image was", "images were")
        text += f" {resumed} predicted before an interruption."
    if result.n_resumed or result.n_repeated:
        repeated = format_count(result.n_repeated, "image was", "images were")
        text += f" At most {repeated} encoded again."
    terminal.print_status(text)


def _check_other_options(values: Mapping[str, Any]) -> None:
    """Check that no option of ``tag`` is given that the actors do not apply.

    Raises:
        UsageError: If such an option is given.
    """
    given = [
        f"--{name.replace('_', '-')}"
        for name, value in values.items()
        if name not in ALLOWED_OPTIONS and value not in (None, False, ())
    ]
    if given:
        raise click.UsageError(
            "--cluster writes the scores of all labels to a folder, so it cannot be combined with "
            f"other outputs and selections; got {', '.join(given)} too. Remove {', '.join(given)}."
        )


def _check_cluster_folder(out: str | None) -> None:
    """Check that there is a folder for the predictions.

    Raises:
        UsageError: If it is missing, or is a file.
    """
    if not out:
        raise click.UsageError("--cluster requires --out FOLDER; got no --out. Add --out FOLDER.")
    if out.lower().endswith(FILE_SUFFIXES) or os.path.isfile(out):
        raise click.UsageError(
            f"With --cluster, --out must be a folder; got the file {out}. Give a folder."
        )
