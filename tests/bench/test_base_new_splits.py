import numpy as np
import pytest

from surelabel.bench.base_new_splits import (
    base_new_vocabulary,
    few_shot_images,
    few_shot_texts,
)
from surelabel.data import VOCABULARIES, collection
from surelabel.records import Captions


@pytest.fixture(scope="module")
def train():
    return collection("scenes-80", split="train").take(range(200))


def test_halves_are_the_first_and_the_second_half_of_the_labels(train):
    vocabulary = base_new_vocabulary(train.names, "halves")
    assert list(vocabulary.names) == list(train.names)
    assert (len(vocabulary.seen), len(vocabulary.unseen)) == (40, 40)
    odd = base_new_vocabulary(["a", "b", "c"], "halves")
    assert (odd.seen, odd.unseen) == (("a", "b"), ("c",))


def test_the_other_split_is_that_of_the_open_vocabulary_comparison(train):
    assert base_new_vocabulary(train.names, "48/17") is VOCABULARIES["scenes-48-17"]


def test_a_sample_has_the_columns_of_the_labels_in_their_order(train):
    labels = [train.names[5], train.names[2]]
    sample = few_shot_images(train, labels, 3, seed=0)
    assert list(sample.names) == labels
    row_of = {path: row for row, path in enumerate(train.paths)}
    rows = [row_of[path] for path in sample.paths]
    np.testing.assert_array_equal(sample.targets, train.targets[rows][:, [5, 2]])
    available = train.targets[:, [5, 2]].sum(axis=0)
    assert (sample.targets.sum(axis=0) >= np.minimum(available, 3)).all()


def test_seeds_sample_other_images(train):
    labels = train.names[:10]
    first, again, other = (few_shot_images(train, labels, 2, seed).paths for seed in (0, 0, 1))
    assert first == again != other


def test_texts_are_sampled_captions():
    captions = Captions([f"{count} dogs" for count in range(9)] + ["a cat", "the sky"])
    sample = few_shot_texts(captions, ["dog", "cat"], 4, seed=0)
    assert sample.targets.sum(axis=0).tolist() == [4, 1]
    assert "a cat" in sample.texts
    assert "the sky" not in sample.texts
