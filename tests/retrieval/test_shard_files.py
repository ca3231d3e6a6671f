"""Files of a shard: damage is an error that names the file."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.errors import DataError
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.shard_checksums import shard_checksum
from surelabel.retrieval.shard_files import STEP_TABLE_SCHEMA
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard


def test_a_label_is_compared_once(tmp_path, batch):
    shard = write_shard(tmp_path, 0, [batch(50)])
    shard.mapped_files.check(3)
    shard.mapped_files.verify_checksums([0])
    with (tmp_path / "low-000.npy").open("r+b") as file:
        file.seek(128)
        file.write(bytes(90))
    shard.mapped_files.verify_checksums([0])
    with pytest.raises(DataError, match=r"low-000\.npy is damaged: the checksum of label 0 does"):
        Shard.from_entry(tmp_path, shard.entry).mapped_files.verify_checksums([2, 0])


@pytest.mark.parametrize("name", ["high", "low", "first", "scores", "checksums"])
def test_numbers_of_another_kind_are_refused(tmp_path, batch, name):
    shard = write_shard(tmp_path, 0, [batch(50)])
    file = tmp_path / f"{name}-000.npy"
    file.write_bytes(file.read_bytes().replace(b"<", b">", 1))  # one bit: the order of bytes
    with pytest.raises(
        DataError, match=rf"{name}-000\.npy is damaged: expected shape .*, got .* of >"
    ):
        shard.mapped_files.check(3)


def test_a_flipped_byte_among_the_paths_is_found(tmp_path, batch):
    shard = write_shard(tmp_path, 0, [batch(500)])
    file = tmp_path / "rows-000.parquet"
    data = bytearray(file.read_bytes())
    data[os.path.getsize(file) // 8] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"rows-000\.parquet is damaged: the file cannot be read"):
        _ = Shard.from_entry(tmp_path, shard.entry).active_file_states


@pytest.fixture
def stepped(tmp_path):
    """Shard whose label 1 has a step table: raw scores 0 to 9, log-odds that are steps of 5."""
    scores = np.arange(10, dtype=np.float32)
    lines = np.stack([scores, scores])
    table = file_state_table([f"/nowhere/{row}.jpg" for row in range(10)])
    logits = np.stack([scores, scores // 5])
    shard = write_shard(tmp_path, 0, [ShardRows.from_arrays(table, logits, lines, None)])
    assert shard.layout.step_columns == (1,)
    return shard


def write_steps(shard, columns, schema=STEP_TABLE_SCHEMA):
    """Replace the step tables by one, and return the shard, which is opened again."""
    file = shard.folder / "steps-000.parquet"
    pq.write_table(pa.table(columns, schema=schema), file)
    return Shard.from_entry(shard.folder, shard.entry)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([[], [], []], "expected 1 to 10 steps, got 0"),
        ([[1] * 11, range(11), range(11)], "expected 1 to 10 steps, got 11"),
        ([[1, 0], [0, 5], [0, 1]], "expected the step table of label 1"),
        ([[1, None], [0, 5], [0, 1]], "the step table of label 1 has empty cells"),
        ([[1, 1], [0, None], [0, 1]], "the step table of label 1 has empty cells"),
        ([[1, 1], [0, 5], [None, 1]], "the step table of label 1 has empty cells"),
        ([[1, 1], [0, np.nan], [0, 1]], "label 1: the scores of a step table must be finite"),
        ([[1, 1], [-np.inf, 5], [0, 1]], "label 1: the scores of a step table must be finite"),
        ([[1, 1], [0, 5], [0, np.inf]], "label 1: the log-odds of a step table must be finite"),
        ([[1, 1], [5, 5], [0, 1]], "label 1: the scores of a step table must be increasing"),
        ([[1, 1], [0, 5], [1, 0]], "label 1: the log-odds of a step table must be increasing"),
        ([[1, 1], [0.5, 5], [0, 1]], "at most the lowest raw score, 0; got 0.5"),
    ],
)
def test_a_step_table_that_cannot_be_is_damage(stepped, columns, message):
    assert stepped.mapped_files.read_step_table(1).logits.tolist() == [0, 1]
    shard = write_steps(stepped, columns)
    with pytest.raises(DataError, match=rf"steps-000\.parquet is damaged: .*{message}\. Restore"):
        shard.label_table.logits(1, slice(None))


def test_step_tables_of_other_columns_are_damage(stepped):
    schema = STEP_TABLE_SCHEMA.set(1, pa.field("score", pa.float64()))
    shard = write_steps(stepped, [[1, 1], [0, 5], [0, 1]], schema)
    with pytest.raises(DataError, match=r"damaged: expected the columns .*'score'"):
        shard.mapped_files.read_step_table(1)


def test_the_number_of_steps_is_checked_before_they_are_read(stepped):
    n = 10**6
    shard = write_steps(stepped, [np.ones(n, np.int32), np.arange(n), np.arange(n)])
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="expected 1 to 10 steps, got 1000000"):
        shard.mapped_files.read_step_table(1)
    assert pa.total_allocated_bytes() - before < n


@pytest.mark.parametrize(
    ("bits", "is_valid"),
    [(0x7F7FFFFF, True), (0xFF7FFFFF, True), (0x7F800000, False), (0xFFC00000, False)],
)
def test_values_that_are_not_finite_are_damage(stepped, bits, is_valid):
    folder = stepped.folder
    key = ~np.uint32(bits) if bits >> 31 else np.uint32(bits) | np.uint32(1 << 31)
    for line, (name, half) in enumerate({"high": key >> 16, "low": key & 0xFFFF}.items()):
        plane = np.load(folder / f"{name}-000.npy", mmap_mode="r+")
        plane[0, 4] = half
        np.load(folder / "checksums-000.npy", mmap_mode="r+")[line, 0] = shard_checksum(plane[0])
    shard = Shard.from_entry(folder, stepped.entry)
    if is_valid:
        shard.mapped_files.verify_checksums([0, 1])
        assert shard.label_table.logits(0, [4]).view(np.uint32) == bits
    else:
        with pytest.raises(
            DataError, match=r"high-000\.npy is damaged: the values of label 0 must be finite"
        ):
            shard.mapped_files.verify_checksums([1, 0])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("date", pa.array(["2024"] * 10), "expected the columns"),
        ("width", pa.array([float("nan")] * 10), "expected the columns"),
        ("path", pa.array(range(10)), "expected the columns"),
        ("path", pa.array(["a.jpg"] * 9 + [None]), "a path is missing"),
        ("height", None, "expected the columns"),
    ],
)
def test_a_table_of_rows_with_other_columns_is_damage(tmp_path, batch, name, values, message):
    shard = write_shard(tmp_path, 0, [batch(10)])
    file = tmp_path / "rows-000.parquet"
    table = pq.read_table(file)
    column = table.column_names.index(name)
    if values is None:
        table = table.remove_column(column)
    else:
        table = table.set_column(column, name, values)
    pq.write_table(table, file)
    sizes = shard.files | {file.name: file.stat().st_size}
    tampered = Shard.from_entry(tmp_path, shard.entry | {"files": sizes})

    def read():
        tampered.mapped_files.check(3)
        return tampered.paths.of_rows([0])

    with pytest.raises(DataError, match=rf"rows-000\.parquet is damaged: {message}"):
        read()
