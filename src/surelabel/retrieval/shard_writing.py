"""Writing of a new shard from new predictions and from the rows of older shards."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.files import atomic_file
from surelabel.retrieval.conjunction_search import descending_order_for_conjunction_search
from surelabel.retrieval.shard_checksums import extend_shard_checksum, shard_checksum
from surelabel.retrieval.shard_files import ARRAY_DTYPES, CHECKSUMMED_ARRAYS, INDEX_VERSION
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shards import Shard

ROW_GROUP_SIZE = 1 << 16


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
    files = [_write_shard_file_states(folder / f"rows-{number:03}.parquet", batches)]
    checksums: dict[str, list[int]] = {}

    def write_lines(name: str, lines: Iterable[npt.NDArray[Any]]) -> None:
        checksums[name] = []
        files.append(folder / f"{name}-{number:03}.npy")
        lines = _with_shard_checksums(lines, checksums[name])
        write_shard_array(files[-1], (c, n), ARRAY_DTYPES[name], lines)

    write_lines("logits", _label_lines_of_shards("logits", batches))
    write_lines("scores", _label_lines_of_shards("scores", batches))
    order = map(descending_order_for_conjunction_search, _label_lines_of_shards("logits", batches))
    write_lines("order", order)
    lines = [checksums[name] for name in CHECKSUMMED_ARRAYS[INDEX_VERSION]]
    files.append(folder / f"checksums-{number:03}.npy")
    write_shard_array(files[-1], (len(lines), c), ARRAY_DTYPES["checksums"], lines)
    features_checksum = None
    if batches[0].feature_width is not None:
        files.append(folder / f"features-{number:03}.npy")
        features_checksum = _write_shard_features(files[-1], n, batches)
    sizes = {file.name: file.stat().st_size for file in files}
    return Shard(folder, number, n, sizes, features_checksum=features_checksum)


def write_shard_array(file: Path, shape: tuple[int, int], dtype: Any, parts: Iterable[Any]) -> None:
    """Write a ``.npy`` file part by part.

    The file is not written through a memory map, because a full disk would then crash the process
    instead of raising an error.

    Args:
        file: Path of the new file.
        shape: Shape of the complete array.
        dtype: Data type of the array.
        parts: Rows of the array, or blocks of rows, in order.

    Raises:
        DataError: If the file cannot be written.
    """
    dtype_description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": dtype_description, "fortran_order": False, "shape": shape}
    with atomic_file(file) as temporary, temporary.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(np.ascontiguousarray(part, dtype).data)


def _write_shard_file_states(file: Path, batches: Sequence[ShardRows]) -> Path:
    with atomic_file(file) as temporary:
        pq.write_table(
            pa.concat_tables(batch.file_states for batch in batches),
            temporary,
            row_group_size=ROW_GROUP_SIZE,
            compression="zstd",
            write_page_checksum=True,
        )
    return file


def _write_shard_features(file: Path, n: int, batches: Sequence[ShardRows]) -> int:
    """Write the image features of all batches, and return their checksum."""
    checksum = 0

    def blocks() -> Iterator[npt.NDArray[np.float16]]:
        nonlocal checksum
        for batch in batches:
            for block in batch.read_features():
                stored_block = np.ascontiguousarray(block, np.float16)
                checksum = extend_shard_checksum(checksum, stored_block)
                yield stored_block

    write_shard_array(file, (n, batches[0].feature_width or 0), np.float16, blocks())
    return checksum


def _label_lines_of_shards(
    name: str, batches: Sequence[ShardRows]
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the values of each label in all batches, ``(n,)``."""
    for column in range(batches[0].n_labels):
        yield np.concatenate([batch.read_label(name, column) for batch in batches])


def _with_shard_checksums(
    lines: Iterable[npt.NDArray[Any]], checksums: list[int]
) -> Iterator[npt.NDArray[Any]]:
    """Yield lines, and append the checksum of each line to ``checksums``."""
    for line in lines:
        checksums.append(shard_checksum(line))
        yield line
