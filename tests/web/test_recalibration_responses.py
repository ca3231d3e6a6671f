import numpy as np
import pytest
from pydantic import ValidationError

from surelabel.evaluation.recalibration import evaluate_recalibration
from surelabel.web.recalibration_responses import RecalibrationEvaluation, RecalibrationState


def test_the_evaluation_of_the_library_has_the_described_fields():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(30, 4))
    targets = (rng.random((30, 4)) < 1 / (1 + np.exp(-2 * logits))).astype(float)
    values = evaluate_recalibration(logits, targets).as_dict() | {"notes": []}
    described = RecalibrationEvaluation.model_validate(values)
    assert described.model_dump() == values


def test_a_state_that_is_not_described_is_refused():
    numbers = {"n_checked": 0, "n_required": 20, "n_missing": 20, "reason": None}
    others = {"has_recognizer": True, "reason_no_recognizer": None}
    for state in ("idle", "running", "applied", "failed"):
        assert RecalibrationState.model_validate({**numbers, **others, "state": state})
    with pytest.raises(ValidationError, match="Input should be"):
        RecalibrationState.model_validate({**numbers, **others, "state": "done"})
