import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import AdaptiveTemperature, Platt, cross_fitted_logits
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.metrics import log_loss_of_logits


def decisions(n=600, seed=0):
    """Return vectors, logits and targets; the logits of images far from the centre are 4 times too
    large, because these images are rare."""
    rng = np.random.default_rng(seed)
    is_far = rng.random(n) < 0.3
    vectors = rng.normal(size=(n, 6)) * np.where(is_far, 4.0, 1.0)[:, None]
    truth = 1.5 * rng.normal(size=(n, 5)) - 1
    targets = (rng.random(truth.shape) < expit(truth)).astype(float)
    return vectors, truth * np.where(is_far, 4.0, 1.0)[:, None], targets, is_far


@pytest.fixture(scope="module")
def data():
    return decisions()


@pytest.fixture(scope="module")
def fitted(data):
    vectors, x, y, _ = data
    return AdaptiveTemperature().with_image_vectors(vectors).fit(x, y)


def test_images_of_low_density_with_overconfident_logits_have_higher_temperatures(fitted):
    vectors, _, _, is_far = decisions(seed=1)
    temperatures = fitted.temperatures(vectors)
    assert np.median(temperatures[is_far]) > 2 * np.median(temperatures[~is_far])


def test_the_log_loss_is_lower_than_with_one_temperature_on_other_images(fitted, data):
    vectors, x, y, _ = decisions(seed=1)
    platt = Platt().fit(*data[1:3])
    loss = log_loss_of_logits(fitted.with_image_vectors(vectors).logits(x), y)
    assert loss < log_loss_of_logits(platt.logits(x), y) - 0.01


def test_vectors_without_information_change_the_log_loss_little():
    for n, seed in ((100, 0), (300, 1)):
        rng = np.random.default_rng(seed)
        x = 2 * rng.normal(size=(n, 5)) - 1
        y = (rng.random(x.shape) < expit(x)).astype(float)
        vectors, new_vectors = rng.normal(size=(2, 2000, 64))
        new_x = 2 * rng.normal(size=(2000, 5)) - 1
        fitted = AdaptiveTemperature().with_image_vectors(vectors[:n]).fit(x, y)
        losses = [
            log_loss_of_logits(calibrator.logits(new_x), expit(new_x))
            for calibrator in (fitted.with_image_vectors(new_vectors), Platt().fit(x, y))
        ]
        assert losses[0] < losses[1] + 0.005


def test_logits_are_those_of_the_formula(fitted):
    vectors, x, _, _ = decisions(n=7, seed=2)
    found = fitted.with_image_vectors(vectors).logits(x)
    temperatures = fitted.temperatures(vectors)
    log_densities = fitted.density_.log_densities(vectors)
    for i in range(7):
        features = [
            max(-3, min(3, (log_densities[i, f] - fitted.feature_means_[f]) / scale))
            for f, scale in enumerate(fitted.feature_scales_)
        ]
        log_t = features[0] * fitted.weights_[0] + features[1] * fitted.weights_[1]
        assert np.log(temperatures[i]) == pytest.approx(log_t)
        for c in range(5):
            z = fitted.slope_ * x[i, c] + fitted.shift_
            assert found[i, c] == pytest.approx(max(-40, min(40, z / np.exp(log_t))))


def test_the_order_of_labels_within_an_image_is_kept(fitted):
    vectors, x, _, _ = decisions(seed=3)
    x = x.clip(-10, 10)
    found = fitted.with_image_vectors(vectors).logits(x)
    np.testing.assert_array_equal(found.argsort(axis=1), x.argsort(axis=1))


def test_logits_and_temperatures_are_bounded_for_any_image(fitted):
    vectors = np.array([[1e6] * 6, [-1e6] * 6, [0.0] * 6])
    temperatures = fitted.temperatures(vectors)
    assert (np.exp(-3) <= temperatures).all()
    assert (temperatures <= np.exp(3)).all()
    found = fitted.with_image_vectors(vectors).logits([[1e9, -1e9]] * 3)
    np.testing.assert_array_equal(found, [[40, -40]] * 3)


def test_with_fewer_than_a_hundred_images_it_is_platt_scaling(data):
    vectors, x, y, _ = data
    fitted = AdaptiveTemperature().with_image_vectors(vectors[:99]).fit(x[:99], y[:99])
    np.testing.assert_array_equal(fitted.temperatures(vectors), 1)
    expected = Platt().fit(x[:99], y[:99]).logits(x)
    np.testing.assert_array_equal(fitted.with_image_vectors(vectors).logits(x), expected)


def test_identical_images_have_a_temperature_of_about_one():
    x = np.random.default_rng(0).normal(size=(100, 3))
    fitted = AdaptiveTemperature().with_image_vectors(np.ones((100, 4))).fit(x, x > 0)
    np.testing.assert_allclose(fitted.temperatures(np.ones((2, 4))), 1, atol=0.1)


def test_a_second_fit_gives_the_same_parameters(fitted, data):
    vectors, x, y, _ = data
    again = AdaptiveTemperature().with_image_vectors(vectors).fit(x, y)
    assert again.state() == fitted.state()


def test_more_shrinkage_gives_smaller_weights(fitted, data):
    vectors, x, y, _ = data
    more = AdaptiveTemperature(shrinkage=1e6).with_image_vectors(vectors).fit(x, y)
    assert np.abs(more.weights_).max() < 0.1 * np.abs(fitted.weights_).max()


def test_other_labels_have_the_temperatures_of_the_images(fitted):
    vectors, x, _, _ = decisions(n=4, seed=4)
    wide = fitted.with_image_vectors(vectors).logits(np.tile(x, 3))
    np.testing.assert_array_equal(wide[:, :5], wide[:, 10:])


def test_cross_fitted_logits_use_the_vectors_of_their_images(data):
    vectors, x, y, _ = data
    found = cross_fitted_logits(AdaptiveTemperature, x, y, vectors=vectors)
    shuffled = cross_fitted_logits(AdaptiveTemperature, x, y, vectors=vectors[::-1])
    assert log_loss_of_logits(found, y) < log_loss_of_logits(shuffled, y) - 0.01
    with pytest.raises(InputError, match=r"\(600, 5\).*\(599, 6\)"):
        cross_fitted_logits(AdaptiveTemperature, x, y, vectors=vectors[:599])


@pytest.mark.parametrize("use", ["fit", "logits", "cross-fitting"])
def test_without_vectors_there_is_one_line_that_says_what_to_do(fitted, data, use):
    _, x, y, _ = data
    calls = {
        "fit": lambda: AdaptiveTemperature().fit(x, y),
        "logits": lambda: fitted.with_image_vectors(None).logits(x),
        "cross-fitting": lambda: cross_fitted_logits(AdaptiveTemperature, x, y),
    }
    message = "adaptive_temperature requires the vector of each image; got none.*platt"
    with pytest.raises(ConfigError, match=message):
        calls[use]()


def test_vectors_must_belong_to_the_images_and_be_finite(fitted, data):
    vectors, x, y, _ = data
    with pytest.raises(InputError, match=r"\(600, 5\).*\(599, 6\)"):
        AdaptiveTemperature().with_image_vectors(vectors[:599]).fit(x, y)
    with pytest.raises(InputError, match="must have 6 values, as in the calibration; got 5"):
        fitted.with_image_vectors(vectors[:, :5]).logits(x)
    with pytest.raises(InputError, match="Image vectors must be finite numbers; got 6 NaN"):
        fitted.with_image_vectors(np.where(np.arange(600)[:, None] == 3, np.nan, vectors))
    with pytest.raises(InputError, match=r"vectors must have axes \(n, d\)"):
        fitted.with_image_vectors(vectors[0])


def test_the_calibrator_without_vectors_is_not_changed(fitted, data):
    vectors, x, y, _ = data
    first = AdaptiveTemperature()
    first.with_image_vectors(vectors).fit(x, y)
    assert repr(first) == "AdaptiveTemperature()"
    assert "_vectors" not in repr(fitted)


def test_half_precision_vectors_give_nearly_the_same_temperatures(fitted, data):
    vectors, x, y, _ = data
    half = AdaptiveTemperature().with_image_vectors(vectors.astype(np.float16)).fit(x, y)
    np.testing.assert_allclose(half.temperatures(vectors), fitted.temperatures(vectors), rtol=0.05)


@pytest.mark.parametrize(
    "change",
    [{"slope": 0.0}, {"variances": None}, {"feature_scales": [0.0, 1.0]}, {"weights": None}],
    ids=lambda change: next(iter(change)),
)
def test_a_saved_state_with_impossible_values_is_refused(fitted, change):
    state = json.loads(json.dumps(fitted.state()))
    if change.get("variances", 1) is None:
        change = {"variances": [-1.0, *state["variances"][1:]]}
    if change.get("weights", 1) is None:
        change = {name: [1.0] * 3 for name in ("weights", "feature_means", "feature_scales")}
    with pytest.raises(DataError, match="must be above 0, and weights must contain two"):
        AdaptiveTemperature().restore(state | change)


def test_a_state_gives_the_same_logits_in_a_new_process(fitted):
    vectors, x, _, _ = decisions(n=3, seed=5)
    program = (
        "import json, sys; from surelabel.calibration import AdaptiveTemperature;"
        "state, vectors, x = json.load(sys.stdin);"
        "restored = AdaptiveTemperature().restore(state).with_image_vectors(vectors);"
        "print(json.dumps(restored.logits(x).tolist()))"
    )
    data = json.dumps([fitted.state(), vectors.tolist(), x.tolist()])
    shown = subprocess.run(
        [sys.executable, "-c", program], input=data, capture_output=True, text=True, check=True
    ).stdout
    np.testing.assert_array_equal(json.loads(shown), fitted.with_image_vectors(vectors).logits(x))
