import numpy as np
import pytest
import torch
from torch import nn

from surelabel.errors import DataError
from surelabel.export.verification import CheckBatch, check_runtimes

BATCHES = [
    CheckBatch((torch.tensor([[1.0, 2.0]]),), ["a"]),
    CheckBatch((torch.tensor([[1.0, 2.0], [30.0, 4.0]]),), ["a", "b"]),
]


def run_check(change, output="logits"):
    runtimes = {"exact": lambda arrays: arrays[0], "other": lambda arrays: change(arrays[0])}
    return check_runtimes(nn.Identity(), runtimes, BATCHES, source="f.onnx", output=output)


def test_the_largest_difference_of_each_runtime_is_reported():
    result = run_check(lambda values: values + np.float32(5e-5))
    assert result.max_differences["exact"] == 0
    assert result.max_differences["other"] == pytest.approx(5e-5, rel=0.1)
    assert (result.n_items, result.max_batch, result.limit) == (2, 2, 1e-4)


@pytest.mark.parametrize(("value", "text"), [(0.5, r"0\.5"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_difference_names_the_image_and_the_value(value, text):
    def change_b(values):
        return np.where(values == 30, values + np.float32(value), values)

    with pytest.raises(DataError, match=rf"f\.onnx in other must differ .* got {text} for b\."):
        run_check(change_b)


def test_the_limit_of_scores_is_relative():
    assert run_check(lambda values: values + values * 5e-5, "scores").limit == pytest.approx(3e-3)


def test_another_shape_is_refused():
    with pytest.raises(DataError, match=r"must have the shape \(1, 2\); got \(1, 1\)"):
        run_check(lambda values: values[:, :1])
