import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench.negation.encoder_outputs import (
    log_probability_of_pairs,
    measure_negation_encoder,
)


@pytest.fixture(scope="module")
def encoder(splits, cache, results):
    return measure_negation_encoder(splits, "tiny-vit", cache)


def test_the_query_is_the_product_of_both_probabilities():
    logits = np.array([[2.0, -1.0, 0.5], [-40.0, 40.0, 0.0]])
    pairs = np.array([[0, 1], [2, 0]])
    found = log_probability_of_pairs(logits, pairs)
    for row, values in enumerate(logits):
        for column, (a, b) in enumerate(pairs.tolist()):
            expected = expit(values[a]) * expit(-values[b])
            assert np.exp(found[row, column]) == pytest.approx(expected)


def test_outputs_are_those_of_the_recognizer(predictions, encoder):
    zero_shot, calibrated = predictions
    np.testing.assert_allclose(encoder.test.uncalibrated, zero_shot.scores)
    np.testing.assert_allclose(encoder.test.package, zero_shot.logits)
    np.testing.assert_allclose(encoder.test.calibrated, calibrated.logits)
    assert encoder.calibrated_on == calibrated.calibration


def test_the_reference_term_turns_cosines_into_zero_shot_scores(encoder):
    for outputs in (encoder.validation, encoder.test):
        relative = outputs.similarities(encoder.label_vectors, subtract_reference=True)
        np.testing.assert_allclose(
            relative * encoder.encoder.scale,
            outputs.uncalibrated,
            atol=5e-3,  # half precision
        )
