import numpy as np
import pytest
from mapie.risk_control.fwer_control import FWERFixedSequenceTesting

from surelabel.decisions.bentkus import bentkus_p_values
from surelabel.decisions.fixed_sequence import lowest_fixed_sequence_index

STARTS = np.array([7, 4])
MANY = np.full(10, 1000.0)


def index_of_mapie(p_values, error):
    """The lowest index of two fixed-sequence tests of MAPIE, which take over each other's error."""
    first, second = STARTS.tolist()
    test = FWERFixedSequenceTesting(n_starts=1)
    n_first = len(test.run(p_values[first::-1], error / 2))
    share = error if n_first >= first - second else error / 2
    n_second = len(test.run(p_values[second::-1], share))
    indices = [first - n_first + 1] * bool(n_first) + [second - n_second + 1] * bool(n_second)
    return min(indices, default=None)


@pytest.mark.parametrize("error", [0.05, 0.1, 0.2])
def test_the_tests_are_those_of_mapie(error):
    rng = np.random.default_rng(0)
    indices = []
    for _ in range(300):
        p_values = rng.random(10) * rng.choice([0.05, 0.15, 0.3])
        indices.append(lowest_fixed_sequence_index(p_values, MANY, STARTS, 0.1, error))
        assert indices[-1] == index_of_mapie(p_values, error)
    assert {None, 4, 7} <= set(indices)


@pytest.mark.parametrize(("p_value", "index"), [(0.049, 0), (0.051, None), (0.099, None)])
def test_each_start_has_half_of_the_error(p_value, index):
    found = lowest_fixed_sequence_index(np.full(10, p_value), MANY, STARTS, 0.1, 0.1)
    assert found == index


def test_a_failed_first_start_leaves_half_of_the_error():
    p_values = np.array([0.9, 0.08, 0.04, 0.04, 0.04, 0.04, 0.04, 0.2, 0.01, 0.01])
    assert lowest_fixed_sequence_index(p_values, MANY, STARTS, 0.1, 0.1) == 2
    p_values[7] = 0.04
    assert lowest_fixed_sequence_index(p_values, MANY, STARTS, 0.1, 0.1) == 1


def test_with_too_few_images_for_half_the_second_start_has_the_whole_error():
    few = np.full(10, 25.0)  # 0.9 ** 25 = 0.072
    p_values = np.full(10, 0.9**25)
    assert lowest_fixed_sequence_index(p_values, few, STARTS, 0.1, 0.1) == 0
    assert lowest_fixed_sequence_index(p_values, MANY, STARTS, 0.1, 0.1) is None
    p_values[4] = 1
    assert lowest_fixed_sequence_index(p_values, few, STARTS, 0.1, 0.1) is None


@pytest.mark.parametrize(("n_first", "n_second"), [(22, 600), (56, 600), (10, 28)])
def test_at_the_level_itself_a_threshold_is_rarely_valid(n_first, n_second):
    """Both starts violate the bound; most images of the second are not those of the first."""
    rng = np.random.default_rng(0)
    counts = np.array([n_second, n_first], dtype=float)
    first = rng.binomial(n_first, 0.1, 3000)
    sums = np.stack([first + rng.binomial(n_second - n_first, 0.1, 3000), first], axis=1)
    p_values = bentkus_p_values(sums.ravel().astype(float), np.tile(counts, 3000), 0.1)
    is_valid = [
        lowest_fixed_sequence_index(p, counts, np.array([1, 0]), 0.1, 0.1) is not None
        for p in p_values.reshape(3000, 2)
    ]
    assert 0.02 < np.mean(is_valid) <= 0.1
