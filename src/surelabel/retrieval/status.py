"""What is missing from an index, what changed under it, what is gone, and why."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from surelabel.retrieval.shards import Shard
from surelabel.retrieval.stamps import Stamp, change, whole


@dataclass(frozen=True)
class Status:
    """How an index stands to the pictures on disk. Each table is whole path to reason.

    Attributes:
        rows: Pictures in the index.
        missing: Pictures that are not in it.
        changed: Pictures in it whose file is another one now.
        gone: Pictures in it that have no file any more.
    """

    rows: int
    missing: dict[str, str]
    changed: dict[str, str]
    gone: dict[str, str]


def compare(shards: Sequence[Shard], skipped: Mapping[str, str], pictures: Iterable[str]) -> Status:
    """Compare the rows of an index with the files on disk.

    Args:
        shards: The rows.
        skipped: Pictures that could not be read when they were predicted, and why.
        pictures: Files that should be in the index.
    """
    here, changed, gone = set(), {}, {}
    for shard in shards:
        for row in shard.living_table.to_pylist():
            path = row.pop("path")
            here.add(path)
            if not os.path.isfile(path):
                gone[path] = "its file is not there any more"
            elif why := change(path, None if row["hash"] is None else Stamp(**row)):
                changed[path] = why
    missing = {path: why for path, why in skipped.items() if os.path.isfile(path)}
    for path in whole(pictures):
        if path not in here:
            missing.setdefault(path, "it was never predicted and indexed")
    return Status(sum(map(len, shards)), missing, changed, gone)
