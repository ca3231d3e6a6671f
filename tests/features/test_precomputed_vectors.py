import numpy as np
import pytest
import torch

from surelabel.errors import InputError
from surelabel.features import normalize_precomputed_vectors


def test_vectors_keep_their_direction_and_lose_their_length():
    pooled = normalize_precomputed_vectors(
        np.array([[3.0, 4.0], [0.0, -2.0]], np.float32), width=2
    ).features.pooled
    torch.testing.assert_close(pooled, torch.tensor([[0.6, 0.8], [0.0, -1.0]]))


@pytest.mark.parametrize("length", [1e-44, 1e-30, 1e30])
def test_tiny_and_huge_vectors_are_of_unit_length_too(length):
    given = np.array([[1.0, -1.0]]) * length
    pooled = normalize_precomputed_vectors(given.astype(np.float32), width=2).features.pooled
    torch.testing.assert_close(pooled, torch.tensor([[0.5, -0.5]]).sqrt().nan_to_num(-(0.5**0.5)))


def test_half_precision_is_taken():
    pooled = normalize_precomputed_vectors(
        np.array([[300.0, 400.0]], np.float16), width=2
    ).features.pooled
    torch.testing.assert_close(pooled, torch.tensor([[0.6, 0.8]]))


def test_every_row_is_there_and_none_was_skipped():
    found = normalize_precomputed_vectors(np.ones((3, 2), np.float32), width=2)
    assert found.rows.tolist() == [0, 1, 2]
    assert not found.skipped
    assert not found.hashes


def test_the_vectors_given_stay_as_they_are():
    given = np.array([[3.0, 4.0]], np.float32)
    normalize_precomputed_vectors(given, width=2)
    assert given.tolist() == [[3.0, 4.0]]


def test_another_width_or_no_row_is_refused():
    with pytest.raises(InputError, match=r"4 columns, .* got 5. .* encoder.name=features:5"):
        normalize_precomputed_vectors(np.ones((2, 5), np.float32), width=4)
    with pytest.raises(InputError, match=r"at least one row; got none"):
        normalize_precomputed_vectors(np.ones((0, 4), np.float32), width=4)


def test_a_vector_without_direction_is_refused():
    given = np.array([[1, 0], [0, 0], [0, 0]], np.float32)
    with pytest.raises(InputError, match=r"got 2 such rows \(first: row 1\). Remove these rows"):
        normalize_precomputed_vectors(given, width=2)
