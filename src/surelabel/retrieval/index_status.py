"""Compare an index with the files on disk: find images that are new, changed or deleted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from surelabel.retrieval.file_state import (
    FILE_STATE_FIELDS,
    FileState,
    absolute_file_state_paths,
    describe_file_state_change,
)
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shards import Shard
from surelabel.storage.stored_images import stored_image_status


@dataclass(frozen=True)
class IndexStatus:
    """Differences between an index and the images on disk, with a reason for each path.

    Attributes:
        n_images: Number of images in the index.
        not_indexed: Reason for each image that should be in the index and is not, by absolute path.
        changed: Reason for each indexed image whose file changed, or could not be read when it was
            indexed or compared, by absolute path.
        deleted: Reason for each indexed image whose file no longer exists, by absolute path.
    """

    n_images: int
    not_indexed: dict[str, str]
    changed: dict[str, str]
    deleted: dict[str, str]


def compute_index_status(
    shards: Sequence[Shard], skipped: Mapping[str, str], images: Iterable[str], root: IndexRoot
) -> IndexStatus:
    """Compare the rows of an index with the files on disk.

    Args:
        shards: Shards of the index.
        skipped: Reason for each image that could not be read at prediction time, by stored path.
            Images that no longer exist are not reported.
        images: Paths of the images that should be in the index.
        root: Root folder of the stored paths.

    Raises:
        DataError: If a stored path leaves the root, or the paths and file states are damaged.
    """
    indexed, changed, deleted = set(), {}, {}
    for shard in shards:
        table = shard.active_file_states.select([*FILE_STATE_FIELDS])
        columns = [column.to_pylist() for column in table.columns]
        for stored_path, size, mtime_ns, hash in zip(*columns, strict=True):
            path = root.resolve(stored_path)
            indexed.add(path)
            recorded = None if hash is None else FileState(size, mtime_ns, hash)
            status = stored_image_status(path)
            if status is None:
                deleted[path] = "the file no longer exists"
            elif reason := describe_file_state_change(path, recorded, status):
                changed[path] = reason
    not_indexed = {root.resolve(path): reason for path, reason in skipped.items()}
    not_indexed = {
        path: reason
        for path, reason in not_indexed.items()
        if stored_image_status(path) is not None
    }
    for path in absolute_file_state_paths(images):
        if path not in indexed:
            not_indexed.setdefault(path, "the image was never added to the index")
    return IndexStatus(sum(map(len, shards)), not_indexed, changed, deleted)


def recorded_file_states(
    shards: Sequence[Shard], root: IndexRoot, paths: Collection[str] | None = None
) -> dict[str, FileState | None]:
    """Return the file state of each image at prediction time, by absolute path.

    The state is None if the file could not be read when the image was indexed.

    Args:
        shards: Shards of the index.
        root: Root folder of the stored paths.
        paths: Absolute paths of images; images that are not in the index are left out. If None, all
            images of the index are returned.

    Raises:
        DataError: If a stored path leaves the root, or the paths and file states are damaged.
    """
    states: dict[str, FileState | None] = {}
    stored = None if paths is None else [form for path in paths for form in root.stored_forms(path)]
    for shard in shards:
        if stored is None:
            table = shard.active_file_states.select([*FILE_STATE_FIELDS])
        elif len(rows := shard.find_rows(stored)):
            table = shard.read_file_columns([*FILE_STATE_FIELDS]).take(rows)
        else:
            continue
        columns = [column.to_pylist() for column in table.columns]
        for stored_path, size, mtime_ns, hash in zip(*columns, strict=True):
            state = None if hash is None else FileState(size, mtime_ns, hash)
            states[root.resolve(stored_path)] = state
    return states
