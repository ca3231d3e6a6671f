import numpy as np

from surelabel.calibration import Platt
from surelabel.links import Sigmoid
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.score_conversion import ScoreConversion

SCORES = np.array([[-90.0, 1.0], [0.5, 70.0]], np.float32)
VECTORS = np.eye(2, dtype=np.float16)


def test_scores_without_link_and_calibration_have_no_log_odds():
    conversion = ScoreConversion("spa", None, None)
    assert (conversion.logits(SCORES, VECTORS), conversion.description) == (None, None)
    np.testing.assert_array_equal(conversion.calibrator_input(SCORES), SCORES)


def test_without_calibration_the_log_odds_are_those_of_the_link():
    conversion = ScoreConversion("binary", Sigmoid(), None)
    np.testing.assert_array_equal(conversion.logits(SCORES, VECTORS), SCORES.clip(-40, 40))
    np.testing.assert_array_equal(conversion.calibrator_input(SCORES), SCORES.clip(-40, 40))
    assert conversion.description == "by its loss alone (binary)"


def test_a_calibration_replaces_the_log_odds_of_the_loss():
    targets = np.array([[0.0, 1.0], [1.0, 0.0]])
    platt = Platt().fit(np.array([[-1.0, 2.0], [1.0, 0.5]]), targets)
    record = CalibrationRecord("platt", platt, "platt on 2 labelled images")
    conversion = ScoreConversion("binary", Sigmoid(), record)
    logits = conversion.logits(SCORES, VECTORS)
    np.testing.assert_allclose(logits, platt.logits(SCORES.clip(-40, 40)), rtol=1e-6)
    assert logits.dtype == np.float32
    assert not np.allclose(logits, SCORES.clip(-40, 40))
    assert conversion.description == "platt on 2 labelled images"
