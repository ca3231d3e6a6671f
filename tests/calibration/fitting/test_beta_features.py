import numpy as np

from surelabel.calibration.fitting.beta_features import beta_features


def test_the_features_are_logarithms_of_the_probabilities():
    p = np.array([[0.1, 0.5], [0.9, 0.99]])
    expected = np.stack([np.log(p), -np.log(1 - p)], axis=-1)
    np.testing.assert_allclose(beta_features(np.log(p / (1 - p))), expected)


def test_large_logits_have_finite_features():
    np.testing.assert_array_equal(beta_features(np.array([-900.0, 900.0])), [[-900, 0], [0, 900]])


def test_blocks_of_many_logits_have_the_features_of_single_ones():
    logits = np.random.default_rng(0).normal(size=(700, 61))
    rows = [beta_features(row) for row in logits]
    np.testing.assert_array_equal(beta_features(logits), rows)
