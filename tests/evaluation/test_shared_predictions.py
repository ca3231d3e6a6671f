import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation.shared_predictions import select_shared_predictions
from surelabel.records import LabelledImages, Predictions


def predictions(paths, names, start=0):
    scores = start + np.arange(len(paths) * len(names), dtype=np.float32)
    return Predictions(paths, names, scores.reshape(len(paths), -1))


def test_only_common_images_and_labels_are_taken_each_with_its_scores_and_targets():
    first = predictions(["a", "b", "c"], ["dog", "cat", "fish"])
    second = predictions(["d", "c", "./b"], ["cat", "bird", "dog"], start=100)
    labelled = LabelledImages(
        ["c", "b", "a", "e"], ["cat", "dog"], [[1, 0], [0, np.nan], [1, 1], [0, 0]]
    )
    shared = select_shared_predictions(first, second, labelled)
    assert (shared.first.paths, shared.first.names) == (["c", "b"], ["dog", "cat"])
    assert shared.first.scores.tolist() == [[6, 7], [3, 4]]
    assert shared.second.scores.tolist() == [[105, 103], [108, 106]]
    assert shared.targets.tolist() == [[0, 1], [0, 0]]
    assert shared.known.tolist() == [[True, True], [False, True]]
    assert (shared.images_without_first, shared.images_without_second) == (1, 2)
    assert shared.unannotated_images == 1
    assert (shared.labels_of_first_only, shared.labels_of_second_only) == (["fish"], ["bird"])


def test_spellings_of_the_dataset_and_aliases_join_labels():
    first, second = predictions(["a"], ["Sofa"]), predictions(["a"], ["couch"])
    labelled = LabelledImages(["a"], ["sofa|couch"], [[1]])
    assert select_shared_predictions(first, second, labelled).first.names == ["Sofa"]
    plain = LabelledImages(["a"], ["couch"], [[1]])
    with pytest.raises(InputError, match=r"must share at least one label; got Sofa and couch"):
        select_shared_predictions(first, second, plain)
    names = ["Sofa|couch"]
    shared = select_shared_predictions(first, second, plain, first_names=names)
    assert shared.targets.tolist() == [[1]]


def test_a_label_that_matches_two_labels_is_left_out():
    first, second = predictions(["a"], ["dog", "sofa"]), predictions(["a"], ["dog", "sofa", "SOFA"])
    shared = select_shared_predictions(
        first, second, LabelledImages(["a"], ["dog", "sofa"], [[1, 1]])
    )
    assert shared.first.names == ["dog"]
    assert shared.labels_of_second_only == ["sofa", "SOFA"]


def test_labels_without_a_known_target_are_counted_and_left_out():
    both = predictions(["a", "b"], ["dog", "cat"])
    labelled = LabelledImages(["a", "b"], ["dog"], [[1], [0]])
    shared = select_shared_predictions(both, both, labelled)
    assert (shared.first.names, shared.unannotated_labels) == (["dog"], ["cat"])
    with pytest.raises(InputError, match=r"a known target; got no known target of dog, cat"):
        select_shared_predictions(both, both, LabelledImages(["a"], ["fox"], [[1]]))


def test_a_repeated_image_is_compared_as_often_as_all_have_it():
    twice, once = predictions(["a", "a"], ["dog"]), predictions(["a"], ["dog"])
    labelled = LabelledImages(["a", "a"], ["dog"], [[1], [0]])
    assert select_shared_predictions(twice, twice, labelled).targets.tolist() == [[1], [0]]
    shared = select_shared_predictions(twice, once, labelled)
    assert (len(shared.first), shared.images_without_second) == (1, 1)


def test_without_a_common_image_the_error_shows_one_of_each():
    first, second = predictions(["a.jpg"], ["dog"]), predictions(["b.jpg"], ["dog"])
    labelled = LabelledImages(["a.jpg"], ["dog"], [[1]])
    with pytest.raises(InputError, match=r"'a.jpg' … in A, 'b.jpg' … in B, 'a.jpg' … in the data"):
        select_shared_predictions(first, second, labelled)
