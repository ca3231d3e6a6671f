import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import brier, ece, ece_per_class, mean_average_precision, noise_floor


@pytest.fixture
def probabilities():
    return np.random.default_rng(0).random((400, 3))


def test_a_calibrated_model_is_at_its_floor_and_a_bad_one_is_not(probabilities):
    rng = np.random.default_rng(1)
    targets = rng.random(probabilities.shape) < probabilities
    floor = noise_floor(ece, probabilities)
    assert 0.5 * floor < ece(probabilities, targets) < 2 * floor
    assert ece(probabilities**2, targets) > 4 * noise_floor(ece, probabilities**2)


def test_is_the_expectation_of_the_metric(probabilities):
    expected = (probabilities * (1 - probabilities)).mean()
    assert noise_floor(brier, probabilities, resamples=200) == pytest.approx(expected, rel=0.01)


def test_probabilities_sampled_with_the_same_seed_have_the_usual_floor(probabilities):
    floors = [noise_floor(ece, probabilities, seed=seed) for seed in range(5)]
    assert floors[0] == pytest.approx(np.mean(floors[1:]), rel=0.1)


def test_only_known_targets_are_sampled(probabilities):
    known = np.zeros(probabilities.shape, dtype=bool)
    known[:, 1] = True
    expected = noise_floor(brier, probabilities[:, [1]], resamples=300)
    assert noise_floor(brier, probabilities, known, resamples=300) == pytest.approx(
        expected, rel=0.02
    )


def test_is_repeatable_and_moves_with_the_seed(probabilities):
    assert noise_floor(ece, probabilities) == noise_floor(ece, probabilities)
    assert noise_floor(ece, probabilities) != noise_floor(ece, probabilities, seed=1)


def test_a_metric_of_each_class_gives_a_floor_for_each_class(probabilities):
    floors = noise_floor(ece_per_class, probabilities)
    assert floors.shape == (3,)
    assert (floors > noise_floor(ece, probabilities)).all()


def test_there_must_be_resamples(probabilities):
    with pytest.raises(ConfigError, match=r"resamples must be .* got 0"):
        noise_floor(ece, probabilities, resamples=0)


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(InputError, match=r"probabilities in \[0, 1\] .* from -2.0 to 3.0"):
        noise_floor(mean_average_precision, [[-2.0, 3.0]])
