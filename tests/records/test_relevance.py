import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import Relevance


def matrix(relevance, n_images, n_captions):
    grades = np.zeros((n_images, n_captions))
    grades[relevance.image_rows, relevance.caption_rows] = relevance.grades
    return grades


def test_pairs_are_sorted_by_image_and_caption():
    relevance = Relevance([1, 0, 1, 0], [0, 3, 2, 1], [0.1, 0.2, 0.3, 0.4])
    assert relevance.image_rows.tolist() == [0, 0, 1, 1]
    assert relevance.caption_rows.tolist() == [1, 3, 0, 2]
    assert relevance.grades.tolist() == [0.4, 0.2, 0.1, 0.3]
    assert len(relevance) == 4


def test_taken_rows_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    grades = rng.random((6, 9)) * (rng.random((6, 9)) < 0.5)
    rows, columns = grades.nonzero()
    relevance = Relevance(rows, columns, grades[rows, columns])
    images, captions = [4, 0, 5], [8, 2, 3, 0]
    part = relevance.take(images, captions)
    np.testing.assert_array_equal(matrix(part, 3, 4), grades[np.ix_(images, captions)])
    assert len(relevance.take([], [])) == 0


def test_rows_that_no_pair_has_can_be_taken():
    part = Relevance([0], [0], [1.0]).take([7, 0], [0, 9])
    assert (part.image_rows.tolist(), part.caption_rows.tolist()) == ([1], [0])


def test_no_pair_is_a_relevance_too():
    assert len(Relevance([], [], [])) == 0


@pytest.mark.parametrize("grade", [0.0, -0.5, 1.5, np.nan, np.inf])
def test_a_grade_is_above_zero_and_at_most_one(grade):
    with pytest.raises(InputError, match=r"Grades must be in \(0, 1\]; got"):
        Relevance([0], [0], [grade])


@pytest.mark.parametrize(
    ("images", "captions", "grades", "message"),
    [
        ([0, 1], [0], [1.0], r"one entry per pair; got shapes \(2,\), \(1,\) and \(1,\)"),
        (
            [0.0],
            [0],
            [1.0],
            "image_rows must be a one-dimensional list of integers; got .* float64",
        ),
        (
            [0],
            [[0]],
            [1.0],
            r"caption_rows must be a one-dimensional list of integers; got shape \(1, 1\)",
        ),
        (
            [0],
            [True],
            [1.0],
            "caption_rows must be a one-dimensional list of integers; got .* bool",
        ),
        ([-1], [0], [1.0], "image_rows must be at least 0 .*; got -1. .* range: 1 of 1"),
        ([0], [2**31], [1.0], "caption_rows must be at least 0 and below 2147483648"),
        ([0], [2**63], [1.0], "caption_rows must be at least 0 and below 2147483648"),
        (
            [0],
            [2**70],
            [1.0],
            "caption_rows must be a one-dimensional list of integers; got .* object",
        ),
        ([1, 0, 1], [2, 2, 2], [1, 1, 0.5], "image row 1 with caption row 2 more"),
    ],
)
def test_invalid_pairs_are_refused(images, captions, grades, message):
    with pytest.raises(InputError, match=message):
        Relevance(images, captions, grades)


@pytest.mark.parametrize(("images", "captions"), [([0, 0], [0]), ([0], [1, 1])])
def test_a_row_is_taken_once(images, captions):
    with pytest.raises(InputError, match="must be distinct; got a repeated row"):
        Relevance([0], [1], [1.0]).take(images, captions)
