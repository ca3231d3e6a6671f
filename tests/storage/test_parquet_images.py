"""Cells of image columns, in any order and with little memory."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.errors import DataError
from surelabel.storage import parquet_images
from surelabel.storage.parquet_images import (
    ParquetImages,
    cached_parquet_images,
    open_parquet_file,
    parquet_image_columns,
)

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
CELLS = [None if row == 7 else bytes([row]) * (row + 1) for row in range(40)]


@pytest.fixture
def table(tmp_path):
    path = str(tmp_path / "t.parquet")
    structs = [None if cell is None else {"bytes": cell, "path": "x"} for cell in CELLS]
    columns = {"image": pa.array(structs, IMAGE), "a.b/c": CELLS, "n": range(40)}
    pq.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), path, row_group_size=15)
    return path


@pytest.mark.parametrize("batch_bytes", [1, 100, 2**26])
@pytest.mark.parametrize("column", ["image", "a.b/c"])
def test_each_cell_is_read_in_any_order(table, monkeypatch, column, batch_bytes):
    monkeypatch.setattr(parquet_images, "BATCH_BYTES", batch_bytes)
    reader = ParquetImages(table, table, column)
    assert reader.n_rows == 40
    for row in [*range(40), 3, 2, 39, 0, 16, 14, 15]:
        if CELLS[row] is not None:
            assert reader.cell(row) == CELLS[row]


def test_an_empty_cell_and_a_row_that_is_not_there_are_named(table):
    reader = ParquetImages(table, table, "image")
    with pytest.raises(DataError, match=r"^empty cell \(null\)$"):
        reader.cell(7)
    with pytest.raises(DataError, match=r"the row number must be in \[0, 40\)"):
        reader.cell(40)
    with pytest.raises(DataError, match=r"no image column 'n'. Image columns: 'image', 'a\.b/c'\."):
        ParquetImages(table, table, "n")


def test_a_reader_is_cached_until_the_table_changes(table):
    first = cached_parquet_images(table, table, "image", 1)
    assert cached_parquet_images(table, lambda: table, "image", 1) is first
    assert cached_parquet_images(table, lambda: table, "image", 2) is not first


def test_image_columns_are_bytes_or_images_of_datasets():
    other = pa.struct([("bytes", pa.binary()), ("size", pa.int64())])
    kinds = {"a": IMAGE, "b": pa.large_binary(), "c": pa.string(), "d": other}
    assert parquet_image_columns(pa.schema(kinds)) == ["a", "b"]


def test_another_file_is_no_table(tmp_path):
    path = str(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and other bytes PAR1")
    with pytest.raises(DataError, match=r"x\.parquet must be a Parquet table; got: [^\n]*$"):
        open_parquet_file(path, path)


def test_damaged_pages_are_an_error_of_one_line(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"image": [bytes([n]) * 5000 for n in range(9)]}), path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^damaged table \([^\n]*\)$"):
        ParquetImages(str(path), str(path), "image").cell(0)
