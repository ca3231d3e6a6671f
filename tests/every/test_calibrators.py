"""What every calibrator must do. A new line in CALIBRATORS is tested here with no more work."""

import json
import re
from functools import cache
from inspect import Parameter, signature

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from scipy.special import expit
from sklearn.base import clone

from surelabel.calibration import CALIBRATORS, LabelTexts, UsesImageVectors, UsesLabelTexts
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.metrics import average_precision_per_class, log_loss_of_logits
from surelabel.tables import table_entry_settings


def vectors_of(logits):
    """Return a vector for each row: statistics of its logits, so that equal rows are equal."""
    x = np.arctan(np.nan_to_num(np.asarray(logits, dtype=np.float64)))
    if x.ndim != 2:
        return np.zeros((len(x), 4))
    return np.stack([x.mean(axis=1), x.std(axis=1), x.max(axis=1), np.cos(3 * x[:, 0])], axis=1)


def with_vectors_of_its_rows(entry):
    """Return the entry; if it uses image vectors, each call gets the vectors of its images."""
    if not issubclass(entry, UsesImageVectors):
        return entry

    class WithVectors(entry):
        def fit(self, logits, targets, known=None):
            fitted = self.with_image_vectors(vectors_of(logits))
            entry.fit(fitted, logits, targets, known)
            vars(self).update(vars(fitted.with_image_vectors(None)))
            return self

        def logits(self, logits):
            return entry.logits(self.with_image_vectors(vectors_of(logits)), logits)

    WithVectors.__name__ = entry.__name__
    return WithVectors


every = pytest.mark.parametrize(
    "calibrator",
    [with_vectors_of_its_rows(entry) for entry in CALIBRATORS.values()],
    ids=CALIBRATORS.keys(),
)


def calibrated_data():
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(4000, 3)) - 1
    return truth, (rng.random(truth.shape) < expit(truth)).astype(float)


@pytest.fixture
def calibrated():
    return calibrated_data()


@pytest.fixture
def overconfident(calibrated):
    logits, targets = calibrated
    return 3 * logits, targets


@cache
def fitted_on_overconfident(calibrator):
    """Fit a calibrator once on the data of ``overconfident``. Tests only read it."""
    logits, targets = calibrated_data()
    return calibrator().fit(3 * logits, targets)


@every
def test_fit_returns_self(calibrator, overconfident):
    it = calibrator()
    assert it.fit(*overconfident) is it


@every
def test_never_worse_than_leaving_the_logits_alone(calibrator, overconfident):
    logits, targets = overconfident
    for raw in (logits, logits / 3, logits / 10):
        fitted = calibrator().fit(raw, targets).logits(raw)
        lost = 0.03 if calibrator.keeps_order == "no" else 1e-7  # bins hide what is inside them
        assert log_loss_of_logits(fitted, targets) <= log_loss_of_logits(raw, targets) + lost


@every
def test_overconfidence_is_cured(calibrator, overconfident, calibrated):
    truth = expit(calibrated[0])
    before = np.abs(expit(overconfident[0]) - truth).mean()
    after = np.abs(fitted_on_overconfident(calibrator).predict_proba(overconfident[0]) - truth)
    assert after.mean() < (0.2 if calibrator.keeps_order != "no" else 0.6) * before
    if calibrator.keeps_order == "strictly":
        assert after.max() < 0.02


@every
def test_what_is_calibrated_already_is_left_about_as_it_is(calibrator, calibrated):
    logits, targets = calibrated
    after = np.abs(calibrator().fit(logits, targets).predict_proba(logits) - expit(logits))
    assert after.mean() < 0.025
    if calibrator.keeps_order == "strictly":
        assert after.max() < 0.02


@every
@given(
    scores=hnp.arrays(float, (12, 2), elements=st.integers(-2000, 2000).map(lambda k: k / 100)),
    targets=hnp.arrays(bool, (12, 2)),
)
@hypothesis.settings(max_examples=25, deadline=None)
def test_order_inside_a_label_is_kept_as_promised(calibrator, scores, targets):
    assume(0 < targets.sum() < targets.size)
    it = calibrator().fit(scores, targets)
    found = it.logits(np.sort(scores, axis=0))
    assert (np.abs(found) <= 40).all()
    step, gap = np.diff(found, axis=0), np.diff(np.sort(scores, axis=0), axis=0)
    if calibrator.keeps_order != "no":
        assert (step >= -1e-9).all()
    if calibrator.keeps_order == "strictly":
        inside = (np.abs(found[:-1]) < 40) & (np.abs(found[1:]) < 40)
        assert (step[inside & (gap > 0)] > 0).all()


@every
def test_a_strict_order_leaves_average_precision_alone(calibrator, overconfident):
    if calibrator.keeps_order == "strictly":
        logits, targets = overconfident[0][:1000].clip(-20, 20), overconfident[1][:1000]
        fitted = calibrator().fit(logits, targets).logits(logits)
        np.testing.assert_allclose(
            average_precision_per_class(fitted, targets),
            average_precision_per_class(logits, targets),
        )


@every
def test_logits_are_float64_inside_forty_and_probabilities_their_sigmoid(calibrator, overconfident):
    it = fitted_on_overconfident(calibrator)
    found = it.logits(np.array([[-1e9] * 3, [0.0] * 3, [1e9] * 3], dtype=np.float32))
    assert found.dtype == np.float64
    assert (np.abs(found) <= 40).all()
    assert (np.diff(found, axis=0) > 0).all()
    if calibrator.keeps_order == "strictly":
        np.testing.assert_array_equal(found[[0, 2]], [[-40] * 3, [40] * 3])
    np.testing.assert_array_equal(
        it.predict_proba(overconfident[0]), expit(it.logits(overconfident[0]))
    )


@every
def test_half_precision_is_taken(calibrator, overconfident):
    logits, targets = overconfident[0][:500].astype(np.float16), overconfident[1][:500]
    wide = calibrator().fit(logits.astype(np.float64), targets).logits(logits)
    np.testing.assert_array_equal(calibrator().fit(logits, targets).logits(logits), wide)


@every
def test_one_image_with_present_and_absent_labels_is_enough(calibrator):
    found = calibrator().fit([[1.0, -1.0]], [[1, 0]]).predict_proba([[1.0, -1.0]])[0]
    assert 0 < found[1] < 0.5 < found[0] < 1


@every
def test_scores_that_are_all_the_same_get_about_the_share_of_present_labels(calibrator):
    scores, targets = np.full((400, 2), 0.7), np.tile(np.arange(400) % 8 == 0, (2, 1)).T
    found = calibrator().fit(scores, targets).predict_proba(scores)
    if calibrator.__name__ == "Temperature":  # it cannot move the level
        np.testing.assert_allclose(found, 0.5, atol=0.001)
    else:
        np.testing.assert_allclose(found.mean(), 1 / 8, atol=0.01)


@every
def test_graded_targets_count_as_so_many_present_and_absent(calibrator):
    rng = np.random.default_rng(5)
    logits = 2 * rng.normal(size=(500, 2)) - 1
    graded = expit(logits / 2 + 1).round(1)
    split = np.repeat(logits, 10, axis=0), np.arange(0.05, 1, 0.1)[None, :, None] < graded[:, None]
    found = calibrator().fit(logits, graded).predict_proba(logits)
    expected = calibrator().fit(split[0], split[1].reshape(-1, 2)).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert np.abs(found - expected).mean() < 0.02


@every
def test_a_label_of_which_nothing_is_known_gets_what_all_share(calibrator, overconfident):
    logits, targets = overconfident[0], overconfident[1].copy()
    targets[:, 1] = np.nan
    it = calibrator().fit(logits, targets)
    expected = it.shared_calibrator().logits(logits)[:, 1]
    np.testing.assert_allclose(it.logits(logits)[:, 1], expected, atol=1e-9)


@every
def test_unknown_targets_have_no_influence(calibrator, overconfident):
    logits, targets = (array[:1000] for array in overconfident)
    known = np.random.default_rng(1).random(targets.shape) < 0.5
    expected = calibrator().fit(logits, targets, known).state()
    assert (
        calibrator().fit(logits, np.where(known, targets, 1 - targets), known).state() == expected
    )
    assert calibrator().fit(logits, np.where(known, targets, np.nan)).state() == expected
    assert calibrator().fit(logits, targets).state() != expected


@every
def test_what_all_labels_share_holds_for_new_ones(calibrator, overconfident):
    it = fitted_on_overconfident(calibrator)
    part = it.shared_calibrator()
    assert (part is it) is calibrator.shares_parameters
    if part is not None:
        assert part.shares_parameters
        wider = np.tile(overconfident[0], (1, 2))
        np.testing.assert_array_equal(part.logits(wider)[:, :3], part.logits(wider)[:, 3:])


@every
def test_texts_of_the_labels_of_the_fit_and_untuned_texts_change_no_logit(calibrator, calibrated):
    if not issubclass(calibrator, UsesLabelTexts):
        return
    it, texts = calibrator().fit(*calibrated), np.random.default_rng(0).normal(size=(2, 3, 8))
    tuned, untuned = LabelTexts(texts[0], texts[1]), LabelTexts(texts[0], texts[0])
    logits = it.logits(calibrated[0])
    for other in (
        it.with_label_texts(tuned, tuned),
        it.with_label_texts(untuned, LabelTexts(texts[1], texts[1])),
    ):
        np.testing.assert_array_equal(other.logits(calibrated[0]), logits)


@pytest.mark.parametrize(
    "calibrator", [entry for entry in CALIBRATORS.values() if issubclass(entry, UsesImageVectors)]
)
def test_what_uses_image_vectors_refuses_to_work_without_them(calibrator, calibrated):
    vectors = vectors_of(calibrated[0])
    fitted = calibrator().with_image_vectors(vectors).fit(*calibrated)
    expected = fitted.logits(calibrated[0])
    for use in (calibrator().fit, fitted.with_image_vectors(None).logits):
        with pytest.raises(ConfigError, match="requires the vector of each image; got none"):
            use(*calibrated) if use.__name__ == "fit" else use(calibrated[0])
    last = fitted.with_image_vectors(vectors[::-1]).logits(calibrated[0][::-1])
    np.testing.assert_allclose(last[::-1], expected)


@every
def test_what_belongs_to_single_labels_refuses_others(calibrator):
    it = fitted_on_overconfident(calibrator)
    if calibrator.shares_parameters:
        assert it.logits(np.zeros((2, 5))).shape == (2, 5)
    else:
        with pytest.raises(
            InputError, match=r"the 3 labels .* got 5 labels\. .* shared_calibrator"
        ):
            it.logits(np.zeros((2, 5)))


@every
def test_comes_back_from_json(calibrator, overconfident):
    it = fitted_on_overconfident(calibrator)
    again = calibrator()
    assert again.restore(json.loads(json.dumps(it.state()))) is again
    np.testing.assert_array_equal(again.logits(overconfident[0]), it.logits(overconfident[0]))


@every
@pytest.mark.parametrize("change", ["missing", "more", "text", "nan", "shorter"])
def test_a_damaged_state_is_refused(calibrator, change):
    state = fitted_on_overconfident(calibrator).state()
    for name, value in state.items():
        damaged = {
            "missing": {k: v for k, v in state.items() if k != name},
            "more": state | {"strange": 1.0},
            "text": state | {name: "1.0"},
            "nan": state | {name: [float("nan")] * 2 if isinstance(value, list) else float("nan")},
            "shorter": state | {name: value[:-1] if isinstance(value, list) else []},
        }
        with pytest.raises(DataError, match="Calibrate again"):
            calibrator().restore(damaged[change])


@every
def test_a_state_that_is_not_a_dictionary_is_refused(calibrator):
    with pytest.raises(DataError, match="Calibrate again"):
        calibrator().restore([1.0, 2.0])


@every
@pytest.mark.parametrize("use", ["logits", "predict_proba", "state"])
def test_use_before_fit_is_an_error(calibrator, use):
    with pytest.raises(NotFitted, match="fit"):
        getattr(calibrator(), use)(*([] if use == "state" else [np.zeros((1, 1))]))


@every
@pytest.mark.parametrize("all_the_same", [0.0, 1.0])
def test_there_must_be_present_and_absent_labels(calibrator, all_the_same):
    with pytest.raises(InputError, match=r"positive .* negative.* among 4 known"):
        calibrator().fit([[1.0, 2.0], [0.0, 1.0]], np.full((2, 2), all_the_same))


@every
def test_nothing_known_is_refused(calibrator):
    with pytest.raises(InputError, match=r"one known positive .* 0 positive among 0 known"):
        calibrator().fit([[1.0, 2.0]], [[np.nan, np.nan]])


@every
def test_logits_must_be_finite(calibrator):
    with pytest.raises(InputError, match=r"logits must be finite numbers; got 1"):
        calibrator().fit([[1.0, np.inf]], [[1, 0]])
    with pytest.raises(InputError, match=r"logits must be finite numbers; got 1"):
        fitted_on_overconfident(calibrator).logits([[np.nan, 0.0]])


@every
def test_says_both_shapes_when_they_differ(calibrator):
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 4\)"):
        calibrator().fit(np.zeros((2, 3)), np.zeros((2, 4)))


@every
def test_the_signature_shows_the_settings_as_keywords_with_their_defaults(calibrator):
    parameters = signature(calibrator).parameters.values()
    assert all(p.kind is Parameter.KEYWORD_ONLY for p in parameters)
    assert {p.name: p.default for p in parameters} == calibrator().get_params()


@every
def test_speaks_scikit_learn(calibrator):
    it = calibrator()
    assert it.get_params().keys() == table_entry_settings(calibrator).keys()
    assert it.set_params(**it.get_params()) is it
    assert clone(it).get_params() == it.get_params()
    with pytest.raises(ConfigError, match="strange"):
        it.set_params(strange=1)


@every
def test_clones_keep_settings_and_lose_what_was_fitted(calibrator, overconfident):
    settings = {name: 3 * value for name, value in calibrator().get_params().items()}
    it = calibrator().set_params(**settings).fit(*(array[:200] for array in overconfident))
    assert it.get_params() == calibrator(**settings).get_params() == settings
    copy = clone(it)
    assert copy.get_params() == settings
    with pytest.raises(NotFitted, match="fit"):
        copy.state()


@every
def test_an_invalid_setting_changes_no_setting(calibrator):
    for name, value in calibrator().get_params().items():
        it = calibrator()
        with pytest.raises(ConfigError, match=name):
            it.set_params(**{name: -1.0})
        assert it.get_params()[name] == value


@every
def test_the_repr_shows_changed_settings_and_what_was_fitted(calibrator, overconfident):
    name = calibrator.__name__
    assert repr(calibrator()) == f"{name}()"
    settings = {key: 3 * value for key, value in calibrator().get_params().items()}
    it = calibrator(**settings)
    assert repr(it) == f"{name}({', '.join(f'{k}={v:g}' for k, v in settings.items())})"
    it.fit(*(array[:200] for array in overconfident))
    shown = set(re.findall(r"(?:[(,] ?|^    )(\w+)=", repr(it), re.MULTILINE))
    assert set(settings) | {key for key in vars(it) if key.endswith("_")} <= shown


@every
def test_the_repr_of_many_labels_is_short(calibrator):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20, 300))
    it = calibrator().fit(logits, rng.random(logits.shape) < expit(logits))
    assert len(repr(it)) < 300
    assert len(it._repr_html_()) < 1500


@every
def test_html_shows_all_settings(calibrator):
    page = calibrator()._repr_html_()
    for name, value in calibrator().get_params().items():
        assert f'<th scope="row">{name}</th><td>{value:g}</td>' in page
    assert f"<strong>{calibrator.__name__}</strong>" in page


@every
def test_inputs_are_left_alone(calibrator, overconfident):
    before = [a.copy() for a in overconfident]
    calibrator().fit(*overconfident).predict_proba(overconfident[0])
    for now, then in zip(overconfident, before, strict=True):
        np.testing.assert_array_equal(now, then)
