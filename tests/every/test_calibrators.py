"""What every calibrator must do. A new line in CALIBRATORS is tested here with no more work."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from surelabel.calibration import CALIBRATORS
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.metrics import average_precision_per_class, log_loss_of_logits
from surelabel.tables import settings

every = pytest.mark.parametrize("calibrator", CALIBRATORS.values(), ids=CALIBRATORS.keys())


@pytest.fixture
def calibrated():
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(4000, 3)) - 1
    return truth, (rng.random(truth.shape) < expit(truth)).astype(float)


@pytest.fixture
def overconfident(calibrated):
    logits, targets = calibrated
    return 3 * logits, targets


@every
def test_fit_returns_self(calibrator, overconfident):
    it = calibrator()
    assert it.fit(*overconfident) is it


@every
def test_never_worse_than_leaving_the_logits_alone(calibrator, overconfident):
    logits, targets = overconfident
    for raw in (logits, logits / 3, logits / 10):
        fitted = calibrator().fit(raw, targets).logits(raw)
        assert log_loss_of_logits(fitted, targets) <= log_loss_of_logits(raw, targets) + 1e-7


@every
def test_overconfidence_is_cured(calibrator, overconfident, calibrated):
    fitted = calibrator().fit(*overconfident).logits(overconfident[0])
    np.testing.assert_allclose(fitted, calibrated[0], atol=0.35)


@every
def test_what_is_calibrated_already_is_left_about_as_it_is(calibrator, calibrated):
    logits, targets = calibrated
    np.testing.assert_allclose(calibrator().fit(logits, targets).logits(logits), logits, atol=0.35)


@every
def test_order_inside_a_class_is_kept(calibrator, overconfident):
    logits, targets = overconfident[0].clip(-20, 20), overconfident[1]
    fitted = calibrator().fit(logits, targets).logits(logits)
    for before, after in zip(logits.T, fitted.T, strict=True):
        step = np.diff(after[np.argsort(before, kind="stable")])
        assert (step >= 0).all()
    if calibrator.keeps_order:
        np.testing.assert_allclose(
            average_precision_per_class(fitted, targets),
            average_precision_per_class(logits, targets),
        )


@every
def test_logits_are_float64_inside_forty_and_probabilities_their_sigmoid(calibrator, overconfident):
    it = calibrator().fit(*overconfident)
    found = it.logits(np.array([[-1e9, 0.0, 1e9]], dtype=np.float32))
    assert found.dtype == np.float64
    assert found.shape == (1, 3)
    assert found[0, 0] == -40
    assert found[0, 2] == 40
    np.testing.assert_array_equal(
        it.predict_proba(overconfident[0]), expit(it.logits(overconfident[0]))
    )


@every
def test_unknown_targets_have_no_influence(calibrator, overconfident):
    logits, targets = overconfident
    known = np.random.default_rng(1).random(targets.shape) < 0.5
    expected = calibrator().fit(logits, targets, known).state()
    assert (
        calibrator().fit(logits, np.where(known, targets, 1 - targets), known).state() == expected
    )
    assert calibrator().fit(logits, np.where(known, targets, np.nan)).state() == expected
    assert calibrator().fit(logits, targets).state() != expected


@every
def test_what_all_labels_share_holds_for_new_ones(calibrator, overconfident):
    if calibrator.shared:
        it = calibrator().fit(*overconfident)
        wider = np.tile(overconfident[0], (1, 2))
        np.testing.assert_array_equal(it.logits(wider)[:, :3], it.logits(wider)[:, 3:])


@every
def test_comes_back_from_json(calibrator, overconfident):
    it = calibrator().fit(*overconfident)
    again = calibrator()
    assert again.restore(json.loads(json.dumps(it.state()))) is again
    np.testing.assert_array_equal(again.logits(overconfident[0]), it.logits(overconfident[0]))


@every
@pytest.mark.parametrize("change", ["missing", "more", "text", "nan"])
def test_a_damaged_state_is_refused(calibrator, change, overconfident):
    state = calibrator().fit(*overconfident).state()
    first = next(iter(state))
    damaged = {
        "missing": {k: v for k, v in state.items() if k != first},
        "more": state | {"strange": 1.0},
        "text": state | {first: "1.0"},
        "nan": state | {first: float("nan")},
    }
    with pytest.raises(DataError, match=f"{first}.*calibrate again"):
        calibrator().restore(damaged[change])


@every
@pytest.mark.parametrize("use", ["logits", "predict_proba", "state"])
def test_use_before_fit_is_an_error(calibrator, use):
    with pytest.raises(NotFitted, match="fit"):
        getattr(calibrator(), use)(*([] if use == "state" else [np.zeros((1, 1))]))


@every
@pytest.mark.parametrize("all_the_same", [0.0, 1.0])
def test_there_must_be_present_and_absent_labels(calibrator, all_the_same):
    with pytest.raises(InputError, match=r"present .* absent.* among 4 known"):
        calibrator().fit([[1.0, 2.0], [0.0, 1.0]], np.full((2, 2), all_the_same))


@every
def test_nothing_known_is_refused(calibrator):
    with pytest.raises(InputError, match="0 present among 0 known"):
        calibrator().fit([[1.0, 2.0]], [[np.nan, np.nan]])


@every
def test_logits_must_be_finite(calibrator, overconfident):
    with pytest.raises(InputError, match=r"logits must be finite numbers\. Got 1"):
        calibrator().fit([[1.0, np.inf]], [[1, 0]])
    with pytest.raises(InputError, match=r"logits must be finite numbers\. Got 1"):
        calibrator().fit(*overconfident).logits([[np.nan, 0.0]])


@every
def test_says_both_shapes_when_they_differ(calibrator):
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 4\)"):
        calibrator().fit(np.zeros((2, 3)), np.zeros((2, 4)))


@every
def test_speaks_scikit_learn(calibrator):
    it = calibrator()
    assert it.get_params().keys() == settings(calibrator).keys()
    assert it.set_params(**it.get_params()) is it
    assert clone(it).get_params() == it.get_params()
    with pytest.raises(ConfigError, match="strange"):
        it.set_params(strange=1)


@every
def test_inputs_are_left_alone(calibrator, overconfident):
    before = [a.copy() for a in overconfident]
    calibrator().fit(*overconfident).predict_proba(overconfident[0])
    for now, then in zip(overconfident, before, strict=True):
        np.testing.assert_array_equal(now, then)
