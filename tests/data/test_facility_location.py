import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from surelabel.data import facility_location
from surelabel.data.facility_location import facility_location_order
from surelabel.errors import InputError


def gains_by_hand(vectors, selected):
    """The reduction of the summed distances by each row, in plain loops."""
    distances = cdist(vectors, vectors)
    nearest = [2 * max(np.linalg.norm(v) for v in vectors)] * len(vectors)
    for row in selected:
        nearest = [min(a, b) for a, b in zip(nearest, distances[row], strict=True)]
    return [sum(max(a - b, 0) for a, b in zip(nearest, row, strict=True)) for row in distances]


@given(seed=st.integers(0, 10_000), n=st.integers(2, 20), n_selected=st.integers(0, 5))
def test_each_row_has_the_largest_gain_of_the_candidates_that_are_left(seed, n, n_selected):
    rng = np.random.default_rng(seed)
    vectors, order = rng.normal(size=(n, 3)), rng.permutation(n).tolist()
    selected, left = order[:n_selected], set(order[n_selected:])
    count = int(rng.integers(0, n + 2))
    found = facility_location_order(vectors, selected, sorted(left), count).tolist()
    assert len(found) == min(count, len(left))
    for row in found:
        gains = gains_by_hand(vectors, selected)
        assert row in left
        assert gains[row] >= max(gains[other] for other in left) - 1e-9
        left.discard(row)
        selected = [*selected, row]


def test_the_first_rows_are_the_medoids_of_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [0, 10]])
    vectors = np.concatenate([centre + rng.normal(size=(30, 2)) for centre in centres])
    found = facility_location_order(vectors, [], range(90), 3)
    assert sorted(found // 30) == [0, 1, 2]
    next_row = facility_location_order(vectors, [0, 31], range(90), 1)
    assert next_row[0] // 30 == 2


def test_many_rows_are_represented_by_a_sample_with_a_seed(monkeypatch):
    monkeypatch.setattr(facility_location, "MAX_REFERENCE_ROWS", 50)
    rng = np.random.default_rng(0)
    vectors = np.concatenate([centre + rng.normal(size=(100, 2)) for centre in (0, 20)])
    found = [facility_location_order(vectors, [], range(200), 2, seed=seed) for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert all(sorted(rows // 100) == [0, 1] for rows in found)


def test_equal_vectors_are_selected_once_each():
    found = facility_location_order(np.zeros((4, 2)), [], range(4), 9)
    assert sorted(found) == [0, 1, 2, 3]


def test_a_negative_number_is_refused():
    with pytest.raises(InputError, match="count must be >= 0; got -1"):
        facility_location_order(np.eye(2), [], [0], -1)
