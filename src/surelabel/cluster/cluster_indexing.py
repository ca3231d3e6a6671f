"""Predict the images of an index on a cluster, block by block."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surelabel.cluster.cluster_tagging import ClusterTagging, tag_on_cluster
from surelabel.counts import format_count
from surelabel.data import prediction_folder_blocks
from surelabel.errors import NoReadableImage
from surelabel.progress import Progress
from surelabel.records import Predictions

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

IMAGES_PER_SHARD = 4096  # images per yielded block, which becomes one shard of the index


def predict_for_index_on_cluster(
    recognizer: "Recognizer",
    images: Sequence[str],
    folder: str | Path,
    *,
    address: str = "local",
    workers: int | None = None,
    progress: Progress | None = None,
    report: Callable[[ClusterTagging], None],
) -> Callable[[Sequence[str]], Iterator[Predictions]]:
    """Return a function that predicts some of the images of an index on a cluster.

    The function first predicts all images that it receives, and then yields the predictions in
    blocks with image vectors and content hashes, so that only one block is in memory. It raises the
    errors of :func:`tag_on_cluster`, and NoReadableImage if no image can be predicted.

    Args:
        recognizer: Calibrated recognizer.
        images: Absolute paths of all images, each once. A resumed run must have the same images.
        folder: Folder of the predictions, to which each node of the cluster has access.
        address: ``local``, ``auto`` or HOST:PORT.
        workers: Number of actors, or None for one per GPU or CPU.
        progress: Function called with the number of finished images and the number of all images.
        report: Function called with the numbers of the run on the cluster.
    """
    row_of = {path: row for row, path in enumerate(images)}

    def predict(outdated: Sequence[str]) -> Iterator[Predictions]:
        rows = np.array(sorted(row_of[path] for path in outdated), dtype=np.int64)
        result = tag_on_cluster(
            recognizer,
            images,
            folder,
            address=address,
            rows=rows,
            workers=workers,
            has_vectors=True,
            progress=progress,
        )
        report(result)
        n_read = 0
        wanted = set(outdated)
        for block in prediction_folder_blocks(folder, block_size=IMAGES_PER_SHARD):
            kept = [index for index, path in enumerate(block.paths) if path in wanted]
            if kept:
                skipped = () if n_read else result.failed
                n_read += len(kept)
                yield replace(_take_images(block, kept), skipped=skipped)
        if not n_read:
            raise NoReadableImage(
                "At least one image must be readable; got "
                f"{format_count(len(rows), 'unreadable image')}. The first error is for "
                f"{result.failed[0].path}: {result.failed[0].reason}.",
                result.failed,
            )

    return predict


def _take_images(block: Predictions, rows: Sequence[int]) -> Predictions:
    """Return the predictions of some images of a block."""
    return replace(
        block,
        paths=[block.paths[row] for row in rows],
        hashes=None if block.hashes is None else [block.hashes[row] for row in rows],
        scores=block.scores[rows],
        logits=None if block.logits is None else block.logits[rows],
        features=None if block.features is None else block.features[rows],
    )
