"""Write a new shard with new predictions and with the rows of older shards."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.files import atomic_file
from surelabel.retrieval.label_encoding import encode_label
from surelabel.retrieval.shard_array_writing import write_shard_array
from surelabel.retrieval.shard_checksums import extend_shard_checksum
from surelabel.retrieval.shard_label_writing import ShardLabelWriter
from surelabel.retrieval.shard_layout import ShardLayout
from surelabel.retrieval.shard_rows import LabelValues, ShardRows
from surelabel.retrieval.shards import Shard
from surelabel.retrieval.sparse_label_writing import SparseLabelWriter

ROW_GROUP_SIZE = 1 << 13  # rows whose paths are read together to show one hit


def write_shard(
    folder: Path, number: int, batches: Sequence[ShardRows], *, drop_below: float | None = None
) -> Shard:
    """Write the rows of all batches, in the given order, to one new shard.

    Arrays are read and written label by label to save memory. The shard is not part of the index
    until ``index.json`` lists the shard. If all batches are in sparse form, the new shard is too.

    Args:
        folder: Folder of the index.
        number: Number of the new shard.
        batches: Rows to write, at least one batch, all with the same labels and feature width.
        drop_below: Lowest probability whose log-odds are stored, for a shard in sparse form. If
            None, the largest limit of the batches is used, if all batches are in sparse form.

    Returns:
        The new shard, without removed rows.

    Raises:
        DataError: If the folder cannot be written, or the data of a batch is damaged.
    """
    n, c = sum(map(len, batches)), batches[0].n_labels
    limits = [batch.drop_below for batch in batches if batch.drop_below is not None]
    if drop_below is None and all(batch.is_sparse for batch in batches):
        drop_below = max(limits)
    _write_shard_file_states(folder / f"rows-{number:03}.parquet", batches)
    if drop_below is None:
        layout = _write_dense_labels(folder, number, n, batches)
    else:
        limits.append(drop_below)
        with ExitStack() as stack:
            sparse_writer = SparseLabelWriter(stack, folder, number, n, drop_below)
            for column in range(c):
                sparse_writer.write(_label_of_shards(batches, column)[0])
        layout = sparse_writer.layout
    names, features_checksum = layout.required_files(number), None
    if batches[0].feature_width is not None:
        file = folder / f"features-{number:03}.npy"
        features_checksum = _write_shard_features(file, batches)
        names.add(file.name)
    sizes = {name: (folder / name).stat().st_size for name in sorted(names)}
    return Shard(
        folder,
        number,
        layout,
        sizes,
        features_checksum=features_checksum,
        drop_below=max(limits, default=None),
    )


def _write_dense_labels(
    folder: Path, number: int, n_rows: int, batches: Sequence[ShardRows]
) -> ShardLayout:
    """Write the log-odds of all rows of each label, and return the layout of the shard."""
    n_labels = batches[0].n_labels
    with ExitStack() as stack:
        writer = ShardLabelWriter(stack, folder, number, n_rows)
        for column in range(n_labels):
            writer.write(column, encode_label(*_label_of_shards(batches, column)))
    file = folder / f"checksums-{number:03}.npy"
    write_shard_array(file, n_labels, np.uint32, writer.checksums.values())
    return writer.layout


def _write_shard_file_states(file: Path, batches: Sequence[ShardRows]) -> None:
    with atomic_file(file) as temporary:
        pq.write_table(
            pa.concat_tables(batch.file_states for batch in batches),
            temporary,
            row_group_size=ROW_GROUP_SIZE,
            compression="zstd",
            write_page_checksum=True,
        )


def _write_shard_features(file: Path, batches: Sequence[ShardRows]) -> int:
    """Write the image features of all batches, and return their checksum."""
    checksum = 0

    def blocks() -> Iterator[npt.NDArray[np.float16]]:
        nonlocal checksum
        for batch in batches:
            for block in batch.read_features():
                stored_block = np.ascontiguousarray(block, np.float16)
                checksum = extend_shard_checksum(checksum, stored_block)
                yield stored_block

    write_shard_array(file, batches[0].feature_width or 0, np.float16, blocks())
    return checksum


def _label_of_shards(batches: Sequence[ShardRows], column: int) -> LabelValues:
    """Return the log-odds and the raw scores of one label in all batches.

    If a batch has no raw scores of the label, the raw scores of the other batches are dropped.
    """
    parts = [batch.read_label(column) for batch in batches]
    scores = [part_scores for _, part_scores in parts if part_scores is not None]
    logits = np.concatenate([part_logits for part_logits, _ in parts])
    return logits, np.concatenate(scores) if len(scores) == len(parts) else None
