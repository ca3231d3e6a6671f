import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation import together


def drawn(n=40, c=4, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.random((n, c)) < 0.7
    return rng.random((n, c)), (rng.random((n, c)) < 0.4).astype(float), known


def test_equals_counting_pictures_pair_by_pair():
    p, y, known = drawn()
    found = together(p, y, known, threshold=0.4)
    for a in range(4):
        for b in range(4):
            both = [i for i in range(40) if known[i, a] and known[i, b]]
            shown = sum(p[i, a] >= 0.4 and p[i, b] >= 0.4 for i in both) / len(both)
            present = sum(y[i, a] * y[i, b] for i in both) / len(both)
            assert found.shown[a, b] == pytest.approx(shown)
            assert found.present[a, b] == pytest.approx(present)
            assert found.difference[a, b] == pytest.approx(shown - present)


def test_pairs_are_told_by_how_far_they_are_off():
    p, y, _ = drawn()
    found = together(p, y)
    pairs = found.pairs()
    assert sorted((a, b) for a, b, _ in pairs) == [
        (a, b) for a in range(4) for b in range(a + 1, 4)
    ]
    sizes = [abs(gap) for _, _, gap in pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert all(gap == found.difference[a, b] for a, b, gap in pairs)
    assert found.distance == pytest.approx(np.mean(sizes))


def test_the_truth_shown_is_no_distance_away():
    _, y, known = drawn()
    assert together(y, y, known).distance == 0


def test_graded_truth_keeps_its_own_shares_on_the_diagonal():
    found = together([[0.9, 0.9]], [[0.5, 0.5]])
    assert found.present.tolist() == [[0.5, 0.25], [0.25, 0.5]]


def test_pairs_that_nobody_knows_are_left_out():
    found = together([[0.9, 0.9, 0.1]] * 2, [[1, np.nan, 0], [np.nan, 1, 0]])
    assert np.isnan(found.shown[0, 1])
    assert [pair[:2] for pair in found.pairs()] == [(0, 2), (1, 2)]


def test_without_a_truth_only_what_is_shown_is_told():
    found = together(drawn()[0])
    assert found.present is None
    assert found.difference is None
    assert found.pairs() == []
    assert np.isnan(found.distance)


def test_one_label_has_no_pair():
    assert np.isnan(together([[0.9]], [[1.0]]).distance)


def test_no_pictures_are_refused():
    with pytest.raises(InputError, match="must hold one picture or more"):
        together(np.zeros((0, 3)))
