import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import neighbourhood_calibration_error


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    p = rng.random((300, 5))
    y = (rng.random((300, 5)) < p).astype(float)
    known = rng.random((300, 5)) < 0.7
    known[:, 0] = True
    return p, y, rng.standard_normal((300, 4)), known


def test_equals_a_loop_over_the_neighbours(images):
    p, y, features, known = images
    known = known.copy()
    known[7] = False
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    with_known = [i for i in range(300) if known[i].any()]
    gaps = []
    for i in with_known:
        near = sorted((j for j in with_known if j != i), key=lambda j: -unit[i] @ unit[j])[:10]
        there = known[near]
        gaps.append(abs(p[near][there].mean() - y[near][there].mean()))
    found = neighbourhood_calibration_error(p, y, features, known)
    assert found == pytest.approx(np.mean(gaps), rel=1e-9)


@pytest.mark.parametrize("same", [1, 0], ids=["images", "twice the images"])
def test_the_order_of_images_does_not_matter_even_where_they_are_the_same(same, images):
    p, y, features, _ = images
    features = features if same else np.repeat(features[:100], 3, axis=0)
    order = np.random.default_rng(1).permutation(300)
    expected = neighbourhood_calibration_error(p[order], y[order], features[order])
    assert neighbourhood_calibration_error(p, y, features) == pytest.approx(expected, rel=1e-9)


def test_without_known_targets_or_neighbours_the_error_is_undefined():
    nothing = np.full((3, 1), np.nan)
    assert np.isnan(neighbourhood_calibration_error(np.zeros((3, 1)), nothing, np.ones((3, 2))))
    assert np.isnan(neighbourhood_calibration_error([[0.5]], [[1]], [[1.0, 0.0]]))


def test_invalid_arguments_are_refused():
    p, y = [[0.5], [0.5]], [[0], [1]]
    with pytest.raises(InputError, match=r"features \(n d\) has shape \(3, 2\)"):
        neighbourhood_calibration_error(p, y, np.ones((3, 2)))
    with pytest.raises(InputError, match=r"probabilities must be in \[0, 1\].*1\.3"):
        neighbourhood_calibration_error([[1.3], [0.5]], y, np.ones((2, 2)))
    with pytest.raises(ConfigError, match=r"neighbours must be .* got 0"):
        neighbourhood_calibration_error(p, y, np.ones((2, 2)), neighbours=0)
