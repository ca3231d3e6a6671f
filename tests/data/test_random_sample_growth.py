import numpy as np
import pytest

from surelabel.data.random_sample_growth import grow_random_sample
from surelabel.errors import InputError
from surelabel.records import RowSelection


def entries(is_random, probability=np.nan, other=""):
    keys = ["random" if flag else other for flag in is_random]
    return RowSelection(keys, np.where(is_random, probability, np.nan))


def grow(numbers, is_random, needs_labels=None, *, n_more=0, max_new=10**6, probability=None):
    is_random = np.asarray(is_random, dtype=bool)
    if probability is None:
        probability = is_random.mean() if is_random.any() else np.nan
    needs = ~is_random if needs_labels is None else needs_labels
    selection = entries(is_random, probability)
    return grow_random_sample(numbers, selection, needs, n_more=n_more, max_new=max_new)


def test_the_sample_has_the_smallest_numbers_and_grows_around_the_earlier_one():
    numbers = np.random.default_rng(0).random(50)
    is_sampled = np.zeros(50, dtype=bool)
    for size in (10, 20, 45, 50):
        sample = grow(numbers, is_sampled, n_more=size - is_sampled.sum())
        assert set(np.flatnonzero(sample.is_sampled)) == set(np.argsort(numbers)[:size])
        assert sample.probability == size / 50
        is_sampled = sample.is_sampled


def test_rows_that_a_strategy_chose_become_random_by_their_number_alone():
    numbers = np.array([0.1, 0.2, 0.3, 0.4])
    selection = RowSelection(["random", "representative", "", ""], [0.25, *[np.nan] * 3])
    needs_labels = np.array([False, False, True, True])
    sample = grow_random_sample(numbers, selection, needs_labels, n_more=2, max_new=2)
    assert sample.is_sampled.tolist() == [True, True, True, False]


def test_inclusion_does_not_depend_on_the_choice_of_the_strategy():
    rng = np.random.default_rng(0)
    numbers = rng.random(60)
    first = grow(numbers, np.zeros(60, bool), n_more=10).is_sampled
    samples = []
    for _ in range(20):
        keys = np.where(rng.random(60) < 0.4, "representative", "").astype(object)
        keys[first] = "random"
        selection = RowSelection(list(keys), np.where(first, 10 / 60, np.nan))
        sample = grow_random_sample(numbers, selection, keys == "", n_more=5, max_new=60)
        samples.append(sample.is_sampled)
    assert np.array_equal(samples, [samples[0]] * 20)
    assert samples[0].sum() == 15


def test_the_mean_of_the_sample_is_unbiased_even_if_the_strategy_prefers_positives():
    rng = np.random.default_rng(0)
    truth = (np.arange(40) < 12).astype(float)
    errors, included = [], np.zeros(40)
    for _ in range(2000):
        numbers = rng.random(40)
        is_random = grow(numbers, np.zeros(40, bool), n_more=5).is_sampled
        for _ in range(2):  # between rounds, the strategy annotates all positives
            needs_labels = ~is_random & (truth == 0)
            is_random = grow(numbers, is_random, needs_labels, n_more=5, max_new=20).is_sampled
        errors.append(truth[is_random].mean() - truth.mean())
        included += is_random
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(2000)
    assert np.abs(included / 2000 - 15 / 40).max() < 5 * np.sqrt(0.375 * 0.625 / 2000)


def test_rows_that_are_added_later_have_the_same_inclusion_probability():
    rng = np.random.default_rng(0)
    counts = np.zeros(30)
    for _ in range(2000):
        numbers = rng.random(30)
        before = np.zeros(30, dtype=bool)
        before[:20] = grow(numbers[:20], np.zeros(20, bool), n_more=8).is_sampled
        counts += grow(numbers, before, n_more=4, probability=8 / 20).is_sampled
    share = counts / 2000
    error = np.sqrt(share.mean() * (1 - share.mean()) / 2000)
    assert abs(share[:20].mean() - share[20:].mean()) < 0.03
    assert np.abs(share - share.mean()).max() < 5 * error + 0.02


def test_the_number_of_new_rows_is_limited_if_many_rows_were_added():
    numbers = np.concatenate([[0.5, 0.9], np.linspace(0.01, 0.4, 20)])
    before = np.arange(22) == 0
    sample = grow(numbers, before, n_more=1, max_new=6, probability=0.5)
    assert sample.is_sampled.sum() == 6
    assert not sample.is_sampled[0]  # its number is larger than those of 20 new rows


def test_random_rows_of_another_program_are_kept_and_extended():
    rng = np.random.default_rng(0)
    counts = np.zeros(40)
    for _ in range(1000):
        before = np.zeros(40, dtype=bool)
        before[rng.choice(40, 8, replace=False)] = True
        sample = grow(rng.random(40), before, n_more=6)
        assert sample.is_sampled[before].all()
        assert sample.is_sampled.sum() == 14
        assert sample.probability == 14 / 40
        counts += sample.is_sampled
    assert np.abs(counts / 1000 - 14 / 40).max() < 5 * np.sqrt(0.35 * 0.65 / 1000)


def test_a_sample_of_another_seed_cannot_grow_with_the_pool():
    rng = np.random.default_rng(0)
    numbers, others = rng.random(100), rng.random(100)
    before = grow(others, np.zeros(100, bool), n_more=10).is_sampled
    with pytest.raises(InputError, match=r"got 30 added rows.*--seed of the first round"):
        grow(numbers, before, probability=10 / 70)
    with pytest.raises(InputError, match=r"among 100 rows; got only 50 rows now.*--pool"):
        grow(others[:50], before[:50], probability=before[:50].sum() / 100)


def test_unequal_probabilities_are_refused():
    selection = RowSelection(["random", "random", "", ""], [0.5, 0.25, np.nan, np.nan])
    with pytest.raises(
        InputError, match=r"the same inclusion_probability; got values from 0\.25 to 0\.5"
    ):
        grow_random_sample(
            np.linspace(0.1, 0.4, 4), selection, np.zeros(4, bool), n_more=0, max_new=1
        )
