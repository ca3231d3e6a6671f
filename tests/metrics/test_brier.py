import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from surelabel.metrics import brier, brier_per_class


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 4))
    return probabilities, (rng.random((60, 4)) < probabilities).astype(float)


def test_equals_scikit_learn(batch):
    p, y = batch
    expected = [brier_score_loss(y[:, c], p[:, c]) for c in range(4)]
    np.testing.assert_allclose(brier_per_class(p, y), expected)
    assert brier(p, y) == pytest.approx(brier_score_loss(y.ravel(), p.ravel()))
