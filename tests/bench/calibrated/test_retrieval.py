import numpy as np
import pytest

from surelabel.arrays import LOGIT_LIMIT
from surelabel.bench.calibrated.plan import FULL, CalibrationPlan
from surelabel.bench.calibrated.readouts import HeadReadout
from surelabel.bench.calibrated.retrieval import (
    MAX_SCORED_PAIRS,
    break_calibrated_retrieval_ties,
    calibrated_retrieval_exact_length,
    measure_calibrated_retrieval,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Run
from surelabel.records import LabelledFeatures
from surelabel.retrieval.conjunction_map import (
    mean_average_precision_of_conjunctions,
    number_of_queries_in_conjunction_map,
)


@pytest.fixture
def part():
    random = np.random.default_rng(0)
    targets = (random.random((60, 4)) < 0.4).astype(float)
    return LabelledFeatures(random.normal(size=(60, 2)), list("abcd"), targets)


@pytest.fixture
def read(part):
    scores = np.random.default_rng(1).normal(size=(60, 4)) + part.targets
    return HeadReadout("a row", "spa", Run(), (scores,), (scores,))


def test_numbers_are_those_of_the_retrieval_metric(read, part, tmp_path):
    plan = CalibrationPlan(max_query_length=4, max_exact_length=2, queries_per_shape=10)
    found = measure_calibrated_retrieval(read, part, plan, ResultCache(tmp_path))
    expected = mean_average_precision_of_conjunctions(
        read.logits[0], part.targets, max_literals=4, max_exact_literals=2, sample_size=10
    )
    assert dict(zip(found["length"], found["map"], strict=True)) == expected.per_length
    assert found["standard_error"] == [point.standard_error for point in expected.curve]
    assert dict(zip(found["length"], found["unfulfilled"], strict=True)) == expected.skipped


def test_lengths_of_which_all_queries_are_evaluated_have_no_error(read, part, tmp_path):
    found = measure_calibrated_retrieval(
        read,
        part,
        CalibrationPlan(max_query_length=3, max_exact_length=2, queries_per_shape=10),
        ResultCache(tmp_path),
    )
    assert found["max_exact_length"] == 2
    assert found["standard_error"][:2] == [0, 0]
    assert found["standard_error"][2] > 0


def test_it_is_worked_out_once_and_never_for_other_truths(read, part, tmp_path):
    cache, plan = ResultCache(tmp_path), CalibrationPlan(max_query_length=2, max_exact_length=2)
    first = measure_calibrated_retrieval(read, part, plan, cache)
    assert measure_calibrated_retrieval(read, part, plan, cache) == first
    assert len(list(tmp_path.iterdir())) == 1
    turned = LabelledFeatures(part.features, list("abcd"), 1 - part.targets)
    assert measure_calibrated_retrieval(read, turned, plan, cache)["map"] != first["map"]


@pytest.mark.parametrize(("n", "c"), [(10_000, 80), (1729, 11), (10_000, 1000), (10, 3)])
def test_only_what_takes_minutes_is_evaluated_exactly(n, c):
    exact = calibrated_retrieval_exact_length(n, c, FULL)
    work = [
        n * sum(number_of_queries_in_conjunction_map(c, k) for k in range(1, e + 1))
        for e in (exact, exact + 1)
    ]
    assert work[0] <= MAX_SCORED_PAIRS
    assert exact == min(FULL.max_exact_length, c) or work[1] > MAX_SCORED_PAIRS


def test_what_a_map_ties_goes_by_the_raw_score():
    scores = np.random.default_rng(2).normal(-3, 2, size=(500, 3))
    logits = np.where(scores < -2, -LOGIT_LIMIT, scores)
    found = break_calibrated_retrieval_ties(logits, scores)
    for column in range(3):
        order = np.argsort(scores[:, column])
        assert (np.diff(found[order, column]) > 0).all()
    np.testing.assert_array_equal(found[scores >= -2], logits[scores >= -2])
    assert found.min() >= -LOGIT_LIMIT - 0.1


def test_without_ties_nothing_is_changed():
    logits = np.array([[1.0, -39.0]])
    assert break_calibrated_retrieval_ties(logits, logits) is logits
    np.testing.assert_array_equal(
        break_calibrated_retrieval_ties(np.full((2, 1), -40.0), np.ones((2, 1))), [[-40.1]] * 2
    )
