"""Text similarity, and correlation of predictions."""

import numpy as np
import pytest
import torch

from surelabel.regularizers.covariance.prediction_covariance import (
    prediction_correlation,
    prediction_covariance_difference,
    prediction_covariance_text_similarity,
)

TEXTS = torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 0.5]], dtype=torch.float64)


def test_the_cosine_ignores_lengths():
    half = 2**-0.5
    expected = torch.tensor([[1, half, 0], [half, 1, half], [0, half, 1]], dtype=torch.float64)
    torch.testing.assert_close(prediction_covariance_text_similarity(TEXTS, "cosine"), expected)


def test_centered_is_the_cosine_about_the_mean_name():
    apart = (TEXTS - TEXTS.mean(0)).numpy()
    unit = apart / np.linalg.norm(apart, axis=1, keepdims=True)
    np.testing.assert_allclose(
        prediction_covariance_text_similarity(TEXTS, "centered").numpy(), unit @ unit.T
    )
    assert prediction_covariance_text_similarity(TEXTS, "centered").min() < 0


def test_minmax_ranges_over_all_of_zero_to_one_between_names():
    pairs = prediction_covariance_text_similarity(TEXTS, "minmax")[~torch.eye(3, dtype=torch.bool)]
    assert pairs.min() == 0
    assert pairs.max() == pytest.approx(1)


@pytest.mark.parametrize("target", ["cosine", "centered", "minmax"])
@pytest.mark.parametrize("count", [1, 2])
def test_equal_texts_give_finite_numbers(target, count):
    assert prediction_covariance_text_similarity(torch.ones(count, 3), target).isfinite().all()


def test_raw_covariance_is_that_worked_out_by_hand(small):
    expected = torch.tensor(
        [[0.005, -0.0025, -0.0025], [-0.0025, 0.005, 0.005], [-0.0025, 0.005, 0.006875]],
        dtype=torch.float64,
    )
    width = (expected.diagonal() + 1e-3).sqrt()
    got = prediction_correlation(small.scores.sigmoid(), 1 - small.targets, torch.tensor(4), 1e-3)
    torch.testing.assert_close(got, expected / (width[:, None] * width))


def test_the_diagonal_and_pairs_that_share_too_little_are_left_out():
    together, alike = torch.full((3, 3), 0.5), torch.zeros(3, 3)
    together[0, 1] = together[1, 0] = 0.9
    shared = torch.tensor([[9, 3, 4], [3, 9, 4], [4, 4, 9]])
    assert prediction_covariance_difference(together, alike, shared, 4) == pytest.approx(0.25)
