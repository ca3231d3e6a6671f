import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import neighbour_proximity
from surelabel.metrics.proximity.neighbour_proximity import (
    ROWS_PER_BLOCK,
    normalize_for_neighbour_proximity,
)


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS_PER_BLOCK + 40, 6)), rng.standard_normal((50, 6))


def test_equals_scikit_learn(vectors):
    features, reference = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors)
    distances, _ = NearestNeighbors(n_neighbors=10).fit(reference).kneighbors(features)
    expected = np.exp(-distances.mean(axis=1))
    np.testing.assert_allclose(neighbour_proximity(*vectors), expected, rtol=1e-9)


def test_without_a_reference_an_image_is_not_its_own_neighbour(vectors):
    features = normalize_for_neighbour_proximity("features", vectors[0])
    distances, _ = NearestNeighbors(n_neighbors=4).fit(features).kneighbors(features)
    expected = np.exp(-distances[:, 1:].mean(axis=1))
    np.testing.assert_allclose(neighbour_proximity(vectors[0], neighbours=3), expected, rtol=1e-9)


def test_an_outlier_is_far_and_a_crowd_is_near():
    crowd = [[1.0, 0.01 * k] for k in range(10)]
    found = neighbour_proximity([*crowd, [0.0, 1.0]], neighbours=3)
    assert found[:-1].min() > 0.9
    assert found[-1] < 0.3


def test_the_length_of_a_vector_does_not_matter(vectors):
    features, reference = vectors
    np.testing.assert_allclose(
        neighbour_proximity(features * 7, reference), neighbour_proximity(features, reference)
    )


def test_fewer_neighbours_all_count_and_a_single_image_has_none(vectors):
    few = vectors[0][:4]
    np.testing.assert_allclose(
        neighbour_proximity(few, neighbours=10), neighbour_proximity(few, neighbours=3)
    )
    assert np.isnan(neighbour_proximity(few[:1])).all()
    assert neighbour_proximity(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_refused_by_its_row(bad, vectors):
    features = vectors[0].copy()
    features[5] = bad
    with pytest.raises(InputError, match=r"features must be finite .* got 1 .* row 5\. Remove"):
        neighbour_proximity(features)


def test_an_empty_reference_or_another_width_is_refused(vectors):
    with pytest.raises(InputError, match=r"\(50, 5\)"):
        neighbour_proximity(vectors[0], vectors[1][:, :5])
    with pytest.raises(InputError, match=r"reference must have at least one vector"):
        neighbour_proximity(vectors[0], np.empty((0, 6)))
    with pytest.raises(ConfigError, match=r"neighbours must be .* got 0"):
        neighbour_proximity(*vectors, neighbours=0)
