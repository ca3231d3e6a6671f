import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import AdaptiveTemperature, Platt, Temperature
from surelabel.errors import ConfigError, InputError
from surelabel.evaluation import CalibrationBudget, estimate_calibration_budget
from surelabel.metrics import ece, log_loss_of_logits


def drawn(n=240, c=4, seed=0, slope=0.5, shift=-1.0):
    """Log-odds, and truth that Platt scaling with this slope and shift explains."""
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, (n, c))
    return x, (random.random((n, c)) < expit(slope * x + shift)).astype(float)


def budget(errors, losses=None, sizes=(25, 50, 100, 200)):
    errors = np.array(errors, float)[:, None]
    losses = np.full_like(errors, 0.2) if losses is None else np.array(losses, float)[:, None]
    return CalibrationBudget(sizes[: len(errors)], errors, losses, 0.01, 200)


def test_each_draw_fits_on_the_first_images_of_a_shuffle_and_measures_on_the_last():
    x, y = drawn()
    found = estimate_calibration_budget(Platt, x, y, sizes=[30, 90], repeats=2, seed=5)
    for draw, stream in enumerate(np.random.default_rng(5).spawn(2)):
        order = stream.permutation(240)
        apart = order[90:]
        for k, size in enumerate((30, 90)):
            fitted = Platt().fit(x[order[:size]], y[order[:size]])
            z = fitted.logits(x[apart])
            assert found.ece[k, draw] == ece(expit(z), y[apart])
            assert found.log_loss[k, draw] == log_loss_of_logits(z, y[apart])
    assert found.test_images == 150


def test_sizes_double_up_to_half_of_the_labelled_images():
    x, y = drawn(n=500)
    y[480:] = np.nan  # nothing is known of these
    found = estimate_calibration_budget(Temperature, x, y, repeats=1)
    assert found.sizes == (25, 50, 100, 200)
    assert found.test_images == 280


def test_more_labels_are_no_worse_and_calibrated_probabilities_come_near_the_noise_floor():
    x, y = drawn(n=2000, c=10)
    found = estimate_calibration_budget(Platt, x, y, sizes=[5, 50, 1000])
    assert found.mean_log_loss[0] > found.mean_log_loss[1] > found.mean_log_loss[2]
    assert found.mean_ece[2] < 1.5 * found.noise_floor
    assert found.mean_ece[0] > 2 * found.noise_floor


def test_a_draw_without_any_label_that_is_there_is_undefined_not_zero():
    x = np.random.default_rng(0).normal(size=(100, 1))
    y = np.zeros((100, 1))
    y[0] = 1
    found = estimate_calibration_budget(Platt, x, y, sizes=[2, 50], repeats=4)
    assert np.isnan(found.ece[0]).all()
    assert np.isnan(found.mean_ece[0])


def test_without_any_label_that_is_there_nothing_is_defined():
    found = estimate_calibration_budget(Platt, np.zeros((100, 2)), np.zeros((100, 2)))
    assert np.isnan(found.mean_ece).all()
    assert np.isnan(found.noise_floor)
    assert found.sufficient_size is None


def test_enough_is_the_first_budget_that_larger_ones_hardly_better():
    assert budget([0.05, 0.0205, 0.02, 0.02]).sufficient_size == 50
    assert budget([0.05, 0.03, 0.025, 0.02]).sufficient_size is None
    assert budget([0.0015, 0.001, 0.0009, 0.0008]).sufficient_size == 25
    assert budget([0.02] * 4, losses=[0.3, 0.21, 0.2, 0.2]).sufficient_size == 100
    assert budget([np.nan, 0.02, 0.02, 0.02]).sufficient_size == 50


def test_the_same_seed_gives_the_same_budget_and_the_inputs_stay_as_they_are():
    x, y = drawn()
    kept = x.copy(), y.copy()
    first, second = (estimate_calibration_budget(Platt, x, y, seed=1) for _ in range(2))
    assert np.array_equal(first.ece, second.ece)
    assert not np.array_equal(first.ece, estimate_calibration_budget(Platt, x, y, seed=2).ece)
    assert np.array_equal(x, kept[0])
    assert np.array_equal(y, kept[1])


def test_few_labelled_images_are_refused():
    x, y = drawn(n=99)
    with pytest.raises(InputError, match=r"at least 100 annotated images; got 99"):
        estimate_calibration_budget(Platt, x, y)


@pytest.mark.parametrize("sizes", [[], [0, 50], [50, 240]])
def test_sizes_that_leave_nothing_to_measure_on_are_refused(sizes):
    with pytest.raises(ConfigError, match="sizes must contain whole numbers from 1 to 239"):
        estimate_calibration_budget(Platt, *drawn(), sizes=sizes)


def test_no_draws_are_refused():
    with pytest.raises(ConfigError, match="repeats must be a whole number of at least 1"):
        estimate_calibration_budget(Platt, *drawn(), repeats=0)


def test_other_shapes_are_refused():
    with pytest.raises(InputError, match="logits"):
        estimate_calibration_budget(Platt, np.zeros((200, 3)), np.zeros((200, 4)))


def test_the_vectors_are_those_of_the_fitted_and_of_the_test_images():
    x, y = drawn()
    vectors = np.random.default_rng(1).normal(size=(240, 4))
    found = estimate_calibration_budget(
        AdaptiveTemperature, x, y, vectors=vectors, sizes=[30, 120], repeats=1, seed=5
    )
    order = next(iter(np.random.default_rng(5).spawn(1))).permutation(240)
    train, test = order[:120], order[120:]
    fitted = AdaptiveTemperature().with_image_vectors(vectors[train]).fit(x[train], y[train])
    expected = fitted.with_image_vectors(vectors[test]).logits(x[test])
    assert found.log_loss[1, 0] == log_loss_of_logits(expected, y[test])
    with pytest.raises(ConfigError, match="adaptive_temperature requires the vector of each image"):
        estimate_calibration_budget(AdaptiveTemperature, x, y)
