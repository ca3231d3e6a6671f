import numpy as np
import pytest

from surelabel.metrics import (
    brier,
    brier_decomposition,
    brier_decomposition_per_class,
    brier_per_class,
)

PARTS = ("reliability", "resolution", "uncertainty", "within_bins")


@pytest.fixture
def decisions():
    rng = np.random.default_rng(0)
    p = rng.random((200, 3)) ** 2
    known = rng.random((200, 3)) < 0.8
    return p, (rng.random((200, 3)) < p**0.7).astype(float), known


def by_hand(p, y, bins):
    """Each part by its own definition, none as what is left over."""
    bin_ = np.minimum((p * bins).astype(int), bins - 1)
    parts = dict.fromkeys(PARTS, 0.0)
    for k in range(bins):
        q, t = p[bin_ == k], y[bin_ == k]
        if len(q):
            share = len(q) / len(p)
            parts["reliability"] += share * (q.mean() - t.mean()) ** 2
            parts["resolution"] += share * (t.mean() - y.mean()) ** 2
            covariance = ((q - q.mean()) * (t - t.mean())).mean()
            parts["within_bins"] += share * (q.var() - 2 * covariance)
    return parts | {"uncertainty": y.var()}


@pytest.mark.parametrize("bins", [1, 10, 15])
@pytest.mark.parametrize("graded", [False, True], ids=["0 or 1", "graded"])
def test_every_term_equals_its_definition(bins, graded, decisions):
    p, y, known = decisions
    y = 0.8 * y + 0.1 if graded else y
    parts = brier_decomposition(p, y, known, bins=bins)
    expected = by_hand(p[known], y[known], bins)
    for name in PARTS:
        assert float(getattr(parts, name)) == pytest.approx(expected[name], abs=1e-12)
    each = brier_decomposition_per_class(p, y, known, bins=bins)
    for c in range(3):
        expected = by_hand(p[known[:, c], c], y[known[:, c], c], bins)
        for name in PARTS:
            assert getattr(each, name)[c] == pytest.approx(expected[name], abs=1e-12)


def test_the_parts_add_up_to_the_score(decisions):
    assert float(brier_decomposition(*decisions).brier_score) == pytest.approx(
        brier(*decisions), rel=1e-12
    )
    found = brier_decomposition_per_class(*decisions).brier_score
    np.testing.assert_allclose(found, brier_per_class(*decisions), rtol=1e-12)


def test_the_prevalence_has_neither_reliability_error_nor_resolution():
    parts = brier_decomposition([[0.25] * 4], [[1, 0, 0, 0]])
    assert float(parts.reliability) == pytest.approx(0)
    assert float(parts.resolution) == pytest.approx(0)
    assert float(parts.refinement) == pytest.approx(0.1875)
    assert float(parts.brier_score) == pytest.approx(0.1875)


def test_a_class_without_known_targets_is_undefined():
    parts = brier_decomposition_per_class([[0.3, 0.4], [0.3, 0.4]], [[1, np.nan], [0, np.nan]])
    for name in (*PARTS, "brier_score"):
        assert np.isnan(getattr(parts, name)).tolist() == [False, True]
    assert np.isnan(brier_decomposition([[0.5]], [[np.nan]]).brier_score)
