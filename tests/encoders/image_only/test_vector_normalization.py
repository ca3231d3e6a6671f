import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from surelabel.encoders.image_only.vector_normalization import (
    ROWS_PER_BLOCK,
    VectorNormalization,
    fit_vector_normalization,
    has_unit_length,
)
from surelabel.errors import ConfigError, InputError

UNIT = np.array([[0.6, 0.8], [0.0, -1.0]], np.float32)


def vectors(n=50, d=4):
    random = np.random.default_rng(0)
    return (random.normal(size=(n, d)) * [1, 1e-3, 50, 1e6] + [0, 1, -7, 1e7]).astype(np.float32)


@pytest.mark.parametrize("n", [50, ROWS_PER_BLOCK + 3])
def test_standard_scores_are_those_of_scikit_learn(n):
    train, test = vectors(n), vectors(n)[::-3] + 1
    scaler = StandardScaler().fit(train.astype(np.float64))
    normalization = fit_vector_normalization(train, "standardize")
    np.testing.assert_allclose(normalization.mean, scaler.mean_)
    np.testing.assert_allclose(normalization.deviation, scaler.scale_)
    scores = normalization.normalize(test).numpy() * 2  # the square root of the width
    np.testing.assert_allclose(scores, scaler.transform(test.astype(np.float64)), rtol=1e-5)


def test_the_mean_squared_length_of_standardized_training_vectors_is_1():
    train = vectors()
    normalized = fit_vector_normalization(train).normalize(train)
    assert float(normalized.square().sum(dim=1).mean()) == pytest.approx(1, rel=1e-5)


def test_one_row_is_normalized_by_the_statistics_and_not_by_itself():
    normalization = fit_vector_normalization(vectors(), "standardize")
    alone, together = normalization.normalize(vectors()[:1]), normalization.normalize(vectors())
    torch.testing.assert_close(alone, together[:1])


def test_unit_vectors_are_not_standardized_unless_it_is_set():
    assert fit_vector_normalization(UNIT).kind == "unit"
    assert fit_vector_normalization(UNIT.astype(np.float16)).kind == "unit"
    assert fit_vector_normalization(UNIT, "standardize").kind == "standardize"
    assert fit_vector_normalization(np.vstack([UNIT, [[0, 0.98]]])).kind == "standardize"
    assert not has_unit_length(np.zeros((1, 2)))


def test_a_constant_column_is_0_for_other_vectors_too():
    train = np.array([[0.1, 1], [0.1, 2], [0.1, 3]], np.float32)  # 0.1 is not exact in binary
    normalization = fit_vector_normalization(train)
    other = normalization.normalize(np.array([[1e30, 2.0]], np.float32))
    torch.testing.assert_close(other, torch.zeros(1, 2))
    assert normalization.description == (
        "standardized by the statistics of 3 training vectors, 1 of 2 columns constant"
    )


def test_rows_of_zeros_are_standardized_but_have_no_unit_length():
    train = np.array([[0.0, 0.0], [2.0, 4.0]], np.float32)
    expected = torch.tensor([[-1.0, -1.0], [1.0, 1.0]]) * 0.5**0.5
    torch.testing.assert_close(fit_vector_normalization(train).normalize(train), expected)
    with pytest.raises(InputError, match=r"row 0\)\. Remove these rows, or fit with"):
        VectorNormalization("unit").normalize(train)


def test_extreme_values_stay_finite():
    largest = np.finfo(np.float32).max
    train = np.array([[0.0, -largest], [1e-44, largest]], np.float32)
    normalization = fit_vector_normalization(train)
    assert normalization.normalize(train).abs().max() <= 1
    extreme = normalization.normalize(np.array([[largest, 0.0]], np.float32))
    torch.testing.assert_close(extreme, torch.tensor([[10_000.0, 0.0]]) * 0.5**0.5)


def test_vectors_without_normalization_stay_as_they_are_and_are_copied():
    given = vectors()
    normalized = fit_vector_normalization(given, "none").normalize(given)
    assert np.array_equal(normalized.numpy(), given)
    normalized.zero_()
    assert given.any()


def test_one_training_vector_has_no_statistics():
    with pytest.raises(InputError, match=r"at least 2 training vectors; got 1\. .*normalize=unit"):
        fit_vector_normalization(vectors(1))
    assert fit_vector_normalization(UNIT[:1]).kind == "unit"


@pytest.mark.parametrize("name", ["l2", "", None, 1, ["unit"]])
def test_an_unknown_normalization_is_refused(name):
    with pytest.raises(ConfigError, match="one of auto, standardize, unit, none; got"):
        fit_vector_normalization(vectors(), name)
