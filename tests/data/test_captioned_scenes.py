import numpy as np
import pytest

from surelabel.data import collection, read_pairs, read_scenes, scene_pairs
from surelabel.data.bundled_collections import bundled_collection_folder


@pytest.fixture(scope="module")
def folder():
    return bundled_collection_folder("scenes-80", split="validation")


@pytest.fixture(scope="module")
def scenes(folder):
    return read_scenes(folder)


@pytest.fixture(scope="module")
def pairs(scenes):
    return scene_pairs(scenes)


def test_each_image_has_its_distinct_captions_in_their_order(scenes, pairs):
    expected = [list(dict.fromkeys(c.text for c in captions)) for captions in scenes.captions]
    assert list(pairs.paths) == list(scenes.images.paths)
    assert pairs.captions == [text for texts in expected for text in texts]
    assert np.bincount(pairs.image_rows).tolist() == [len(texts) for texts in expected]
    assert len(pairs) < 5 * len(scenes)  # some texts come twice


def test_the_relevance_equals_that_of_the_dense_matrix(scenes, pairs):
    mentions = {
        (row, caption.text): caption
        for row, captions in enumerate(scenes.captions)
        for caption in reversed(captions)
    }
    keys = zip(pairs.image_rows.tolist(), pairs.captions, strict=True)
    expected = scenes.caption_relevance([mentions[key] for key in keys])
    grades = np.zeros_like(expected)
    grades[pairs.relevance.image_rows, pairs.relevance.caption_rows] = pairs.relevance.grades
    np.testing.assert_array_equal(grades, expected)
    assert len(pairs.relevance) == (expected > 0).sum()
    assert (grades[pairs.image_rows, np.arange(len(pairs))] == 1).all()


def test_the_collection_gives_these_pairs(pairs):
    of_collection = collection("scenes-80", split="validation", captions=True)
    assert of_collection.captions == pairs.captions
    assert list(of_collection.paths) == list(pairs.paths)
    np.testing.assert_array_equal(of_collection.relevance.grades, pairs.relevance.grades)


def test_the_file_of_the_scenes_gives_the_same_pairs(folder, pairs):
    with pytest.warns(
        UserWarning, match=r"Repeated captions .* of 2500 captions in .*scenes\.jsonl"
    ):
        of_file = read_pairs(folder / "scenes.jsonl")
    assert of_file.captions == pairs.captions
    assert of_file.paths == list(pairs.paths)
    for name in ("image_rows", "caption_rows", "grades"):
        expected = getattr(pairs.relevance, name)
        np.testing.assert_array_equal(getattr(of_file.relevance, name), expected)
