import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from surelabel.errors import InputError
from surelabel.methods.region_statistics.discriminant_analysis import linear_discriminant_analysis


def drawn(m=60, d=6, c=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(m, d, generator=generator, dtype=torch.float64)
    classes = torch.randint(c, (m,), generator=generator)
    weights = torch.rand(m, generator=generator, dtype=torch.float64) + 0.1
    return vectors + classes[:, None], classes, weights


def by_hand(vectors, classes, weights, count):
    x, k, w = vectors.numpy(), classes.numpy(), weights.numpy()
    m, d = x.shape
    means = [sum(w[i] * x[i] for i in range(m) if k[i] == c) for c in range(count)]
    means = [mean / w[k == c].sum() for c, mean in enumerate(means)]
    sigma = sum(np.outer(x[i] - means[k[i]], x[i] - means[k[i]]) for i in range(m)) / m
    a = d / (m - 1 + d)
    s = (1 - a) * sigma + a * np.trace(sigma) / d * np.eye(d)
    slopes = np.stack([np.linalg.inv(s) @ mean for mean in means])
    levels = np.array([-mean @ slope / 2 for mean, slope in zip(means, slopes, strict=True)])
    return slopes - slopes.mean(0), levels - levels.mean()


def test_equals_the_formula_vector_by_vector():
    vectors, classes, weights = drawn()
    slopes, levels = linear_discriminant_analysis(vectors, classes, weights, count=4)
    expected = by_hand(vectors, classes, weights, 4)
    np.testing.assert_allclose(slopes.numpy(), expected[0], rtol=1e-9)
    np.testing.assert_allclose(levels.numpy(), expected[1], rtol=1e-9)


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_tells_classes_apart_as_scikit_learn_does_where_all_weights_are_one(solver):
    vectors, classes, weights = drawn(seed=1)
    slopes, levels = linear_discriminant_analysis(
        vectors, classes, torch.ones_like(weights), count=4
    )
    lda = LinearDiscriminantAnalysis(solver=solver, shrinkage=6 / (59 + 6))
    lda.fit(vectors.numpy(), classes.numpy())
    theirs = lda.decision_function(vectors.numpy()) - np.log(lda.priors_)
    mine = (vectors @ slopes.T + levels).numpy()
    np.testing.assert_allclose(mine, theirs - theirs.mean(1, keepdims=True), rtol=1e-6, atol=1e-8)


def test_a_class_without_vectors_moves_nothing_and_is_0():
    vectors, classes, weights = drawn()
    slopes, levels = linear_discriminant_analysis(vectors, classes, weights, count=4)
    more, other = linear_discriminant_analysis(vectors, classes, weights, count=6)
    torch.testing.assert_close(more[:4], slopes)
    torch.testing.assert_close(other[:4], levels)
    assert not more[4:].any()
    assert not other[4:].any()


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 4), st.floats(0, 100))
def test_is_finite_for_few_and_for_equal_vectors(m, d, c, size):
    vectors = torch.full((m, d), size)
    slopes, levels = linear_discriminant_analysis(
        vectors, torch.arange(m) % c, torch.ones(m), count=c
    )
    assert slopes.isfinite().all()
    assert levels.isfinite().all()


def test_no_vectors_are_refused():
    with pytest.raises(InputError, match=r"one vector or more; got none"):
        linear_discriminant_analysis(
            torch.zeros(0, 3), torch.zeros(0).long(), torch.zeros(0), count=2
        )
