"""Predict images on a Ray cluster into a folder of predictions, each image exactly once.

The parts of the folder are the checkpoint of the run: a resumed run predicts the images that are in
no part. The checkpoints of Ray Data are not used; see docs/decisions.md.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.cluster.node_checks import check_nodes
from surelabel.cluster.part_writer import (
    WORK_FOLDER,
    BatchReport,
    PartWriter,
    count_repeated_images,
    start_attempt,
)
from surelabel.cluster.ray_connection import (
    check_ray_is_installed,
    connect_to_ray,
    first_line_of_ray_error,
)
from surelabel.cluster.tagger import Tagger
from surelabel.cluster.worker_plan import READ_CPUS, WorkerPlan, plan_workers
from surelabel.data import (
    FailedImages,
    PredictionRun,
    check_prediction_folder,
    describe_prediction_run,
    find_part_rows,
    is_prediction_folder,
    max_image_memory,
    open_prediction_folder,
    write_failed_images,
)
from surelabel.errors import DataError, InputError
from surelabel.files import atomic_file, escape_non_utf8_file_path
from surelabel.progress import Progress
from surelabel.records import SkippedImage

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

MAX_TASKS_PER_WORKER = 4  # batches that wait for an actor or are predicted by it
MIN_IMAGES_PER_PART = 64  # if there are enough images
IMAGES_PER_RETRY = 64  # images of a batch whose images are predicted one by one


@dataclass(frozen=True)
class ClusterTagging:
    """Numbers of a run on a cluster.

    Attributes:
        folder: Folder of the predictions.
        n_images: Number of images of the run.
        n_resumed: Number of images that an interrupted run had predicted.
        n_repeated: Upper bound of the number of images that were encoded again, because a process
            was killed before their predictions were written.
        failed: Images that could not be predicted, each with the reason.
        workers: Number of actors.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds, summed over the workers.
    """

    folder: Path
    n_images: int
    n_resumed: int = 0
    n_repeated: int = 0
    failed: Sequence[SkippedImage] = ()
    workers: int = 0
    decode_seconds: float = 0.0
    model_seconds: float = 0.0

    def add(self, report: BatchReport) -> "ClusterTagging":
        """Return the numbers of the run with the times of a batch added."""
        return replace(
            self,
            decode_seconds=self.decode_seconds + report.decode_seconds,
            model_seconds=self.model_seconds + report.model_seconds,
        )


def tag_on_cluster(
    recognizer: "Recognizer",
    images: Sequence[str],
    folder: str | Path,
    *,
    address: str = "local",
    rows: npt.NDArray[np.int64] | None = None,
    workers: int | None = None,
    batch_size: int | None = None,
    has_vectors: bool = False,
    progress: Progress | None = None,
) -> ClusterTagging:
    """Predict images on a Ray cluster, and write the predictions to a folder.

    To resume an interrupted run, call the function with the same arguments. At the end, each image
    is in exactly one part of the folder or, with the reason, in ``failed.parquet``. Images that
    could not be predicted are tried again one by one at the end of each run.

    Args:
        recognizer: Fitted recognizer.
        images: Paths of all n images, which each node of the cluster can read.
        folder: Folder of the predictions, to which each node of the cluster has access. The folder
            is new, empty, or belongs to the same run.
        address: ``local``, ``auto`` or HOST:PORT; see :func:`connect_to_ray`.
        rows: Rows in ``images`` of the images to predict, ``(m,)``. If None, all images are
            predicted.
        workers: Number of actors, >= 1. If None, there is one actor per GPU or CPU.
        batch_size: Maximum number of images of a part, >= 1. If None, the number is that of
            :func:`images_per_part`.
        has_vectors: Whether the parts contain image vectors and content hashes.
        progress: Function called with the number of finished images and the number of all images.

    Raises:
        MissingPart: If Ray is not installed.
        NotFitted: If the recognizer has to be fitted first.
        ConfigError: If the cluster does not respond, has other versions of packages, or has no GPU
            for an encoder on a GPU.
        DataError: If the folder belongs to another run, cannot be written or is not accessible to
            all nodes, if the cluster fails, or if the same image is in two parts.
        InputError: If ``workers`` or ``batch_size`` is below 1.
    """
    _check_cluster_counts(workers=workers, batch_size=batch_size)
    check_ray_is_installed()
    folder = Path(os.path.abspath(folder))
    run = _describe_run(recognizer, images, has_vectors=has_vectors)
    check_prediction_folder(folder, run)
    rows = np.arange(len(images)) if rows is None else rows
    missing = _missing_rows(folder, rows)
    result = ClusterTagging(folder, len(rows), len(rows) - len(missing))
    if not len(missing):
        open_prediction_folder(folder, run)
        write_failed_images(folder, run, FailedImages(missing, []))
        return result
    tagger = Tagger(recognizer, has_vectors=has_vectors)
    n_bytes = len(tagger.settings.recognizer)
    with connect_to_ray(address, recognizer_bytes=n_bytes):
        import ray

        check_nodes(folder)
        open_prediction_folder(folder, run)
        on_gpu = recognizer.encoder.device.type != "cpu"
        plan = plan_workers(ray.cluster_resources(), workers=workers, on_gpu=on_gpu)
        result = replace(result, workers=plan.workers)
        cluster_run = _ClusterRun(images, folder, run, tagger, plan, start_attempt(folder))
        done = result.n_resumed
        size = batch_size or images_per_part(recognizer, len(missing), plan.workers)
        for report in cluster_run.predict(missing, size, one_by_one=False):
            result, done = result.add(report), done + report.n_images
            if progress:
                progress(min(done, len(rows)), len(rows))
        failures = dict[int, SkippedImage]()
        missing = _missing_rows(folder, rows)
        if len(missing):
            retry_size = min(size, IMAGES_PER_RETRY)
            for report in cluster_run.predict(missing, retry_size, one_by_one=True):
                result = result.add(report)
                failed = (SkippedImage(*reason) for reason in report.reasons)
                failures |= dict(zip(report.rows, failed, strict=True))
    failed_images = _write_failures(folder, run, rows, images, failures)
    return replace(result, n_repeated=count_repeated_images(folder), failed=failed_images)


def images_per_part(recognizer: "Recognizer", n_images: int, workers: int) -> int:
    """Return the number of images of a part, which are encoded again if an actor is killed.

    The number is between 64 and 1,024, and smaller for encoders with small batches. For methods
    that use patches or views, it is at most a quarter of a prediction block.

    Args:
        recognizer: Recognizer of the images.
        n_images: Number of images that are predicted.
        workers: Number of actors, >= 1. If there are many images, the number of parts is at least
            four per actor.
    """
    from surelabel.features.encoding_batch_size import encoding_batch_size
    from surelabel.recognizer import images_per_prediction_block

    limit = images_per_prediction_block(recognizer.method) // 4
    size = max(MIN_IMAGES_PER_PART, 16 * encoding_batch_size(recognizer.encoder))
    share = max(MIN_IMAGES_PER_PART, -(-n_images // (MAX_TASKS_PER_WORKER * workers)))
    return min(limit, size, share)


@dataclass(frozen=True)
class _ClusterRun:
    """A run on a connected cluster."""

    images: Sequence[str]
    folder: Path
    run: PredictionRun
    tagger: Tagger
    plan: WorkerPlan
    attempt: str

    def predict(
        self, rows: npt.NDArray[np.int64], batch_size: int, *, one_by_one: bool
    ) -> Iterator[BatchReport]:
        """Predict images, and yield a report of each batch when it is written.

        Raises:
            DataError: If an actor cannot load the recognizer or write a part, if another process
                resumed the run, or if the cluster fails.
        """
        import ray

        manifest = self._write_manifest(rows, batch_size)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Ray, about its own progress and resources
                dataset = self._dataset(manifest, -(-len(rows) // batch_size), one_by_one)
                for batch in dataset.iter_batches(batch_size=None, prefetch_batches=0):
                    for report in map(BatchReport.from_text, batch["report"]):
                        if report.error is not None:
                            raise DataError(report.error)
                        yield report
        except ray.exceptions.RayError as error:
            raise DataError(
                "The cluster stopped before all images were predicted: "
                f"{first_line_of_ray_error(error)}. Run the same command again to resume."
            ) from error

    def _dataset(self, manifest: Path, n_batches: int, one_by_one: bool) -> Any:
        """Return the dataset whose rows are the reports of the batches."""
        import ray
        from ray.data import ActorPoolStrategy, DataContext

        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.use_datasource_v2 = False  # it would read all batches as one block
        plan = self.plan
        batches = ray.data.read_parquet(
            str(manifest), override_num_blocks=n_batches, ray_remote_args={"num_cpus": READ_CPUS}
        )
        n_workers = min(plan.workers, n_batches)
        return batches.map_batches(
            PartWriter,
            fn_constructor_args=[
                [ray.put(_with_decoders(self.tagger, plan.decoders))],
                str(self.folder),
                self.run,
                self.attempt,
            ],
            fn_constructor_kwargs={"one_by_one": one_by_one},
            batch_size=None,
            compute=ActorPoolStrategy(
                min_size=1,
                max_size=n_workers,
                initial_size=n_workers,
                max_tasks_in_flight_per_actor=MAX_TASKS_PER_WORKER,
            ),
            num_cpus=plan.cpus,
            num_gpus=plan.gpus,
        )

    def _write_manifest(self, rows: npt.NDArray[np.int64], batch_size: int) -> Path:
        manifest = self.folder / WORK_FOLDER / "manifest.parquet"
        schema = pa.schema({"row": pa.int64(), "path": pa.string()})
        with atomic_file(manifest) as temporary, pq.ParquetWriter(temporary, schema) as writer:
            for start in range(0, len(rows), max(batch_size, 8192)):
                some = rows[start : start + max(batch_size, 8192)]
                paths = [escape_non_utf8_file_path(self.images[row]) for row in some]
                writer.write_table(pa.table({"row": some, "path": paths}, schema))
        return manifest


def _with_decoders(tagger: Tagger, decoders: int) -> Tagger:
    """Return a tagger with another number of processes that decode images."""
    other = Tagger.__new__(Tagger)
    other.settings, other._process = replace(tagger.settings, decoders=decoders), None
    return other


def _describe_run(
    recognizer: "Recognizer", images: Sequence[str], *, has_vectors: bool
) -> PredictionRun:
    return describe_prediction_run(
        recognizer.fingerprint,
        recognizer.names,
        recognizer.calibrated_on,
        images,
        {
            "max_image_memory": max_image_memory(),
            "has_vectors": has_vectors,
            **recognizer.encoder.engine.run_option,
        },
    )


def _missing_rows(folder: Path, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the rows that are in no part, in the given order; all rows if there is no folder."""
    if not is_prediction_folder(folder):
        return rows
    return rows[~np.isin(rows, find_part_rows(folder).rows)]


def _write_failures(
    folder: Path,
    run: PredictionRun,
    rows: npt.NDArray[np.int64],
    images: Sequence[str],
    failures: dict[int, SkippedImage],
) -> Sequence[SkippedImage]:
    """Write the failed images, which are in no part, with the reasons, and return them."""
    failed_rows = _missing_rows(folder, rows)
    failed = [
        failures.get(row, SkippedImage(images[row], "the batch of the image was lost"))
        for row in failed_rows.tolist()
    ]
    write_failed_images(folder, run, FailedImages(failed_rows, failed))
    return tuple(failed)


def _check_cluster_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise InputError(f"{name} must be 1 or more; got {count}.")
