import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation import evaluate_relevance_file
from surelabel.records import Pairs

PAIRS = Pairs(
    ["a.jpg", "b.jpg", "c.jpg"],
    ["a dog", "a cat", "a kitten", "a bus"],
    [0, 1, 1, 2],
    image_ids=[7, 8, 9],
    caption_ids=[70, 80, 81, 7],  # one caption has the id of an image
)
SCORES = np.array([[0.9, 0.8, 0.1, 0.2], [0.1, 0.6, 0.7, 0.3], [0.4, 0.3, 0.2, 0.1]], np.float32)


def test_relevant_captions_of_images_are_ranked_by_hand():
    found = evaluate_relevance_file("eccv.json", SCORES, PAIRS, {7: [70, 81], 9: [80, 7, 99]})
    assert (found.direction, found.n_queries, found.n_unmatched_queries) == (
        "image_to_caption",
        2,
        0,
    )
    # image 7: relevant at ranks 1 and 4; image 9: at ranks 2 and 4
    assert found.metrics["recall_at_1"] == 0.5
    assert found.metrics["recall_at_5"] == 1
    assert found.metrics["r_precision"] == pytest.approx((0.5 + 0.5) / 2)
    assert found.metrics["map_at_r"] == pytest.approx((1 / 2 + (1 / 2) / 2) / 2)
    assert found.as_dict()["name"] == "eccv.json"


def test_relevant_images_of_captions_are_recognized_by_most_ids():
    found = evaluate_relevance_file("eccv.json", SCORES, PAIRS, {80: [8], 81: [8, 9], 7: [9]})
    assert (found.direction, found.n_queries) == ("caption_to_image", 3)
    # caption 80 ranks image 8 second; caption 81: 8 first, 9 second; caption 7: 9 third
    assert found.metrics["recall_at_1"] == pytest.approx(1 / 3)
    assert found.metrics["map_at_r"] == pytest.approx((0 + 1 + 0) / 3)


def test_pairs_without_ids_and_other_datasets_are_refused():
    plain = Pairs(PAIRS.paths, PAIRS.captions, PAIRS.image_rows)
    with pytest.raises(InputError, match="requires the image ids and caption ids"):
        evaluate_relevance_file("eccv.json", SCORES, plain, {7: [70]})
    with pytest.raises(InputError, match="0 of 1 queries match"):
        evaluate_relevance_file("eccv.json", SCORES, PAIRS, {1000: [70]})


def test_ids_that_allow_both_directions_need_the_direction_in_the_name_of_the_file():
    ids = {"image_ids": [0, 1, 2], "caption_ids": [0, 1, 2, 3]}
    pairs = Pairs(PAIRS.paths, PAIRS.captions, PAIRS.image_rows, **ids)
    relevant = {0: [0, 1], 1: [2]}
    with pytest.raises(InputError, match=r"3 matching pairs in each direction\. Add image_to"):
        evaluate_relevance_file("relevant.json", SCORES, pairs, relevant)
    for direction in ("image_to_caption", "caption_to_image"):
        found = evaluate_relevance_file(f"x_{direction}.json", SCORES, pairs, relevant)
        assert found.direction == direction
