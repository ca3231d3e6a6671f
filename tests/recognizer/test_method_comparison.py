import numpy as np
import pytest

from surelabel.recognizer.method_comparison import log_loss_standard_error


def test_the_standard_error_is_that_of_a_bootstrap_over_images():
    random = np.random.default_rng(0)
    logits = random.normal(size=(300, 4)) + random.normal(size=(300, 1))
    targets = (random.random((300, 4)) < 0.3).astype(float)
    known = random.random((300, 4)) < 0.7
    losses = np.where(known, np.logaddexp(0, logits) - targets * logits, 0).sum(axis=1)
    counts = known.sum(axis=1)
    samples = random.integers(300, size=(2000, 300))
    means = losses[samples].sum(axis=1) / counts[samples].sum(axis=1)
    error = log_loss_standard_error(logits, targets, known)
    assert error == pytest.approx(means.std(), rel=0.1)
    unknown = np.where(known, targets, np.nan)
    assert log_loss_standard_error(logits, unknown, known) == error


def test_one_image_has_no_standard_error():
    known = np.array([[True], [False]])
    assert np.isnan(log_loss_standard_error(np.zeros((2, 1)), np.zeros((2, 1)), known))
