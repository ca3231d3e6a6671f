"""Mean average precision over queries."""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from surelabel.errors import InputError
from surelabel.retrieval.protocol import mean_average_precision_of_queries, number_of_queries

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "retrieval.json").read_text())


def test_the_recorded_precisions_and_counts_come_out():
    got = mean_average_precision_of_queries(GOLDEN["log_odds"], GOLDEN["targets"], most_literals=5)
    assert got.mean == pytest.approx(GOLDEN["mean"], abs=1e-12)
    assert sum(got.queries.values()) == GOLDEN["queries"]
    for length, expected in GOLDEN["per_length"].items():
        n = int(length)
        assert got.per_length[n] == pytest.approx(expected["mAP"], abs=1e-12)
        assert got.skipped[n] == expected["skipped_no_relevant"]
        assert got.queries[n] + got.skipped[n] == expected["queries"]


@pytest.mark.parametrize("c", ["20", "80"])
def test_queries_are_counted_as_recorded(c):
    counts = {n: number_of_queries(int(c), int(n)) for n in GOLDEN["counts"][c]}
    assert counts == GOLDEN["counts"][c]


def test_ties_are_judged_as_scikit_learn_judges_them():
    random = np.random.default_rng(0)
    logits, targets = np.round(random.standard_normal((40, 4))), random.random((40, 4)) < 0.3
    expected = []
    for length in (1, 2):  # sums of three depend on their order in the last digit, and break ties
        for columns in combinations(range(4), length):
            for signs in product((1, -1), repeat=length):
                if 1 not in signs:
                    continue
                literals = list(zip(columns, signs, strict=True))
                score = np.sum([-np.log1p(np.exp(-s * logits[:, j])) for j, s in literals], axis=0)
                holds = np.all([targets[:, j] == (s > 0) for j, s in literals], axis=0)
                if holds.any():
                    expected.append(average_precision_score(holds, score.round(9)))
    got = mean_average_precision_of_queries(logits, targets, most_literals=2)
    assert sum(got.queries.values()) == len(expected)
    assert got.mean == pytest.approx(np.mean(expected), abs=1e-9)


def test_without_any_fulfilled_query_the_mean_is_undefined():
    got = mean_average_precision_of_queries(np.zeros((3, 2)), np.zeros((3, 2)))
    assert np.isnan(got.mean)
    assert (got.queries, got.skipped) == ({1: 0, 2: 0}, {1: 2, 2: 3})


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(InputError, match="targets must be 0 or 1"):
        mean_average_precision_of_queries([[1.0]], [[np.nan]])
    with pytest.raises(InputError, match="must have axes"):
        mean_average_precision_of_queries([[1.0]], [[1, 0]])
    with pytest.raises(InputError, match=r"most_literals must be at least 1\. Got 0"):
        mean_average_precision_of_queries([[1.0]], [[1]], most_literals=0)
