"""The label table on planes gives the values that were written, and the right thresholds."""

import sys
import tempfile
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.errors import DataError
from surelabel.retrieval import formula_search, shard_label_writing, shard_layout
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.formula_search import search_formula
from surelabel.retrieval.label_table import FloatLabelTable
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas


@pytest.fixture
def few_ordered_rows(monkeypatch):
    """Store three rows of each end of a label in order."""
    monkeypatch.setattr(shard_layout, "ORDERED_ROWS", 3)
    monkeypatch.setattr(shard_label_writing, "ORDERED_ROWS", 3)


def table_of(folder, logits, scores):
    paths = file_state_table([f"/nowhere/{row}.jpg" for row in range(logits.shape[1])])
    rows = ShardRows.from_arrays(paths, logits, scores, None)
    return write_shard(Path(folder), 0, [rows]).label_table


LEVELS = [-40.0, -40.0, -1.5, -0.0, 0.0, 0.25, 0.2500001, 40.0]
VALUES = st.sampled_from([np.float32(level) for level in LEVELS])


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n=st.integers(1, 12))
@pytest.mark.usefixtures("few_ordered_rows")
def test_all_values_and_thresholds_are_those_of_the_arrays(data, n):
    line = st.lists(VALUES, min_size=n, max_size=n)
    scores = np.array([data.draw(line) for _ in range(3)], np.float32)
    logits = np.stack([scores[0], np.sort(LEVELS).searchsorted(scores[1]) // 4, data.draw(line)])
    logits = logits.astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        table = table_of(folder, logits, scores)
        rows = np.array(data.draw(st.lists(st.integers(0, n - 1))), np.int64)
        for column in range(3):
            for part in (rows, slice(0, n), slice(n // 2, n)):
                assert np.array_equal(table.logits(column, part), logits[column, part])
                assert np.array_equal(table.tie_values(column, part), scores[column, part])
            for sign in (1, -1):
                limit = data.draw(VALUES | st.floats(-50, 50) | st.sampled_from([np.inf, -np.inf]))
                check_threshold(table, column, sign, float(limit), logits[column])


def check_threshold(table, column, sign, limit, logits):
    """Check the rows that reach a threshold, and the rows in order."""
    signed = sign * logits.astype(np.float64)
    is_candidate = np.ones(len(logits), bool)
    is_candidate[0] = False
    table.clear_below_threshold(column, sign, limit, slice(0, len(logits)), is_candidate)
    assert is_candidate[1:][signed[1:] >= limit].all()
    assert not is_candidate[0]
    is_far_below = signed < limit - 1 - abs(limit) / 64
    assert not is_candidate[is_far_below & (table.tie_values(column, slice(None)) == logits)].any()
    count = table.count_reaching(column, sign, limit)
    n_reaching = int((signed >= limit).sum())
    assert count == (n_reaching if n_reaching < 3 or len(logits) <= 3 else None)
    best = table.best_rows(column, sign, 2)
    assert best.dtype == np.int64
    assert np.array_equal(signed[best], np.sort(signed)[::-1][:2])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    kind=st.sampled_from(["spread", "saturated", "tied", "steps"]),
    formula=formulas(4),
    k=st.integers(1, 70),
    few=st.sampled_from([0.0, 1 / 32, 1.0]),
)
def test_a_search_finds_the_rows_of_the_format_of_0_1_0(seed, n, kind, formula, k, few):
    random = np.random.default_rng(seed)
    logits = random.standard_normal((4, n)) + random.standard_normal(n)
    if kind == "saturated":
        logits = np.clip(30 * logits, -40, 40)
    if kind == "tied":
        logits = np.round(logits / 2)
    logits, scores = logits.astype(np.float32), np.round(random.standard_normal((4, n)), 1)
    if kind == "steps":
        scores, logits = logits, np.floor(logits)
    scores = scores.astype(np.float32)
    order = np.argsort(-logits, axis=1).astype(np.int32)
    expected = search_formula(FloatLabelTable(logits, scores, order), formula, k)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_layout, "ORDERED_ROWS", 5)
        patch.setattr(shard_label_writing, "ORDERED_ROWS", 5)
        patch.setattr(formula_search, "BLOCK_ROWS", 16)
        patch.setattr(formula_search, "SAMPLED_ROWS", 3)
        patch.setattr(formula_search, "SPARSE_SHARE", few)
        found = search_formula(table_of(folder, logits, scores), formula, k)
    for values, others in zip(astuple(found), astuple(expected), strict=True):
        assert np.array_equal(values, others)


def test_a_scan_of_the_high_plane_leaves_few_rows_that_are_below_the_threshold(tmp_path):
    logits = np.random.default_rng(0).standard_normal((1, 20_000)).astype(np.float32)
    table = table_of(tmp_path, logits, logits)
    for sign in (1, -1):
        is_candidate = np.ones(20_000, bool)
        table.clear_below_threshold(0, sign, 1.0, slice(0, 20_000), is_candidate)
        n_reaching = np.count_nonzero(sign * logits >= 1)
        assert n_reaching <= np.count_nonzero(is_candidate) < 1.02 * n_reaching


@pytest.mark.parametrize("row", [-1, 20])
@pytest.mark.parametrize(("name", "sign"), [("first", 1), ("last", -1)])
def test_a_row_number_out_of_range_is_damage(tmp_path, name, sign, row):
    logits = np.random.default_rng(0).standard_normal((2, 20)).astype(np.float32)
    table = table_of(tmp_path, logits, logits)
    np.load(tmp_path / f"{name}-000.npy", mmap_mode="r+")[1, 7] = row
    assert len(table.best_rows(0, sign, 3)) == len(table.best_rows(1, -sign, 3)) == 3
    message = rf"{name}-000\.npy is damaged: row numbers of label 1 must be in \[0, 20\)\. Restore"
    with pytest.raises(DataError, match=message):
        table.best_rows(1, sign, 3)
    with pytest.raises(DataError, match=message):
        table.count_reaching(1, sign, 0.0)
