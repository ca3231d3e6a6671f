"""Small problems are solved with one thread of BLAS, and the number of threads is restored."""

import inspect
import re

import numpy as np
import pytest
import scipy.linalg  # loads its BLAS
from threadpoolctl import threadpool_info, threadpool_limits

from surelabel.blas_threads import single_blas_thread
from surelabel.calibration import CALIBRATORS, fit_scale_and_shift
from surelabel.calibration.shift import scale_and_shift

FITTED_BY_SMALL_STEPS = [
    *("beta", "cross_validated", "ensemble_temperature", "hierarchical", "platt", "vector")
]


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_number_of_threads_is_restored_also_after_an_error():
    scipy.linalg.solve(np.eye(2), np.ones(2))

    @single_blas_thread()
    def fail():
        raise ValueError(f"failed with {blas_threads()}")

    with threadpool_limits(3, user_api="blas"):
        with pytest.raises(ValueError, match=r"failed with \{1\}"):
            fail()
        assert blas_threads() == {3}


@pytest.mark.parametrize("name", FITTED_BY_SMALL_STEPS)
def test_a_calibrator_is_fitted_with_one_thread(name, monkeypatch):
    threads = set()
    module = inspect.getmodule(CALIBRATORS[name])
    (validate,) = (v for k, v in vars(module).items() if re.fullmatch("validate_.*_data", k))

    def recorded(*arguments):
        threads.update(blas_threads())
        return validate(*arguments)

    monkeypatch.setattr(module, validate.__name__, recorded)
    random = np.random.default_rng(0)
    targets = (random.random((40, 2)) < 0.4).astype(float)
    with threadpool_limits(2, user_api="blas"):
        CALIBRATORS[name]().fit(random.normal(size=(40, 2)), targets)
        assert blas_threads() == {2}
    assert threads == {1}


def test_a_scale_and_a_shift_are_fitted_with_one_thread(monkeypatch):
    threads, validate = set(), scale_and_shift.validate_calibrator_input

    def recorded(logits):
        threads.update(blas_threads())
        return validate(logits)

    monkeypatch.setattr(scale_and_shift, "validate_calibrator_input", recorded)
    with threadpool_limits(2, user_api="blas"):
        fit_scale_and_shift(np.zeros((4, 2)), np.eye(4, 2))
        assert blas_threads() == {2}
    assert threads == {1}
