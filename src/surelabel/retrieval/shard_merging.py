"""Select the shards whose rows are written to one new shard, together with new rows."""

from collections.abc import Sequence
from dataclasses import replace

from surelabel.retrieval.file_state import add_file_metadata, replace_file_state_paths
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shards import Shard


def select_shards_to_merge(
    shards: Sequence[Shard], new_rows: ShardRows | None
) -> tuple[list[Shard], list[ShardRows]]:
    """Return the shards that stay unchanged, and the rows to write as one new shard.

    The last shard is rewritten if more than half of its rows were removed, or if it does not have
    more rows than the new shard. Then the shard before it is compared. Therefore the number of
    shards, and the number of times that a row is written, grow logarithmically with the number of
    additions. Shards without rows are dropped.

    Args:
        shards: Shards of the index, in row order.
        new_rows: New rows. If None, no rows are added.
    """
    unchanged = [shard for shard in shards if len(shard)]
    batches = [new_rows] if new_rows else []
    n_rows = sum(map(len, batches))
    while unchanged and (
        len(unchanged[-1]) <= n_rows or 2 * len(unchanged[-1]) < unchanged[-1].n_rows
    ):
        last = unchanged.pop()
        batches.insert(0, last.active_rows())
        n_rows += len(last)
    return unchanged, batches


def merge_shards_of_version_1(
    shards: Sequence[Shard], new_rows: ShardRows | None, root: IndexRoot
) -> list[ShardRows]:
    """Return all rows of an index of version 1, with paths relative to the root, and the new rows.

    The date, width and height of each image are added if its file did not change.

    Args:
        shards: Shards of the index, whose stored paths are absolute.
        new_rows: New rows. If None, no rows are added.
        root: Root folder of the index.
    """
    batches = []
    for rows in (shard.active_rows() for shard in shards if len(shard)):
        resolved_paths = [root.resolve(path) for path in rows.file_states["path"].to_pylist()]
        file_states = add_file_metadata(rows.file_states, resolved_paths)
        paths = [root.stored_path(path) for path in resolved_paths]
        file_states = replace_file_state_paths(file_states, paths)
        batches.append(replace(rows, file_states=file_states))
    return [*batches, new_rows] if new_rows else batches
