import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import ece, ece_of_candidates, ece_of_candidates_per_class, ece_per_class

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(RECORDED["p"]), np.array(RECORDED["y"])


@pytest.mark.parametrize("threshold", [0.0, 0.05, P[3, 1], 0.5])
def test_candidates_are_the_labels_that_reach_the_threshold(threshold):
    known = np.random.default_rng(0).random(P.shape) < 0.7
    candidates = known & (threshold <= P)
    assert ece_of_candidates(P, Y, known, threshold=threshold) == ece(P, Y, candidates)
    per_class = ece_of_candidates_per_class(P, Y, known, threshold=threshold)
    np.testing.assert_array_equal(per_class, ece_per_class(P, Y, candidates))


def test_without_candidates_the_error_is_undefined():
    assert np.isnan(ece_of_candidates([[0.01]], [[0]]))


def test_a_threshold_is_a_probability():
    with pytest.raises(ConfigError, match=r"threshold must be .*\[0, 1\]; got 5"):
        ece_of_candidates([[0.5]], [[1]], threshold=5)
