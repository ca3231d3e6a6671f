"""Sentences in the columns of a label table, against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval.label_table import FloatLabelTable
from surelabel.retrieval.sentence_label_table import SentenceLabelTable


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=20),
    st.sampled_from([1, -1]),
    st.integers(0, 25),
    st.integers(-4, 4),
)
def test_a_sentence_is_read_like_a_label(values, sign, count, limit):
    line = np.array([values], np.float32)
    order = np.argsort(-line, axis=1, kind="stable").astype(np.int32)
    labels = FloatLabelTable(line + 9, line, order)
    table = SentenceLabelTable(labels, 1, line)
    assert (table.n_rows, table.is_active) == (len(values), None)
    rows = table.best_rows(1, sign, count)
    signed = sign * line[0]
    assert len(set(rows.tolist())) == len(rows) == min(count, len(values))
    assert sorted(signed, reverse=True)[: len(rows)] == signed[rows].tolist()
    assert table.count_reaching(1, sign, limit) == np.count_nonzero(signed >= limit)
    mask = np.ones(len(values), bool)
    table.clear_below_threshold(1, sign, limit, slice(None), mask)
    assert mask.tolist() == (signed >= limit).tolist()
    assert table.logits(1, slice(None)).tolist() == table.tie_values(1, slice(None)).tolist()
    assert table.logits(0, slice(None)).tolist() == (line[0] + 9).tolist()
    assert table.tie_values(0, slice(None)).tolist() == line[0].tolist()
    assert table.best_rows(0, 1, 1).tolist() == labels.best_rows(0, 1, 1).tolist()
