"""Write a new shard with new predictions and with the rows of older shards."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.files import atomic_file
from surelabel.retrieval.label_encoding import EncodedLabel, encode_label
from surelabel.retrieval.shard_array_writing import write_shard_array
from surelabel.retrieval.shard_checksums import extend_shard_checksum
from surelabel.retrieval.shard_label_writing import ShardLabelWriter
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shards import Shard

ROW_GROUP_SIZE = 1 << 13  # rows whose paths are read together to show one hit


def write_shard(folder: Path, number: int, batches: Sequence[ShardRows]) -> Shard:
    """Write the rows of all batches, in the given order, to one new shard.

    Arrays are read and written label by label to save memory. The shard is not part of the index
    until ``index.json`` lists the shard.

    Args:
        folder: Folder of the index.
        number: Number of the new shard.
        batches: Rows to write, at least one batch, all with the same labels and feature width.

    Raises:
        DataError: If the folder cannot be written, or the data of a batch is damaged.
    """
    n, c = sum(map(len, batches)), batches[0].n_labels
    _write_shard_file_states(folder / f"rows-{number:03}.parquet", batches)
    with ExitStack() as stack:
        writer = ShardLabelWriter(stack, folder, number, n)
        for column in range(c):
            writer.write(column, _encode_label_of_shards(batches, column))
    file = folder / f"checksums-{number:03}.npy"
    write_shard_array(file, c, np.uint32, writer.checksums.values())
    names, features_checksum = writer.layout.required_files(number), None
    if batches[0].feature_width is not None:
        file = folder / f"features-{number:03}.npy"
        features_checksum = _write_shard_features(file, batches)
        names.add(file.name)
    sizes = {name: (folder / name).stat().st_size for name in sorted(names)}
    return Shard(folder, number, writer.layout, sizes, features_checksum=features_checksum)


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


def _encode_label_of_shards(batches: Sequence[ShardRows], column: int) -> EncodedLabel:
    """Return the encoded values of one label in all batches.

    If a batch has no raw scores of the label, the raw scores of the other batches are dropped.
    """
    parts = [batch.read_label(column) for batch in batches]
    scores = [part_scores for _, part_scores in parts if part_scores is not None]
    logits = np.concatenate([part_logits for part_logits, _ in parts])
    return encode_label(logits, np.concatenate(scores) if len(scores) == len(parts) else None)
