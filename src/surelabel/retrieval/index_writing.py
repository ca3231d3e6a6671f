"""Write new rows of an index, and the manifest that lists the shards."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from surelabel.retrieval.index_manifest import (
    IndexManifest,
    next_shard_number_in_index_manifest,
    save_index_manifest,
)
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shard_layout import INDEX_VERSION
from surelabel.retrieval.shard_merging import merge_shards_of_version_1, select_shards_to_merge
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard


def write_index_update(
    folder: Path,
    manifest: IndexManifest,
    root: IndexRoot,
    shards: Sequence[Shard],
    new_rows: ShardRows | None,
    skipped: dict[str, str],
) -> IndexManifest:
    """Write new rows and the rows of merged shards as one shard, then ``index.json``.

    Args:
        folder: Folder of the index, which is locked.
        manifest: Manifest before the update.
        root: Root folder of the stored paths. The new manifest stores ``root.current``.
        shards: Shards of the index, in which removed rows are marked.
        new_rows: New rows. If None, no rows are added.
        skipped: Reason for each image that could not be read, by absolute path.

    Returns:
        The new manifest, which is on disk.

    Raises:
        DataError: If the index is damaged or cannot be written.
    """
    if manifest.version == INDEX_VERSION:
        unchanged, batches = select_shards_to_merge(shards, new_rows)
    else:
        unchanged, batches = [], merge_shards_of_version_1(shards, new_rows, root)
    return _write_shards_and_manifest(
        folder, manifest, root, unchanged, [batches] if batches else [], skipped
    )


def write_compacted_index(
    folder: Path,
    manifest: IndexManifest,
    root: IndexRoot,
    skipped: dict[str, str],
    *,
    drop_below: float | None = None,
) -> IndexManifest:
    """Write all rows that were not removed as one shard, then ``index.json``.

    If the index has one shard in the requested form without removed rows, only ``index.json`` is
    written.

    Args:
        folder: Folder of the index, which is locked.
        manifest: Manifest before the compaction.
        root: Root folder of the stored paths; the new manifest stores its current path.
        skipped: Reason for each image that could not be read, by absolute path.
        drop_below: Lowest probability whose log-odds are stored, for a sparse form. If None, the
            new shard is in sparse form only if all shards are.

    Returns:
        The new manifest, which is on disk.

    Raises:
        DataError: If the index is damaged or cannot be written.
    """
    shards, unchanged = [shard for shard in manifest.shards if len(shard)], list[Shard]()
    if manifest.version != INDEX_VERSION:
        batches = merge_shards_of_version_1(shards, None, root)
    elif len(shards) == 1 and not shards[0].removed and _has_form(shards[0], drop_below):
        unchanged, batches = shards, []
    else:
        batches = [shard.active_rows() for shard in shards]
    groups = [batches] if batches else []
    return _write_shards_and_manifest(
        folder, manifest, root, unchanged, groups, skipped, drop_below=drop_below
    )


def _has_form(shard: Shard, drop_below: float | None) -> bool:
    """Return whether a compaction leaves the log-odds of a shard without removed rows unchanged."""
    return drop_below is None or (shard.layout.is_sparse and shard.drop_below == drop_below)


def write_rescored_index(
    folder: Path,
    manifest: IndexManifest,
    root: IndexRoot,
    rescore: Callable[[Shard], ShardRows],
    skipped: dict[str, str],
) -> IndexManifest:
    """Write each shard again with other log-odds and raw scores, then ``index.json``.

    Args:
        folder: Folder of the index, which is locked.
        manifest: Manifest of the new index, with the shards before the change.
        root: Root folder of the stored paths; the new manifest stores its current path.
        rescore: Function that returns the new rows of a shard, without removed rows.
        skipped: Reason for each image that could not be read, by absolute path.

    Returns:
        The new manifest, which is on disk.

    Raises:
        DataError: If the index is damaged or cannot be written.
    """
    groups = ([rescore(shard)] for shard in manifest.shards if len(shard))
    return _write_shards_and_manifest(folder, manifest, root, [], groups, skipped)


def _write_shards_and_manifest(
    folder: Path,
    manifest: IndexManifest,
    root: IndexRoot,
    unchanged: Sequence[Shard],
    groups: Iterable[Sequence[ShardRows]],
    skipped: dict[str, str],
    *,
    drop_below: float | None = None,
) -> IndexManifest:
    """Write each group of rows as one shard, then ``index.json`` with all shards."""
    shards = list(unchanged)
    for batches in groups:
        number = next_shard_number_in_index_manifest(folder)
        shards.append(write_shard(folder, number, batches, drop_below=drop_below))
    for shard in shards:
        shard.mapped_files.check(len(manifest.names))
    new_root = IndexRoot.at(root.current)
    new_manifest = IndexManifest(
        manifest.names,
        manifest.model,
        manifest.calibration,
        new_root.current,
        tuple(shards),
        {new_root.stored_path(path): reason for path, reason in skipped.items()},
        recognizer=manifest.recognizer,
        engines=manifest.engines,
    )
    save_index_manifest(folder, new_manifest)
    return new_manifest
