import numpy as np
import pytest
from scipy.special import expit

from surelabel.errors import InputError
from surelabel.evaluation import ERROR_KINDS, find_label_errors


def sampled(missing, wrong, n=20_000, seed=0):
    """Log-odds of a correct model, and targets with errors at the given rates."""
    random = np.random.default_rng(seed)
    logits = random.normal(-1, 4, size=(n, 2))
    true = random.random((n, 2)) < expit(logits)
    is_error = random.random((n, 2)) < np.where(true, missing, wrong)
    return logits, (true ^ is_error).astype(float), is_error


@pytest.mark.parametrize(("missing", "wrong"), [(0.1, 0.05), (0.2, 0.01), (0.02, 0.1)])
def test_rates_and_probabilities_of_errors_are_those_of_the_simulation(missing, wrong):
    logits, targets, is_error = sampled(missing, wrong)
    errors = find_label_errors(logits, targets)
    assert errors.rates.missing == pytest.approx(missing, abs=0.012)
    assert errors.rates.wrong == pytest.approx(wrong, abs=0.012)
    flagged = errors.flagged
    assert is_error[flagged].mean() == pytest.approx(
        errors.error_probabilities[flagged].mean(), abs=0.03
    )
    assert is_error[flagged].mean() > 0.6


def test_correct_targets_have_few_flags():
    logits, targets, _ = sampled(0.0, 0.0)
    errors = find_label_errors(logits, targets)
    assert max(errors.rates.missing, errors.rates.wrong) < 0.005
    assert errors.flagged.mean() < 0.002


def test_each_kind_is_ranked_by_the_probability_of_the_opposite_target():
    logits, targets, _ = sampled(0.1, 0.1, n=300)
    errors = find_label_errors(logits, targets)
    for kind, sign in zip(ERROR_KINDS, (-1, 1), strict=True):
        cells = errors.ranking(kind, flagged_only=False)
        assert len(cells) == (targets == (sign > 0)).sum()
        assert (np.diff(sign * logits[cells[:, 0], cells[:, 1]]) >= 0).all()
        flagged = errors.ranking(kind)
        np.testing.assert_array_equal(flagged, cells[: len(flagged)])


def test_unknown_and_soft_targets_are_no_errors():
    logits, targets, _ = sampled(0.2, 0.2, n=400)
    targets[0], targets[1] = np.nan, 0.5
    logits[:2] = 30.0
    errors = find_label_errors(logits, targets)
    assert not errors.known[:2].any()
    assert not errors.error_probabilities[:2].any()


@pytest.mark.parametrize(("value", "name"), [(0, "positive"), (1, "negative")])
def test_targets_of_one_class_are_refused(value, name):
    with pytest.raises(InputError, match=f"got no {name} target"):
        find_label_errors([[1.0], [2.0]], [[value], [value]])


def test_invalid_log_odds_are_refused():
    with pytest.raises(InputError, match="logits must be finite"):
        find_label_errors([[np.nan], [2.0]], [[0], [1]])


def test_an_unknown_kind_is_refused():
    errors = find_label_errors([[1.0], [2.0]], [[0], [1]])
    with pytest.raises(InputError, match="kind must be one of 'missing positive'"):
        errors.ranking("missing")
