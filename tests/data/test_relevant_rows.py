import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.data import read_relevance, relevant_captions, relevant_images
from surelabel.errors import InputError
from surelabel.records import Pairs

PUBLISHED = Path(__file__).parents[3] / "shared/data/captions_labels"
PAIRS = Pairs(
    ["a.jpg", "b.jpg", "c.jpg"],
    ["a dog", "a cat", "a pet", "a bus"],
    [0, 1, 1, 2],
    [7, 3, 5],
    [30, 31, 32, 33],
)


def as_dict(relevant):
    rows = zip(relevant.query_rows.tolist(), relevant.relevant_rows, strict=True)
    return {query: items.tolist() for query, items in rows}


def test_queries_and_items_get_their_rows_and_the_others_are_counted():
    relevant = relevant_captions(PAIRS, {5: [33, 90], 7: [32, 30], 8: [30], 3: [91]})
    assert as_dict(relevant) == {0: [2, 0], 2: [3]}
    assert len(relevant) == 2
    assert (relevant.n_unmatched_queries, relevant.n_unmatched_items) == (2, 1)


def test_images_of_captions_use_the_ids_of_captions_as_queries():
    relevant = relevant_images(PAIRS, {33: [5, 3], 30: [7]})
    assert as_dict(relevant) == {0: [0], 3: [2, 1]}
    assert (relevant.n_unmatched_queries, relevant.n_unmatched_items) == (0, 0)


def test_a_part_of_the_pairs_matches_fewer_queries():
    relevant = relevant_captions(PAIRS.take([1]), {3: [31, 33], 7: [31]})
    assert as_dict(relevant) == {0: [0]}
    assert (relevant.n_unmatched_queries, relevant.n_unmatched_items) == (1, 1)


@pytest.mark.parametrize("relevance", [{1: [30]}, {7: [1]}, {}])
def test_relevance_of_other_ids_is_refused(relevance):
    expected = f"must map image ids to caption ids; 0 of {len(relevance)} queries match"
    with pytest.raises(InputError, match=expected):
        relevant_captions(PAIRS, relevance)


def test_the_other_direction_is_named_in_the_error():
    with pytest.raises(InputError, match="must map caption ids to image ids; 0 of 1 queries match"):
        relevant_images(PAIRS, {7: [30]})


def test_the_direction_is_found_although_images_and_captions_have_equal_ids():
    rows = np.arange(20) // 5
    pairs = Pairs(
        [f"{i}.jpg" for i in range(4)], list("abcdefghijklmnopqrst"), rows, range(4), range(20)
    )
    captions = {i: list(range(5 * i, 5 * i + 5)) for i in range(4)}
    images = {c: [c // 5] for c in range(20)}
    assert as_dict(relevant_captions(pairs, captions)) == captions
    assert as_dict(relevant_images(pairs, images)) == images
    assert as_dict(relevant_captions(pairs.take([0]), captions)) == {0: captions[0]}
    with pytest.raises(InputError, match="must map image ids to caption ids; 1 of 20 queries"):
        relevant_captions(pairs.take([0]), images | {0: [0, 1]})
    with pytest.raises(InputError, match="must map caption ids to image ids"):
        relevant_images(pairs, captions)


@pytest.mark.parametrize("function", [relevant_captions, relevant_images])
def test_pairs_need_ids(function):
    with pytest.raises(InputError, match="requires the image ids and caption ids of the pairs"):
        function(Pairs(["a.jpg"], ["a dog"], [0], [7]), {7: [30]})


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the annotations of ECCV Caption")
def test_the_published_files_have_the_queries_and_pairs_that_are_known():
    own = json.loads((PUBLISHED / "eccv_caption_original_image_to_caption.json").read_text())
    image_ids, captions = list(map(int, own)), [c for ids in own.values() for c in ids]
    rows = np.repeat(np.arange(len(own)), [len(ids) for ids in own.values()])
    texts = [f"caption {c}" for c in captions]
    pairs = Pairs([f"{i}.jpg" for i in image_ids], texts, rows, image_ids, captions)
    sizes = {}
    for name in ("original", "cxc", "eccv"):
        for direction, function in (
            ("image_to_caption", relevant_captions),
            ("caption_to_image", relevant_images),
        ):
            path = PUBLISHED / f"eccv_caption_{name}_{direction}.json"
            relevant = function(pairs, read_relevance(path))
            assert relevant.n_unmatched_queries == 0
            n_listed = sum(map(len, relevant.relevant_rows)) + relevant.n_unmatched_items
            sizes[name, direction] = (len(relevant), n_listed, relevant.n_unmatched_items)
    assert sizes == {
        ("original", "image_to_caption"): (5000, 25000, 0),
        ("original", "caption_to_image"): (25000, 25000, 0),
        ("cxc", "image_to_caption"): (5000, 35585, 0),
        ("cxc", "caption_to_image"): (24972, 35585, 0),
        ("eccv", "image_to_caption"): (1261, 22550, 2),  # 2 captions are not in the test images
        ("eccv", "caption_to_image"): (1332, 11279, 0),
    }
    original = relevant_captions(
        pairs, read_relevance(PUBLISHED / "eccv_caption_original_image_to_caption.json")
    )
    for query, items in as_dict(original).items():
        assert (pairs.image_rows[items] == query).all()
