import math

import numpy as np
import pytest

from surelabel.calibration.adaptive_temperature.image_density import (
    cross_fitted_log_densities,
    fit_image_density,
)


def images(n=80, d=6, c=3, seed=0):
    rng = np.random.default_rng(seed)
    targets = (rng.random((n, c)) < 0.3).astype(float)
    return rng.normal(size=(n, d)) * np.arange(1, d + 1) + 3 * targets @ np.eye(c, d), targets


def test_the_log_densities_are_those_of_the_formula():
    vectors, targets = images()
    density = fit_image_density(vectors, targets, components=4)
    found = density.log_densities(vectors)
    for i in range(5):
        x = density.projection @ (vectors[i] - density.center)
        mixture = sum(
            density.label_frequencies[c]
            * math.exp(
                -sum(
                    (x[k] - density.label_means[c, k]) ** 2 / density.variances[k] for k in range(4)
                )
                / 2
            )
            for c in range(3)
        )
        assert found[i, 0] == pytest.approx(math.log(mixture))
        assert found[i, 1] == pytest.approx(-sum(value**2 for value in x) / 2)


def test_label_means_and_variances_are_those_of_loops_with_shrinkage():
    vectors, targets = images()
    density = fit_image_density(vectors, targets, components=4)
    x = (vectors - density.center) @ density.projection.T
    squares, total = np.zeros(4), 0
    for c in range(3):
        rows = [x[i] for i in range(80) if targets[i, c]]
        np.testing.assert_allclose(density.label_means[c], sum(rows) / (len(rows) + 1))
        squares += sum(row**2 for row in rows) - len(rows) * density.label_means[c] ** 2
        total += len(rows)
    np.testing.assert_allclose(density.variances, (squares + 10) / (total + 10))
    np.testing.assert_allclose(density.label_frequencies.sum(), 1)


def test_components_are_uncorrelated_with_variance_one_and_the_largest_variances():
    vectors, targets = images()
    density = fit_image_density(vectors, targets, components=4)
    x = (vectors - density.center) @ density.projection.T
    np.testing.assert_allclose(x.T @ x / 80, np.eye(4), atol=1e-9)
    _, deviations, _ = np.linalg.svd(vectors - vectors.mean(axis=0))
    kept = 1 / np.linalg.norm(density.projection, axis=1)
    np.testing.assert_allclose(np.sort(kept), np.sort(deviations[:4] / 80**0.5))


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (3, 1), (8, 2), (80, 6)])
def test_there_is_at_most_one_component_for_four_images_and_for_each_dimension(n, expected):
    density = fit_image_density(*(array[:n] for array in images()), components=32)
    assert density.projection.shape == (expected, 6)
    assert np.isfinite(density.log_densities(images()[0])).all()


def test_a_label_without_positives_has_the_mean_of_all_images():
    vectors, targets = images()
    targets[:, 1] = 0
    density = fit_image_density(vectors, targets, components=4)
    np.testing.assert_array_equal(density.label_means[1], 0)
    assert density.label_frequencies[1] > 0


def test_identical_images_have_components_of_zero():
    density = fit_image_density(np.ones((20, 3)), np.ones((20, 2)), components=2)
    np.testing.assert_array_equal(density.projection, 0)


def test_cross_fitted_log_densities_do_not_depend_on_the_image_itself():
    vectors, targets = images()
    before = cross_fitted_log_densities(vectors, targets, components=4)
    in_sample = fit_image_density(vectors, targets, components=4).log_densities(vectors)
    assert before[:, 1].mean() < in_sample[:, 1].mean()
    changed = targets.copy()
    changed[7] = 1 - changed[7]
    after = cross_fitted_log_densities(vectors, changed, components=4)
    np.testing.assert_array_equal(after[7], before[7])
    assert (after != before).any()
