import numpy as np
import pytest

from surelabel.data.few_shot_sampling import describe_shots, sample_shots
from surelabel.errors import ConfigError, InputError


@pytest.fixture
def dataset():
    """Targets of labels with very different frequencies, some of them unknown."""
    random = np.random.default_rng(0)
    targets = (random.random((400, 6)) < [0.5, 0.2, 0.1, 0.05, 0.01, 0.0]).astype(float)
    return targets, random.random((400, 6)) < 0.8


@pytest.mark.parametrize("shots", [1, 4, 16, 500])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_label_has_the_shots_or_all_its_images(dataset, shots, seed):
    targets, known = dataset
    rows = sample_shots(targets, known, shots, np.random.default_rng(seed))
    assert rows.tolist() == sorted(set(rows.tolist()))
    for column in range(6):
        available = sum(targets[i, column] == 1 and known[i, column] for i in range(400))
        sampled = sum(targets[i, column] == 1 and known[i, column] for i in rows)
        assert min(shots, available) <= sampled <= available


def test_every_sampled_image_has_a_known_positive(dataset):
    targets, known = dataset
    rows = sample_shots(targets, known, 4, np.random.default_rng(0))
    assert (targets[rows] * known[rows]).any(axis=1).all()


def test_rare_labels_come_first_so_that_their_images_count_for_frequent_labels():
    targets = np.zeros((50, 2))
    targets[:, 0] = 1
    targets[[7, 31], 1] = 1
    for seed in range(5):
        rows = sample_shots(targets, None, 2, np.random.default_rng(seed))
        assert rows.tolist() == [7, 31]


def test_a_label_with_enough_images_in_the_sample_adds_none():
    targets = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0]])
    for seed in range(5):
        assert sample_shots(targets, None, 1, np.random.default_rng(seed)).tolist() == [0, 1]


def test_other_seeds_sample_other_images_and_equal_seeds_equal_ones(dataset):
    first, again, other = (
        sample_shots(*dataset, 4, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1)
    )
    assert first == again != other


def test_unknown_targets_are_no_shots():
    targets = np.array([[np.nan, 1.0], [1.0, np.nan], [0.5, 0.4], [0.4, 0.4]])
    assert sample_shots(targets, None, 9, np.random.default_rng(0)).tolist() == [0, 1, 2]
    known = np.array([[False, False], [True, False], [False, True], [True, True]])
    assert sample_shots(targets, known, 9, np.random.default_rng(0)).tolist() == [1]


def test_the_description_counts_by_label_and_names_labels_with_too_few_images():
    targets = np.zeros((30, 12))
    targets[:20, 0] = 1
    targets[:3, 1:10] = 1
    sample, counts, few, without = describe_shots(
        list("abcdefghijkl"), targets, None, np.arange(5), 5
    )
    assert sample == (
        "Sampled 5 of 30 images; each label has 0 to 5 positive images (requested: 5)."
    )
    assert counts.startswith("Positive images per label: a 5, b 3, c 3")
    assert few.startswith("Labels with fewer than 5 positive images, all of which are used: b 3")
    assert few.endswith("i 3 and 1 more.")
    assert without == "Labels without a positive image: k, l."


def test_enough_images_of_all_labels_need_no_further_sentence():
    assert len(describe_shots(["a", "b"], np.ones((4, 2)), None, np.array([0, 2]), 2)) == 2


def test_invalid_arguments_are_refused(dataset):
    with pytest.raises(ConfigError, match=r"shots must be 1 or more; got 0"):
        sample_shots(*dataset, 0, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"\(400, 6\)"):
        sample_shots(dataset[0], dataset[1][:, :3], 1, np.random.default_rng(0))
