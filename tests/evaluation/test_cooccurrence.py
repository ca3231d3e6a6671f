import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation import measure_cooccurrence


def drawn(n=40, c=4, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.random((n, c)) < 0.7
    return rng.random((n, c)), (rng.random((n, c)) < 0.4).astype(float), known


def test_equals_counting_images_pair_by_pair():
    p, y, known = drawn()
    found = measure_cooccurrence(p, y, known, threshold=0.4)
    for a in range(4):
        for b in range(4):
            both = [i for i in range(40) if known[i, a] and known[i, b]]
            shown = sum(p[i, a] >= 0.4 and p[i, b] >= 0.4 for i in both) / len(both)
            present = sum(y[i, a] * y[i, b] for i in both) / len(both)
            assert found.predicted[a, b] == pytest.approx(shown)
            assert found.positive[a, b] == pytest.approx(present)
            assert found.difference[a, b] == pytest.approx(shown - present)


def test_pairs_are_told_by_how_far_they_are_off():
    p, y, _ = drawn()
    found = measure_cooccurrence(p, y)
    pairs = found.pairs_by_difference()
    assert sorted((a, b) for a, b, _ in pairs) == [
        (a, b) for a in range(4) for b in range(a + 1, 4)
    ]
    sizes = [abs(gap) for _, _, gap in pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert all(gap == found.difference[a, b] for a, b, gap in pairs)
    assert found.mean_absolute_difference == pytest.approx(np.mean(sizes))


def test_the_truth_shown_is_no_distance_away():
    _, y, known = drawn()
    assert measure_cooccurrence(y, y, known).mean_absolute_difference == 0


def test_graded_truth_keeps_its_own_shares_on_the_diagonal():
    found = measure_cooccurrence([[0.9, 0.9]], [[0.5, 0.5]])
    assert found.positive.tolist() == [[0.5, 0.25], [0.25, 0.5]]


def test_pairs_without_known_targets_are_left_out():
    found = measure_cooccurrence([[0.9, 0.9, 0.1]] * 2, [[1, np.nan, 0], [np.nan, 1, 0]])
    assert np.isnan(found.predicted[0, 1])
    assert [pair[:2] for pair in found.pairs_by_difference()] == [(0, 2), (1, 2)]


def test_without_a_truth_only_what_is_shown_is_told():
    found = measure_cooccurrence(drawn()[0])
    assert found.positive is None
    assert found.difference is None
    assert found.pairs_by_difference() == []
    assert np.isnan(found.mean_absolute_difference)


def test_one_label_has_no_pair():
    assert np.isnan(measure_cooccurrence([[0.9]], [[1.0]]).mean_absolute_difference)


def test_no_images_are_refused():
    with pytest.raises(InputError, match="must have at least one image"):
        measure_cooccurrence(np.zeros((0, 3)))
