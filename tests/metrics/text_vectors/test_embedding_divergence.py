import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import embedding_divergence


def by_loops(vectors, k):
    units = [v / np.linalg.norm(v) for v in vectors]
    divergences = []
    for i, unit in enumerate(units):
        distances = sorted(1 - unit @ other for j, other in enumerate(units) if j != i)
        divergences.append(sum(distances[:k]) / len(distances[:k]))
    return divergences


@pytest.mark.parametrize("k", [1, 5, 10, 100])
def test_equals_plain_loops(k):
    vectors = np.random.default_rng(0).normal(size=(13, 7))
    assert embedding_divergence(vectors, neighbours=k) == pytest.approx(by_loops(vectors, k))


def test_lengths_of_vectors_do_not_matter():
    vectors = np.random.default_rng(1).normal(size=(6, 4))
    lengths = np.arange(1, 7)[:, None]
    assert embedding_divergence(lengths * vectors) == pytest.approx(embedding_divergence(vectors))


def test_a_label_far_from_the_others_has_the_largest_divergence():
    vectors = np.array([[1, 0], [1, 0.1], [1, -0.1], [-1, 0]])
    divergence = embedding_divergence(vectors, neighbours=2)
    assert divergence.argmax() == 3
    assert divergence[3] == pytest.approx(1 + 1 / np.hypot(1, 0.1))


def test_equal_vectors_have_no_negative_divergence():
    vectors = np.tile(np.random.default_rng(2).normal(size=(1, 9)), (4, 1))
    divergence = embedding_divergence(vectors)
    assert (divergence >= 0).all()
    assert divergence == pytest.approx(0, abs=1e-12)


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match=r"tuned must contain .* at least two labels.* got 1"):
        embedding_divergence(np.ones((1, 3)))
    with pytest.raises(InputError, match=r"tuned must be finite and nonzero"):
        embedding_divergence(np.zeros((2, 3)))
    with pytest.raises(ConfigError, match=r"neighbours must be"):
        embedding_divergence(np.eye(3), neighbours=0)
