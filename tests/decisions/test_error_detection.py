import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from surelabel.decisions import error_auroc
from surelabel.errors import InputError


@pytest.mark.parametrize("levels", [3, 1000])
def test_equals_scikit_learn_with_and_without_weights(levels):
    random = np.random.default_rng(levels)
    uncertainty = random.integers(levels, size=300) / 7
    is_error = random.random(300) < 0.3
    weights = random.integers(4, size=300)
    assert error_auroc(uncertainty, is_error) == pytest.approx(roc_auc_score(is_error, uncertainty))
    assert error_auroc(uncertainty, is_error, weights) == pytest.approx(
        roc_auc_score(is_error, uncertainty, sample_weight=weights)
    )


def test_a_constant_uncertainty_detects_nothing():
    assert error_auroc([2, 2, 2], [True, False, False]) == 0.5


@pytest.mark.parametrize("is_error", [[True, True], [False, False]])
def test_without_errors_or_correct_decisions_the_value_is_undefined(is_error):
    assert math.isnan(error_auroc([0.1, 0.2], is_error))


def test_bad_values_are_refused():
    with pytest.raises(InputError, match="uncertainty must be finite"):
        error_auroc([np.nan], [True])
    with pytest.raises(InputError, match=r"weights must be >= 0; got -1\.0"):
        error_auroc([1, 2], [True, False], [1, -1])
    with pytest.raises(InputError, match=r"must have axes \(n\)"):
        error_auroc([1, 2], [True])
