"""Bounds of the score of a formula contain the score of each row."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.formula import has_repeated_label
from surelabel.retrieval.formula_probability import formula_log_probability, read_logits_of_columns
from surelabel.retrieval.formula_scores import bound_scores, score_rows
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas

N = 40


@settings(deadline=None, max_examples=150)
@given(
    formula=formulas(6, max_leaves=6).filter(lambda formula: not has_repeated_label(formula)),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.1, 3.0, 30.0]),
    has_steps=st.booleans(),
)
def test_the_score_is_between_its_bounds(formula, seed, scale, has_steps):
    random = np.random.default_rng(seed)
    scores = np.clip(scale * random.standard_normal((6, N)), -40, 40).astype(np.float32)
    logits = np.round(np.clip(scores / scale, -2, 2)) if has_steps else scores
    rows = random.integers(0, N, 15)
    with tempfile.TemporaryDirectory() as folder:
        paths = file_state_table([f"/nowhere/{row}.jpg" for row in range(N)])
        shard = write_shard(Path(folder), 0, [ShardRows.from_arrays(paths, logits, scores, None)])
        assert bool(shard.layout.step_columns) == has_steps
        values = score_rows(shard.label_table, formula, rows)
        lower = bound_scores(shard.label_table, formula, rows, is_upper=False)
        upper = bound_scores(shard.label_table, formula, rows)
    expected = formula_log_probability(formula, read_logits_of_columns(logits), rows)
    assert np.array_equal(values, np.broadcast_to(expected, len(rows)))
    margin = 1e-9 * (1 + np.abs(values))
    assert (lower <= values + margin).all()
    assert (values <= upper + margin).all()
