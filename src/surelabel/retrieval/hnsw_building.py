"""Build the graphs for approximate search of an index, and measure their recall."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.progress import Progress
from surelabel.retrieval.hnsw_graph import (
    HnswRecord,
    check_usearch_is_installed,
    write_hnsw_graph,
)
from surelabel.retrieval.index_manifest import IndexManifest, new_revision, save_index_manifest
from surelabel.retrieval.nearest_rows import (
    nearest_rows_of_shards,
    row_blocks_for_search,
    unit_vectors,
)
from surelabel.retrieval.shards import Shard

EXACT_ROWS = 1_000_000  # images up to which an exact search of vectors is fast enough
RECALL_SAMPLE, RECALL_COUNT = 100, 100  # sampled images, and nearest images of each


def build_index_graphs(
    folder: Path, manifest: IndexManifest, progress: Progress | None = None
) -> IndexManifest:
    """Build the graph of each shard without a valid graph, and list the graphs in ``index.json``.

    Damaged graphs are removed from ``index.json`` before they are built again. ``index.json`` is
    written after each new graph, so finished graphs are not lost if a later one fails or the
    process is killed.

    Args:
        folder: Folder of the index, which is locked.
        manifest: Manifest of the index, of the current version.
        progress: Function called with the number of images in the new graphs and their total.

    Returns:
        The new manifest, which is on disk.

    Raises:
        MissingPart: If usearch is not installed.
        InputError: If the index has at most 1,000,000 images, or no image vectors.
        DataError: If image vectors are damaged or not finite, or the folder cannot be written.
    """
    check_usearch_is_installed()
    n_images = sum(map(len, manifest.shards))
    if n_images <= EXACT_ROWS:
        raise InputError(
            "An index for approximate search (--ann) must contain more than "
            f"{EXACT_ROWS:,} images; {folder} contains {n_images:,}. Leave out --ann; the search "
            "in a smaller index is exact."
        )
    is_valid = [
        shard.hnsw_graph is not None and not shard.hnsw_graph.is_damaged()
        for shard in manifest.shards
    ]
    pairs = list(zip(manifest.shards, is_valid, strict=True))
    shards = [shard if valid else shard.with_graph(None) for shard, valid in pairs]
    if shards != list(manifest.shards):  # a damaged file must not be replaced while it is listed
        manifest = _save_graphs(folder, manifest, shards)
    sizes = [0 if valid else len(shard) for shard, valid in pairs]
    for number, done in enumerate(accumulate(sizes, initial=0)):
        if number < len(sizes) and sizes[number]:
            report = _report_function(progress, done, sum(sizes))
            shards[number] = build_shard_graph(shards[number], report)
            manifest = _save_graphs(folder, manifest, shards)
    return manifest


def build_shard_graph(shard: Shard, report: Callable[[int], None]) -> Shard:
    """Write the graph of a shard, and return the shard with the graph and its measured recall.

    Args:
        shard: Shard without a graph, and with at least one image.
        report: Function that is called with the number of images in the graph after each block.

    Raises:
        InputError: If the shard has no image vectors.
        DataError: If image vectors are damaged or not finite, or the folder cannot be written.
    """
    width = shard.feature_width or 0
    blocks = row_blocks_for_search(shard)
    checksum = write_hnsw_graph(shard.hnsw_file, width, blocks, report)
    recall = graph_recall(shard.with_graph(HnswRecord(checksum, 0.0)))
    return shard.with_graph(HnswRecord(checksum, recall))


def graph_recall(shard: Shard) -> float:
    """Return the mean recall@100 of the approximate search for 100 sampled images of a shard.

    The recall of an image is the share of its 100 nearest images that are found; the image itself
    is one of them. An image that is found instead of another one with an equal cosine counts as
    well. In a shard of fewer images, all images are nearest images.

    Args:
        shard: Shard with a graph, and with at least one image.
    """
    rows = np.arange(shard.n_rows) if shard.is_active is None else np.flatnonzero(shard.is_active)
    random, count = np.random.default_rng(0), min(RECALL_COUNT, len(rows))
    sample = np.sort(random.choice(rows, min(RECALL_SAMPLE, len(rows)), replace=False))
    queries = np.asarray(shard.mapped_files.arrays["features"][sample])
    limits = _exact_limits(shard, queries, count)
    recalls = []
    for query, limit in zip(queries, limits.tolist(), strict=True):
        cosines = nearest_rows_of_shards([shard], query, count).cosines
        recalls.append(np.count_nonzero(cosines >= limit - 1e-6) / count)
    return float(np.mean(recalls))


def _exact_limits(
    shard: Shard, queries: npt.NDArray[np.float16], count: int
) -> npt.NDArray[np.float32]:
    """Return the cosine of each query and its ``count``-th nearest row, ``(q,)``."""
    directions = unit_vectors(queries.astype(np.float32))
    largest = np.full((len(queries), count), -np.inf, np.float32)
    for _, vectors in row_blocks_for_search(shard):
        cosines = directions @ unit_vectors(vectors.astype(np.float32)).T
        both = np.concatenate([largest, cosines], axis=1)
        largest = np.partition(both, both.shape[1] - count, axis=1)[:, -count:]
    return np.asarray(largest.min(axis=1))


def _report_function(progress: Progress | None, done: int, total: int) -> Callable[[int], None]:
    return lambda n_images: progress(done + n_images, total) if progress else None


def _save_graphs(folder: Path, manifest: IndexManifest, shards: list[Shard]) -> IndexManifest:
    new_manifest = replace(manifest, shards=tuple(shards), revision=new_revision())
    save_index_manifest(folder, new_manifest)
    return new_manifest
