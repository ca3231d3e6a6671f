"""The sparse label table gives what a table with all log-odds gives, in a search and for rows."""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.retrieval import formula_search, sparse_label_table
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.formula_search import search_formula
from surelabel.retrieval.label_table import FloatLabelTable
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas

LEVELS = [-40.0, -7.5, -3.0, -3.0, -1.0, -0.0, 0.0, 0.25, 2.0, 40.0]


def shard_of(folder, logits, drop_below):
    """Shard in sparse form on disk, opened from its entry."""
    paths = file_state_table([f"/nowhere/{row}.jpg" for row in range(logits.shape[1])])
    rows = ShardRows.from_arrays(paths, logits, logits, None)
    entry = write_shard(Path(folder), 0, [rows], drop_below=drop_below).entry
    shard = Shard.from_entry(Path(folder), entry)
    shard.mapped_files.check(len(logits))
    return shard


def dense_values(logits, drop_below):
    """Log-odds with the mean of the small probabilities of each label, by a loop."""
    values = logits.copy()
    for line in values:
        is_small = expit(line.astype(float)) < drop_below
        if is_small.any():
            mean = expit(line[is_small].astype(float)).mean()
            line[is_small] = np.log(mean / (1 - mean))
    return values


def random_logits(random, n, kind):
    logits = 3 * random.standard_normal((4, n)) - 2 + random.standard_normal(n)
    if kind == "tied":
        logits = np.round(logits / 2)
    if kind == "empty":
        logits[1] = -9 - np.abs(logits[1])  # a label without stored rows
        logits[2] = np.abs(logits[2])  # a label without dropped rows
    if kind == "levels":
        logits = random.choice(LEVELS, (4, n))
    return np.clip(logits, -40, 40).astype(np.float32)


CASES = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 60),
    "kind": st.sampled_from(["spread", "tied", "empty", "levels"]),
    "drop_below": st.sampled_from([1e-9, 0.01, 0.1, 0.3, 0.5]),
}


@settings(deadline=None, max_examples=50)
@given(**CASES, data=st.data())
def test_all_values_and_thresholds_are_those_of_the_dense_values(seed, n, kind, drop_below, data):
    random = np.random.default_rng(seed)
    logits = random_logits(random, n, kind)
    expected = dense_values(logits, drop_below)
    with tempfile.TemporaryDirectory() as folder:
        table = shard_of(folder, logits, drop_below).label_table
        for column in range(4):
            rows = random.integers(0, n, 7)
            parts = [rows, slice(None), slice(n // 3, n // 2), slice(n // 2, 2 * n), slice(0, n, 2)]
            for part in parts:
                assert np.array_equal(table.logits(column, part), expected[column, part])
                assert np.array_equal(table.tie_values(column, part), expected[column, part])
            for sign in (1, -1):
                signed = sign * expected[column].astype(float)
                bounds = table.score_bounds(column, sign, rows, is_upper=True)
                assert np.array_equal(
                    bounds, table.score_bounds(column, sign, rows, is_upper=False)
                )
                np.testing.assert_allclose(np.exp(bounds), expit(signed[rows]), rtol=1e-12)
                limit = data.draw(
                    st.sampled_from([*signed.tolist(), -np.inf, np.inf]) | st.floats(-50, 50)
                )
                check_threshold(table, column, sign, limit, signed, int(random.integers(0, 2 * n)))


def check_threshold(table, column, sign, limit, signed, count):
    n = len(signed)
    best = table.best_rows(column, sign, count)
    assert best.dtype == np.int64
    assert best.tolist() == np.lexsort((np.arange(n), -signed))[:count].tolist()
    n_reaching = int((signed >= limit).sum())
    assert table.count_reaching(column, sign, limit) in (n_reaching, None)
    start = n // 3
    is_candidate = np.ones(n - start, bool)
    is_candidate[:1] = False
    table.clear_below_threshold(column, sign, limit, slice(start, n), is_candidate)
    reaches = signed[start:] >= limit
    reaches[:1] = False
    assert np.array_equal(is_candidate, reaches)


@settings(deadline=None, max_examples=80)
@given(
    **CASES,
    formula=formulas(4),
    k=st.integers(1, 70),
    few=st.sampled_from([0.0, 1 / 32, 1.0]),
    allowed=st.sampled_from([0.1, 0.7, 1.0]),
)
def test_a_search_finds_what_a_search_of_all_values_finds(
    seed, n, kind, drop_below, formula, k, few, allowed
):
    random = np.random.default_rng(seed)
    logits = random_logits(random, n, kind)
    values = dense_values(logits, drop_below)
    is_allowed = random.random(n) < allowed if allowed < 1 else None
    order = np.argsort(-values, axis=1, kind="stable").astype(np.int32)
    expected = search_formula(FloatLabelTable(values, values, order), formula, k, is_allowed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(formula_search, "HEAD_ROWS", 4)
        patch.setattr(formula_search, "BLOCK_ROWS", 16)
        patch.setattr(formula_search, "SAMPLED_ROWS", 3)
        patch.setattr(formula_search, "SPARSE_SHARE", few)
        table = shard_of(folder, logits, drop_below).label_table
        found = search_formula(table, formula, k, is_allowed)
    for values_found, others in zip(astuple(found), astuple(expected), strict=True):
        assert np.array_equal(values_found, others)


@pytest.fixture
def shard(tmp_path):
    logits = np.random.default_rng(0).normal(-4, 2, (40, 500)).astype(np.float32)
    return shard_of(tmp_path, logits, 0.05), dense_values(logits, 0.05)


def test_a_label_is_read_once_unless_the_cache_is_full(shard, monkeypatch):
    table, read = shard[0].label_table, []
    read_group = table.files._read_label_group
    files = type(table.files)
    monkeypatch.setattr(
        files, "_read_label_group", lambda *key: read.append(key[3]) or read_group(*key[1:])
    )
    for column in (3, 4, 3, 3, 4):
        table.logits(column, slice(None))
    assert read == [3, 4]
    monkeypatch.setattr(sparse_label_table, "CACHED_LABEL_BYTES", 1)
    for column in (5, 3, 5, 5):
        table.logits(column, slice(None))
    assert read == [3, 4, 5, 3, 5]
    assert list(table._labels) == [5]


def test_several_threads_read_the_same_values(shard, monkeypatch):
    table, expected = shard[0].label_table, shard[1]
    monkeypatch.setattr(sparse_label_table, "CACHED_LABEL_BYTES", 2000)
    columns = np.random.default_rng(1).integers(0, 40, 400).tolist()
    with ThreadPoolExecutor(8) as pool:
        lines = list(pool.map(lambda column: table.logits(column, slice(None)), columns))
    assert all(
        np.array_equal(line, expected[column]) for line, column in zip(lines, columns, strict=True)
    )
    assert len(table._labels) < 40
