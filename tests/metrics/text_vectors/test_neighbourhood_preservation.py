import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import neighbourhood_preservation


def nearest_by_loops(vectors, i, k):
    units = [v / np.linalg.norm(v) for v in vectors]
    others = [j for j in range(len(units)) if j != i]
    return set(sorted(others, key=lambda j: -(units[i] @ units[j]))[:k])


@pytest.mark.parametrize("k", [1, 5, 10])
def test_equals_plain_loops(k):
    random = np.random.default_rng(0)
    frozen = random.normal(size=(14, 6))
    tuned = frozen + 0.7 * random.normal(size=(14, 6))
    expected = [
        len(nearest_by_loops(tuned, i, k) & nearest_by_loops(frozen, i, k)) / k for i in range(14)
    ]
    preservation = neighbourhood_preservation(tuned, frozen, neighbours=k)
    assert preservation == pytest.approx(expected)
    assert 0 < preservation.mean() < 1


def test_a_rotation_keeps_all_neighbours():
    random = np.random.default_rng(1)
    frozen = random.normal(size=(12, 5))
    rotation, _ = np.linalg.qr(random.normal(size=(5, 5)))
    assert (neighbourhood_preservation(frozen @ rotation, frozen) == 1).all()


def test_vectors_of_other_widths_and_equal_cosines_can_be_compared():
    tuned, frozen = np.eye(4), np.eye(6)[:4]
    assert neighbourhood_preservation(tuned, frozen, neighbours=2).tolist() == [1, 1, 1, 1]


def test_more_neighbours_than_labels_are_all_other_labels():
    random = np.random.default_rng(2)
    tuned, frozen = random.normal(size=(2, 4, 3))
    assert (neighbourhood_preservation(tuned, frozen, neighbours=9) == 1).all()


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match=r"frozen must have axes .*\(3, 3\).*\(2, 2\)"):
        neighbourhood_preservation(np.eye(3), np.eye(2))
    with pytest.raises(InputError, match=r"frozen must be finite and nonzero"):
        neighbourhood_preservation(np.eye(2), np.full((2, 2), np.nan))
    with pytest.raises(ConfigError, match=r"neighbours must be"):
        neighbourhood_preservation(np.eye(3), np.eye(3), neighbours=1.5)
