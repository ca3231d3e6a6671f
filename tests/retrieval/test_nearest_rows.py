"""Nearest rows of several shards, against sorting all cosines."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.errors import DataError, InputError
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.nearest_rows import (
    NearestRows,
    nearest_rows_of_shards,
    row_blocks_for_search,
    select_nearest_rows,
    unit_vectors,
)
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard


def shard_of(folder, number, vectors, removed=()):
    n = len(vectors)
    logits = np.zeros((1, n), np.float32)
    paths = file_state_table([f"/nowhere/{number}-{row}.jpg" for row in range(n)])
    shard = write_shard(folder, number, [ShardRows.from_arrays(paths, logits, logits, vectors)])
    return shard.with_removed_rows(removed)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=3),
    count=st.integers(1, 30),
)
def test_the_nearest_rows_are_those_of_sorting_all_cosines(seed, sizes, count):
    random = np.random.default_rng(seed)
    vectors = [np.round(random.standard_normal((n, 3))).astype(np.float16) for n in sizes]
    removed = [np.flatnonzero(random.random(n) < 0.2) for n in sizes]
    query = random.standard_normal(3)
    with tempfile.TemporaryDirectory() as folder:
        shards = [
            shard_of(Path(folder), number, *values)
            for number, values in enumerate(zip(vectors, removed, strict=True))
        ]
        found = nearest_rows_of_shards(shards, query, count)
        blocks = [row_blocks_for_search(shard) for shard in shards]
        read = [rows.tolist() for block in blocks for rows, _ in block]
    assert read == [sorted({*range(n)} - {*rows}) for n, rows in zip(sizes, removed, strict=True)]
    active = np.concatenate(
        [~np.isin(np.arange(n), r) for n, r in zip(sizes, removed, strict=True)]
    )
    unit = unit_vectors(np.concatenate(vectors).astype(np.float32))
    cosines = (unit @ unit_vectors(query[None].astype(np.float32))[0]).astype(np.float64)
    rows = np.flatnonzero(active)
    expected = select_nearest_rows(rows, cosines[rows], count)
    np.testing.assert_allclose(found.cosines, expected.cosines, atol=1e-6)
    np.testing.assert_allclose(found.cosines, cosines[found.rows], atol=1e-6)
    assert len(set(found.rows.tolist())) == len(found.rows) == min(count, len(rows))


def test_equal_rows_are_in_order_and_are_divided_among_shards():
    nearest = select_nearest_rows(np.array([7, 3, 5]), np.array([0.5, 0.5, 0.9]), 2)
    assert (nearest.rows.tolist(), nearest.cosines.tolist()) == ([5, 3], [0.9, 0.5])
    part = NearestRows(np.array([9, 3, 5]), np.array([0.9, 0.8, 0.7])).between(4, 10)
    assert part.rows.tolist() == [5, 1]
    assert part.cosines_of(np.array([1, 5])).tolist() == [0.7, 0.9]


def test_vectors_that_do_not_fit_are_refused(tmp_path):
    vectors = np.ones((3, 4), np.float16)
    shard = shard_of(tmp_path, 0, vectors)
    with pytest.raises(InputError, match=r"must have the width of .*, 4; got 3"):
        nearest_rows_of_shards([shard], np.ones(3), 2)
    vectors[1] = np.inf
    with pytest.raises(DataError, match="an image vector is not finite"):
        nearest_rows_of_shards([shard_of(tmp_path, 1, vectors)], np.ones(4), 2)
