import numpy as np
import pytest
from scipy.special import ndtr

from surelabel.metrics import (
    ece,
    ece_debiased,
    noise_floor,
    squared_calibration_error,
    squared_calibration_error_debiased,
    squared_calibration_error_debiased_per_class,
)


def draw(seed, images=60, shift=0.0, together=0.7):
    """Labels of an image tend to be there together; calibrated where ``shift`` is 0."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.1, 0.3, 0.5, 0.7], size=(images, 6))
    of_image, own = rng.standard_normal((images, 1)), rng.standard_normal((images, 6))
    z = together**0.5 * of_image + (1 - together) ** 0.5 * own
    return p, (ndtr(z) < p + shift).astype(float)


def over_draws(metric, **how):
    values = [metric(*draw(seed, **how)) for seed in range(300)]
    return np.mean(values), np.std(values) / 300**0.5


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_is_unbiased_also_for_dependent_labels(shift):
    mean, error = over_draws(squared_calibration_error_debiased, shift=shift)
    assert abs(mean - shift**2) < 4 * error
    biased, error = over_draws(squared_calibration_error, shift=shift)
    assert biased - shift**2 > 5 * error


def test_equals_the_correction_of_the_paper_where_it_holds():
    p = np.repeat([[0.2], [0.6]], [30, 50], axis=0)
    y = (np.random.default_rng(0).random((80, 1)) < p).astype(float)
    expected = 0.0
    for q, n in ((0.2, 30), (0.6, 50)):
        share = y[p == q].mean()
        expected += n / 80 * ((share - q) ** 2 - share * (1 - share) / (n - 1))
    assert squared_calibration_error_debiased(p, y) == pytest.approx(expected, rel=1e-9)


def test_equals_all_pairs_of_two_images_written_out():
    p, y = draw(3, images=12)
    total = weight = 0.0
    for k in range(15):
        inside = np.argwhere((p >= k / 15) & (p < (k + 1) / 15))
        d = {(i, c): p[i, c] - y[i, c] for i, c in map(tuple, inside)}
        pairs = [d[a] * d[b] for a in d for b in d if a[0] != b[0]]
        if pairs:
            total, weight = total + len(d) * np.mean(pairs), weight + len(d)
    found = squared_calibration_error_debiased(p, y)
    assert found == pytest.approx(total / weight, rel=1e-9)


def test_each_class_is_computed_separately():
    p, y = draw(4)
    known = np.random.default_rng(0).random(p.shape) < 0.8
    expected = [
        squared_calibration_error_debiased(p[:, [c]], y[:, [c]], known[:, [c]]) for c in range(6)
    ]
    found = squared_calibration_error_debiased_per_class(p, y, known)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_three_fifths_of_the_bias_remain_for_a_calibrated_model():
    plain, _ = over_draws(ece, together=0.0)
    mean, _ = over_draws(ece_debiased, together=0.0)
    assert mean / plain == pytest.approx(0.59, abs=0.05)


def test_a_true_gap_remains_without_its_noise():
    plain, _ = over_draws(ece, shift=0.1, together=0.0)
    mean, error = over_draws(ece_debiased, shift=0.1, together=0.0)
    assert abs(mean - 0.1) < 4 * error
    floor, _ = over_draws(lambda p, y: noise_floor(ece, p, resamples=1), shift=0.1, together=0.0)
    assert abs(plain - floor - 0.1) > 0.02  # taking the floor away takes too much


def test_without_two_images_in_a_bin_the_error_is_undefined():
    for metric in (squared_calibration_error_debiased, ece_debiased):
        assert np.isnan(metric([[0.5, 0.5]], [[1, 0]]))
        assert np.isnan(metric([[0.1], [0.9]], [[1], [0]]))
        assert np.isnan(metric([[0.1], [0.1]], [[1], [np.nan]]))
        assert np.isnan(metric(np.empty((0, 2)), np.empty((0, 2))))


def test_unanimous_bins_have_no_noise():
    p, y = [[0.2], [0.2], [0.2]], [[0], [0], [0]]
    assert ece_debiased(p, y) == pytest.approx(0.2)
    assert squared_calibration_error_debiased(p, y) == pytest.approx(0.04)
