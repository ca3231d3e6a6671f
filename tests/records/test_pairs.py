import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import PairFeatures, Pairs, Relevance, noisy_caption_rows

GRADES = np.array([[1, 0.5, 0, 0, 1], [0, 1, 0.5, 0, 0], [0.2, 0, 1, 1, 0]])
CAPTIONS = ["a dog", "a cat", "a bus", "a red bus", "a puppy"]
ROWS = [0, 1, 2, 2, 0]


def relevance():
    rows, columns = GRADES.nonzero()
    return Relevance(rows, columns, GRADES[rows, columns])


def pairs(**changes):
    values = {
        "paths": ["a.jpg", "b.jpg", "c.jpg"],
        "captions": CAPTIONS,
        "image_rows": ROWS,
        "image_ids": [7, 3, 5],
        "caption_ids": [30, 31, 32, 33, "e"],
        "relevance": relevance(),
    }
    return Pairs(**(values | changes))


def features(**changes):
    values = {
        "image_vectors": np.arange(6).reshape(3, 2),
        "text_vectors": np.arange(20).reshape(5, 4),
        "image_rows": ROWS,
        "relevance": relevance(),
    }
    return PairFeatures(**(values | changes))


def matrix(relevance, shape):
    grades = np.zeros(shape)
    grades[relevance.image_rows, relevance.caption_rows] = relevance.grades
    return grades


def test_the_length_is_the_number_of_captions():
    assert len(pairs()) == len(features()) == 5
    assert pairs().image_rows.dtype == np.int64


def test_a_single_pair_and_an_image_without_caption_are_allowed():
    assert len(Pairs(["a.jpg"], ["a dog"], [0])) == 1
    assert len(Pairs(["a.jpg", "b.jpg"], ["a dog"], [1])) == 1


def test_taken_images_keep_their_captions_ids_and_relevance():
    part = pairs().take([2, 0])
    assert part.paths == ["c.jpg", "a.jpg"]
    assert part.captions == ["a dog", "a bus", "a red bus", "a puppy"]
    assert part.image_rows.tolist() == [1, 0, 0, 1]
    assert part.image_ids == [5, 7]
    assert part.caption_ids == [30, 32, 33, "e"]
    np.testing.assert_array_equal(
        matrix(part.relevance, (2, 4)), GRADES[np.ix_([2, 0], [0, 2, 3, 4])]
    )


def test_pairs_without_ids_and_relevance_can_be_taken():
    part = pairs(image_ids=None, caption_ids=None, relevance=None).take(np.array([1]))
    assert (part.image_ids, part.caption_ids, part.relevance) == (None, None, None)
    assert part.captions == ["a cat"]


def test_taken_vectors_keep_their_captions_and_relevance():
    part = features().take([2, 0])
    assert part.image_vectors.tolist() == [[4, 5], [0, 1]]
    assert part.text_vectors[:, 0].tolist() == [0, 8, 12, 16]
    assert part.image_rows.tolist() == [1, 0, 0, 1]
    np.testing.assert_array_equal(
        matrix(part.relevance, (2, 4)), GRADES[np.ix_([2, 0], [0, 2, 3, 4])]
    )


@pytest.mark.parametrize("data", [pairs(), features()], ids=["pairs", "features"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([3], "image_rows must be at least 0 and below 3; got 3. .* out of range: 1 of 1"),
        ([-1], "image_rows must be at least 0 and below 3"),
        ([1, 1], "image_rows must be distinct"),
        ([0.5], "image_rows must be a one-dimensional list of integers"),
    ],
)
def test_rows_that_do_not_exist_or_repeat_cannot_be_taken(data, rows, message):
    with pytest.raises(InputError, match=message):
        data.take(rows)


def test_noise_moves_texts_ids_and_relevance_together_and_no_image():
    clean, noisy = pairs(), pairs().with_noise(0.8, seed=2)
    rows = noisy_caption_rows(5, 0.8, seed=2)
    assert (rows != np.arange(5)).sum() >= 2
    assert noisy.captions == [CAPTIONS[row] for row in rows]
    assert noisy.caption_ids == [clean.caption_ids[row] for row in rows]
    assert noisy.image_rows.tolist() == ROWS
    assert (noisy.paths, noisy.image_ids) == (clean.paths, clean.image_ids)
    np.testing.assert_array_equal(matrix(noisy.relevance, (3, 5)), GRADES[:, rows])


def test_noise_of_vectors_is_that_of_texts():
    noisy = features().with_noise(0.8, seed=2)
    rows = noisy_caption_rows(5, 0.8, seed=2)
    np.testing.assert_array_equal(noisy.text_vectors, features().text_vectors[rows])
    np.testing.assert_array_equal(noisy.image_vectors, features().image_vectors)
    assert noisy.image_rows.tolist() == ROWS
    np.testing.assert_array_equal(matrix(noisy.relevance, (3, 5)), GRADES[:, rows])


def test_a_text_that_an_image_has_twice_is_kept_once_and_in_other_images():
    texts = ["a dog", "a dog", "a bus", "a bus", "a dog"]
    distinct = pairs(captions=texts).without_repeated_captions()
    assert distinct.captions == ["a dog", "a dog", "a bus"]
    assert distinct.image_rows.tolist() == [0, 1, 2]
    assert distinct.caption_ids == [30, 31, 32]
    np.testing.assert_array_equal(matrix(distinct.relevance, (3, 3)), GRADES[:, :3])
    assert len(pairs().without_repeated_captions()) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_rows": [0, 1, 2, 2, 3]}, "image_rows must be at least 0 and below 3; got 3"),
        ({"image_rows": [0, 1, 2, 2, -1]}, "got -1. .* out of range: 1 of 5"),
        ({"image_rows": [0, 1]}, "image_rows must have one entry per caption, 5; got 2"),
        (
            {"image_rows": [0, 1, 2, 2, np.nan]},
            "image_rows must be a one-dimensional list of integers",
        ),
        ({"captions": [*CAPTIONS[:4], " "]}, "captions must be non-empty .*; got ' ' in row 4"),
        ({"captions": [*CAPTIONS[:4], ""]}, "captions must be non-empty .*; got '' in row 4"),
        ({"captions": [*CAPTIONS[:4], np.nan]}, "captions must be non-empty .*; got nan in row 4"),
        ({"paths": ["a.jpg", "b.jpg", "a.jpg"]}, "paths must be distinct; got 'a.jpg' more"),
        ({"image_ids": [1, 2]}, "image_ids must have 3 entries; got 2"),
        ({"image_ids": [1, 2, 1]}, "image_ids must be distinct; got 1 more than once"),
        ({"caption_ids": [1, 2, 3, 4]}, "caption_ids must have 5 entries; got 4"),
        ({"caption_ids": [1, 2, 3, 4, 4]}, "caption_ids must be distinct; got 4 more"),
        ({"relevance": Relevance([3], [0], [1])}, "image_rows of the relevance must be .*below 3"),
        ({"relevance": Relevance([0], [5], [1])}, "caption_rows of the relevance .*below 5"),
    ],
)
def test_pairs_that_do_not_match_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        pairs(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"image_vectors": [[1, np.nan], [0, 1], [np.inf, 0]]},
            "image_vectors must be finite; got 2 rows with NaN or infinity, such as row 0",
        ),
        ({"text_vectors": np.full((5, 4), 1e60)}, "text_vectors must be finite; got 5 rows"),
        ({"image_vectors": [1.0, 2.0, 3.0]}, r"image_vectors must have axes \(n, d\)"),
        ({"text_vectors": np.ones((4, 4))}, "image_rows must have one entry per caption, 4; got 5"),
        ({"image_rows": [0, 1, 2, 2, 3]}, "image_rows must be at least 0 and below 3"),
        ({"relevance": Relevance([3], [0], [1])}, "image_rows of the relevance"),
    ],
)
def test_vectors_that_do_not_match_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        features(**changes)
