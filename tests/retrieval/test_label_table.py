"""The label table of arrays has the thresholds and the order of the arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval.label_table import FloatLabelTable

VALUES = st.sampled_from([-40.0, -1.5, 0.0, 0.1, 2.0, 40.0])


@given(values=st.lists(VALUES, min_size=1, max_size=12), limit=VALUES | st.floats(-50, 50))
def test_thresholds_and_order_are_those_of_the_values(values, limit):
    logits = np.array([values], np.float32)
    table = FloatLabelTable(logits, 2 * logits, np.argsort(-logits, axis=1).astype(np.int32))
    for sign in (1, -1):
        signed = sign * logits[0].astype(float)
        reaches = np.ones(len(values), bool)
        table.clear_below_threshold(0, sign, limit, slice(0, len(values)), reaches)
        assert reaches[signed >= limit].all()
        assert not reaches[signed < limit - 1e-5 * (1 + abs(limit))].any()
        assert table.count_reaching(0, sign, limit) == (signed >= limit).sum()
        best = table.best_rows(0, sign, 3)
        assert np.array_equal(signed[best], np.sort(signed)[::-1][:3])
    assert table.n_rows == len(values)
    assert np.array_equal(table.tie_values(0, best), 2 * table.logits(0, best))
