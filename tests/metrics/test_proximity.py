import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import proximity
from surelabel.metrics.proximity import ROWS, unit_vectors


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS + 40, 6)), rng.standard_normal((50, 6))


def test_equals_scikit_learn(vectors):
    features, reference = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors)
    distances, _ = NearestNeighbors(n_neighbors=10).fit(reference).kneighbors(features)
    expected = np.exp(-distances.mean(axis=1))
    np.testing.assert_allclose(proximity(*vectors), expected, rtol=1e-9)


def test_without_a_reference_a_picture_is_not_its_own_neighbour(vectors):
    features = unit_vectors("features", vectors[0])
    distances, _ = NearestNeighbors(n_neighbors=4).fit(features).kneighbors(features)
    expected = np.exp(-distances[:, 1:].mean(axis=1))
    np.testing.assert_allclose(proximity(vectors[0], neighbours=3), expected, rtol=1e-9)


def test_an_outlier_is_far_and_a_crowd_is_near():
    crowd = [[1.0, 0.01 * k] for k in range(10)]
    found = proximity([*crowd, [0.0, 1.0]], neighbours=3)
    assert found[:-1].min() > 0.9
    assert found[-1] < 0.3


def test_length_says_nothing(vectors):
    features, reference = vectors
    np.testing.assert_allclose(proximity(features * 7, reference), proximity(features, reference))


def test_all_count_where_there_are_fewer_and_one_alone_has_none(vectors):
    few = vectors[0][:4]
    np.testing.assert_allclose(proximity(few, neighbours=10), proximity(few, neighbours=3))
    assert np.isnan(proximity(few[:1])).all()
    assert proximity(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_refused_by_its_row(bad, vectors):
    features = vectors[0].copy()
    features[5] = bad
    with pytest.raises(InputError, match=r"features must be finite .* Got 1 .* row 5; drop"):
        proximity(features)


def test_both_must_have_one_width_and_a_reference_something_in_it(vectors):
    with pytest.raises(InputError, match=r"\(50, 5\)"):
        proximity(vectors[0], vectors[1][:, :5])
    with pytest.raises(InputError, match=r"reference must have at least one vector"):
        proximity(vectors[0], np.empty((0, 6)))
    with pytest.raises(ConfigError, match=r"neighbours must be .* Got 0"):
        proximity(*vectors, neighbours=0)
