"""Join the predictions of several blocks of images.

The joined predictions of n images and c labels are arrays ``(n, c)``. Large arrays and the image
vectors are in temporary files.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from surelabel.mapped_arrays import mapped_zeros
from surelabel.recognizer.image_vector_file import ImageVectorFile
from surelabel.records import EncodingStats, Predictions, SkippedImage


def join_prediction_blocks(
    blocks: Iterator[Predictions], *, n_images: int, folder: Path
) -> Predictions:
    """Return the predictions of all blocks, in order.

    The peak memory is that of one block and of all paths. With more than one block, the image
    vectors and large arrays ``(n, c)`` are written to temporary files without a name, which are
    mapped into memory. The operating system deletes these files when no process uses them.

    Args:
        blocks: Predictions of one recognizer, at least one block.
        n_images: Total number of images of all blocks, with unreadable images.
        folder: Folder of the temporary files. If the folder is not writable, the folder of the
            system for temporary files is used.

    Raises:
        DataError: If the image vectors cannot be written.
    """
    first, second = next(blocks), next(blocks, None)
    if second is None:
        return first
    with ImageVectorFile(folder) as vectors:
        return _join_prediction_blocks(
            first, itertools.chain((first, second), blocks), n_images, vectors, folder
        )


def _join_prediction_blocks(
    first: Predictions,
    blocks: Iterator[Predictions],
    n_images: int,
    vectors: ImageVectorFile,
    folder: Path,
) -> Predictions:
    """Return the predictions of all blocks; ``first`` is also the first item of ``blocks``."""
    scores, logits, uncertainty = (
        None
        if array is None
        else mapped_zeros((n_images, len(first.names)), array.dtype, folder=folder)
        for array in (first.scores, first.logits, first.uncertainty)
    )
    assert scores is not None  # predictions always have scores
    paths: list[str] = []
    hashes: list[str] = []
    skipped: list[SkippedImage] = []
    stats = EncodingStats(0, 0.0, 0.0)
    for block in blocks:
        rows = slice(len(paths), len(paths) + len(block))
        scores[rows] = block.scores
        if logits is not None and block.logits is not None:
            logits[rows] = block.logits
        if uncertainty is not None and block.uncertainty is not None:
            uncertainty[rows] = block.uncertainty
        if block.features is not None:
            vectors.append(block.features)
        paths += block.paths
        hashes += block.hashes or ()
        skipped += block.skipped
        stats = add_encoding_stats(stats, block.encoding_stats)
    return replace(
        first,
        paths=paths,
        scores=scores[: len(paths)],
        logits=None if logits is None else logits[: len(paths)],
        features=vectors.read(len(paths)),
        skipped=tuple(skipped),
        encoding_stats=stats,
        hashes=hashes or None,
        uncertainty=None if uncertainty is None else uncertainty[: len(paths)],
    )


def add_encoding_stats(total: EncodingStats, block: EncodingStats | None) -> EncodingStats:
    """Return the sums of two encoding statistics."""
    if block is None:
        return total
    return EncodingStats(
        total.n_cached + block.n_cached,
        total.decode_seconds + block.decode_seconds,
        total.model_seconds + block.model_seconds,
        total.encoder_passes + block.encoder_passes,
    )
