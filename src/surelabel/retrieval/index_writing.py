"""Writing of the new rows of an index, and of the manifest that lists them."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.retrieval.index_manifest import (
    IndexManifest,
    next_shard_number_in_index_manifest,
    save_index_manifest,
)
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shard_files import INDEX_VERSION
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
        root: Root folder of the stored paths; the new manifest stores its current path.
        shards: Shards of the index, with removed rows.
        new_rows: New rows. If None, no rows are added.
        skipped: Reason for each image that could not be read, by absolute path.

    Returns:
        The new manifest, which is on disk.

    Raises:
        DataError: If the index is damaged or cannot be written.
    """
    if manifest.version == INDEX_VERSION:
        all_shards, batches = select_shards_to_merge(shards, new_rows)
    else:
        all_shards, batches = [], merge_shards_of_version_1(shards, new_rows, root)
    if batches:
        number = next_shard_number_in_index_manifest(folder)
        all_shards.append(write_shard(folder, number, batches))
    for shard in all_shards:
        shard.mapped_files.check(len(manifest.names))
    new_root = IndexRoot.at(root.current)
    new_manifest = IndexManifest(
        manifest.names,
        manifest.model,
        manifest.calibration,
        new_root.current,
        tuple(all_shards),
        {new_root.stored_path(path): reason for path, reason in skipped.items()},
        recognizer=manifest.recognizer,
    )
    save_index_manifest(folder, new_manifest)
    return new_manifest
