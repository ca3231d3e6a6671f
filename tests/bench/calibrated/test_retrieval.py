import numpy as np
import pytest

from surelabel.bench.calibrated.plan import FULL, Plan
from surelabel.bench.calibrated.reads import Read
from surelabel.bench.calibrated.retrieval import MOST, most_exact, retrieval, untied
from surelabel.bench.cells import Cells
from surelabel.config import Run
from surelabel.records import LOGIT_LIMIT, LabelledFeatures
from surelabel.retrieval.protocol import mean_average_precision_of_queries, number_of_queries


@pytest.fixture
def part():
    random = np.random.default_rng(0)
    targets = (random.random((60, 4)) < 0.4).astype(float)
    return LabelledFeatures(random.normal(size=(60, 2)), list("abcd"), targets)


@pytest.fixture
def read(part):
    scores = np.random.default_rng(1).normal(size=(60, 4)) + part.targets
    return Read("a row", "spa", Run(), (scores,), (scores,))


def test_numbers_are_those_of_the_protocol(read, part, tmp_path):
    plan = Plan(longest=4, exact=2, sample=10)
    found = retrieval(read, part, plan, Cells(tmp_path))
    expected = mean_average_precision_of_queries(
        read.logits[0], part.targets, most_literals=4, exact_literals=2, sample=10
    )
    assert dict(zip(found["length"], found["map"], strict=True)) == expected.per_length
    assert found["error"] == [point.error for point in expected.curve]
    assert dict(zip(found["length"], found["empty"], strict=True)) == expected.skipped


def test_lengths_of_which_all_queries_are_judged_have_no_error(read, part, tmp_path):
    found = retrieval(read, part, Plan(longest=3, exact=2, sample=10), Cells(tmp_path))
    assert found["exact"] == 2
    assert found["error"][:2] == [0, 0]
    assert found["error"][2] > 0


def test_it_is_worked_out_once_and_never_for_other_truths(read, part, tmp_path):
    cells, plan = Cells(tmp_path), Plan(longest=2, exact=2)
    first = retrieval(read, part, plan, cells)
    assert retrieval(read, part, plan, cells) == first
    assert len(list(tmp_path.iterdir())) == 1
    turned = LabelledFeatures(part.features, list("abcd"), 1 - part.targets)
    assert retrieval(read, turned, plan, cells)["map"] != first["map"]


@pytest.mark.parametrize(("n", "c"), [(10_000, 80), (1729, 11), (10_000, 1000), (10, 3)])
def test_only_what_takes_minutes_is_judged_whole(n, c):
    exact = most_exact(n, c, FULL)
    work = [n * sum(number_of_queries(c, k) for k in range(1, e + 1)) for e in (exact, exact + 1)]
    assert work[0] <= MOST
    assert exact == min(FULL.exact, c) or work[1] > MOST


def test_what_a_map_ties_goes_by_the_raw_score():
    scores = np.random.default_rng(2).normal(-3, 2, size=(500, 3))
    logits = np.where(scores < -2, -LOGIT_LIMIT, scores)
    found = untied(logits, scores)
    for column in range(3):
        order = np.argsort(scores[:, column])
        assert (np.diff(found[order, column]) > 0).all()
    np.testing.assert_array_equal(found[scores >= -2], logits[scores >= -2])
    assert found.min() >= -LOGIT_LIMIT - 0.1


def test_without_ties_nothing_is_changed():
    logits = np.array([[1.0, -39.0]])
    assert untied(logits, logits) is logits
    np.testing.assert_array_equal(untied(np.full((2, 1), -40.0), np.ones((2, 1))), [[-40.1]] * 2)
