import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records.relevance import Relevance
from surelabel.retrieval.caption_retrieval.relevant_items import (
    relevant_captions_of_images,
    relevant_images_of_captions,
    relevant_items_of_lists,
)

IMAGE_ROWS = [2, 0, 2, 0]  # image 1 has no caption


def lists_of(relevant, values="items"):
    array = getattr(relevant, values)
    return [part.tolist() for part in np.split(array, relevant.offsets[1:-1])]


def test_the_captions_of_an_image_and_the_image_of_a_caption_are_its_own():
    captions = relevant_captions_of_images(IMAGE_ROWS, 3)
    images = relevant_images_of_captions(IMAGE_ROWS, 3)
    assert lists_of(captions) == [[1, 3], [], [0, 2]]
    assert lists_of(images) == [[2], [0], [2], [0]]
    assert captions.is_own.all()
    assert images.is_own.all()
    assert len(captions) == 3


def test_graded_pairs_are_added_and_an_own_pair_keeps_grade_1():
    relevance = Relevance([0, 1, 1], [1, 0, 3], [0.2, 0.5, 1.0])
    captions = relevant_captions_of_images(IMAGE_ROWS, 3, relevance)
    images = relevant_images_of_captions(IMAGE_ROWS, 3, relevance)
    assert lists_of(captions) == [[1, 3], [0, 3], [0, 2]]
    assert lists_of(captions, "grades") == [[1, 1], [0.5, 1], [1, 1]]
    assert lists_of(captions, "is_own") == [[True, True], [False, False], [True, True]]
    assert lists_of(images) == [[1, 2], [0], [2], [0, 1]]
    assert lists_of(images, "grades") == [[0.5, 1], [1], [1], [1, 1]]


def test_lists_may_be_empty_and_keep_their_columns():
    assert lists_of(relevant_items_of_lists([[], [4, 1], np.array([0])])) == [[], [4, 1], [0]]
    assert len(relevant_items_of_lists([])) == 0


@pytest.mark.parametrize("columns", [[1, 1], [-2]])
def test_repeated_columns_and_columns_that_cannot_be_are_refused(columns):
    with pytest.raises(InputError, match="distinct columns >= 0"):
        relevant_items_of_lists([[0], columns])


def test_rows_of_another_dataset_are_refused():
    with pytest.raises(InputError, match="image rows from 0 to 1; got rows from 0 to 2"):
        relevant_captions_of_images(IMAGE_ROWS, 2)
    with pytest.raises(InputError, match="caption rows from 0 to 3; got rows from 0 to 9"):
        relevant_images_of_captions(IMAGE_ROWS, 3, Relevance([0], [9], [1.0]))
