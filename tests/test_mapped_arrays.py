import resource
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel import mapped_arrays
from surelabel.errors import DataError
from surelabel.mapped_arrays import (
    MIN_MAPPED_BYTES,
    is_mapped_array,
    mapped_zeros,
    row_blocks,
    to_mapped_array,
)

LARGE = (MIN_MAPPED_BYTES // 8, 1)


def test_only_large_arrays_are_in_files(tmp_path):
    assert is_mapped_array(mapped_zeros(LARGE, np.float64, folder=tmp_path))
    assert not is_mapped_array(mapped_zeros((LARGE[0] - 1, 1), np.float64, folder=tmp_path))
    assert not mapped_zeros(LARGE, np.float64).any()


def test_the_files_have_no_name(tmp_path):
    array = mapped_zeros(LARGE, np.float64, folder=tmp_path)
    array[5] = 3.0
    assert list(tmp_path.iterdir()) == []
    assert array.sum() == 3.0


def test_a_folder_that_cannot_be_written_is_replaced_by_the_temporary_folder(tmp_path):
    (tmp_path / "file").touch()
    assert is_mapped_array(mapped_zeros(LARGE, np.float64, folder=tmp_path / "file" / "cache"))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_copies_in_files_are_equal(monkeypatch, dtype, order):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr(mapped_arrays, "BYTES_PER_BLOCK", 64)
    given_array = np.asarray(np.arange(60).reshape(20, 3) % 5, dtype=dtype, order=order)
    for array in (given_array, given_array[::2], given_array[:, 1]):
        copy = to_mapped_array(array)
        assert is_mapped_array(copy)
        assert copy.dtype == dtype
        np.testing.assert_array_equal(copy, array)
    np.testing.assert_array_equal(to_mapped_array(given_array, dtype=np.float32), given_array)


def test_a_mapped_array_and_its_rows_are_not_copied_again():
    array = mapped_zeros((2 * LARGE[0], 1), np.float64)
    for rows in (array, array[: LARGE[0]]):
        assert np.shares_memory(to_mapped_array(rows), array)


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 99))
def test_blocks_are_all_rows_in_order(n_rows, n_columns, n_bytes):
    array = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    blocks = [array[rows] for rows in row_blocks(array, n_bytes=n_bytes)]
    assert all(len(block) for block in blocks)
    assert np.array_equal(np.concatenate([array[:0], *blocks]), array)


def test_a_mapped_array_takes_no_memory_of_the_process():
    n_bytes = 8 * MIN_MAPPED_BYTES
    tracemalloc.start()
    array = mapped_zeros(n_bytes // 8, np.float64)
    array += 1.0
    copy = to_mapped_array(array, dtype=np.float32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copy.sum() == n_bytes // 8
    assert peak <= mapped_arrays.BYTES_PER_BLOCK + 2**20


@pytest.mark.parametrize("make", [mapped_zeros, lambda s, d: to_mapped_array(np.zeros(s, d))])
def test_a_full_disk_is_one_line_that_names_the_folders(make):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))  # as a disk with 1 MiB left
    try:
        with pytest.raises(DataError, match=r"4 MiB .* File too large. Free disk space") as error:
            make(LARGE, np.float64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(error.value)
