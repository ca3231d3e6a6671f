import numpy as np
import pytest

from surelabel.metrics import brier, brier_per_class, brier_skill, brier_skill_per_class


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 4))
    return probabilities, (rng.random((60, 4)) < probabilities).astype(float)


def test_skill_is_over_the_prevalence_of_each_class(batch):
    p, y = batch
    prevalence = np.broadcast_to(y.mean(axis=0), y.shape)
    assert brier_skill(p, y) == pytest.approx(1 - brier(p, y) / brier(prevalence, y))
    expected = 1 - brier_per_class(p, y) / brier_per_class(prevalence, y)
    np.testing.assert_allclose(brier_skill_per_class(p, y), expected)


def test_prevalence_has_no_skill_and_truth_all_of_it(batch):
    _, y = batch
    assert brier_skill(np.broadcast_to(y.mean(axis=0), y.shape), y) == pytest.approx(0)
    assert brier_skill(y, y) == 1


def test_unknown_targets_count_neither_as_errors_nor_in_the_prevalence(batch):
    p, y = batch
    known = np.random.default_rng(1).random(y.shape) < 0.5
    for c in range(4):
        rows = known[:, c]
        alone = brier_skill(p[rows][:, [c]], y[rows][:, [c]])
        assert brier_skill_per_class(p, y, known)[c] == pytest.approx(alone)


@pytest.mark.parametrize("same", [0.0, 0.3, 1.0])
def test_skill_is_undefined_where_all_targets_are_the_same(same):
    p, y = np.full((7, 2), 0.2), np.full((7, 2), same)
    assert np.isnan(brier_skill_per_class(p, y)).all()
    assert np.isnan(brier_skill(p, y))
    y[0, 0] = 0.5
    assert np.isnan(brier_skill_per_class(p, y)).tolist() == [False, True]
