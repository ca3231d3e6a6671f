import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.retrieval.caption_retrieval.query_metrics import (
    chance_recall_at_k,
    first_relevant_rank,
    query_average_precision_at_r,
    query_ndcg,
    query_r_precision,
    query_recall_at_k,
)
from surelabel.retrieval.caption_retrieval.relevant_items import (
    relevant_captions_of_images,
    relevant_images_of_captions,
    relevant_items_of_lists,
)
from surelabel.retrieval.caption_retrieval.relevant_ranks import (
    RelevantRanks,
    compute_relevant_ranks,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)


def ranks_of_lists(*lists, grades=None):
    """Return the record of queries whose relevant items have the given ranks."""
    offsets = np.cumsum([0, *map(len, lists)])
    ranks = np.concatenate(lists).astype(np.int64)
    grades = np.ones(len(ranks)) if grades is None else np.concatenate(grades)
    return RelevantRanks(
        np.arange(len(lists)), offsets, ranks, grades, np.ones(len(ranks), bool), 0
    )


def test_equals_the_eccv_caption_package():
    golden = GOLDEN["retrieval"]
    ids = sorted({c for ranked in golden["retrieved"].values() for c in ranked})
    scores = np.array([[-ranked.index(c) for c in ids] for ranked in golden["retrieved"].values()])
    lists = [[ids.index(c) for c in items] for items in golden["gt"].values()]
    ranks = compute_relevant_ranks(scores.astype(float), relevant_items_of_lists(lists))
    for k in (1, 2, 5):
        assert query_recall_at_k(ranks, k=k).mean() == golden[f"r_at_{k}"]
    for name, metric in (
        ("eccv_map_at_r", query_average_precision_at_r),
        ("eccv_rprecision", query_r_precision),
    ):
        values = metric(ranks)
        expected = [query[name] for query in golden["per_query"].values()]
        np.testing.assert_allclose(values, expected, atol=1e-12)
        assert values.mean() == pytest.approx(golden["eccv"][name], abs=1e-12)


def test_a_ranked_list_is_restricted_to_the_items_of_a_fold():
    golden = GOLDEN["retrieval"]
    fold = golden["coco1k_style"]["fold_items"]
    scores = np.array([[-ranked.index(c) for c in fold] for ranked in golden["retrieved"].values()])
    lists = [[fold.index(c) for c in items if c in fold] for items in golden["gt"].values()]
    ranks = compute_relevant_ranks(scores.astype(float), relevant_items_of_lists(lists))
    for k in (1, 2):
        assert query_recall_at_k(ranks, k=k).mean() == golden["coco1k_style"][f"r_at_{k}"]


def test_equals_the_eccv_caption_package_in_both_directions():
    golden = GOLDEN["small_collection"]
    scores = np.array(golden["scores"], dtype=np.float32)
    for column, (matrix, lists) in enumerate(
        [(scores, golden["relevant_captions"]), (scores.T, golden["relevant_images"])]
    ):
        ranks = compute_relevant_ranks(matrix, relevant_items_of_lists(lists))
        found = {f"r{k}": query_recall_at_k(ranks, k=k).mean() for k in (1, 5, 10)}
        found["eccv_map_at_r"] = query_average_precision_at_r(ranks).mean()
        found["eccv_rprecision"] = query_r_precision(ranks).mean()
        for name, value in found.items():
            assert value == pytest.approx(golden["expected"][name][column], abs=1e-12)


def test_ranks_recall_and_rsum_of_two_captions_for_each_image():
    """The evaluation of COCO in the code of PCME++, written out by hand for three images."""
    scores = np.array(
        [
            [0.9, 0.2, 0.8, 0.1, 0.3, 0.0],  # captions 0 and 1: ranks 1 and 4
            [0.7, 0.6, 0.5, 0.4, 0.9, 0.8],  # captions 2 and 3: ranks 5 and 6
            [0.1, 0.5, 0.2, 0.3, 0.4, 0.0],  # captions 4 and 5: ranks 2 and 6
        ]
    )
    image_rows = [0, 0, 1, 1, 2, 2]
    to_captions = compute_relevant_ranks(scores, relevant_captions_of_images(image_rows, 3))
    to_images = compute_relevant_ranks(scores.T, relevant_images_of_captions(image_rows, 3))
    assert to_captions.ranks.tolist() == [1, 4, 5, 6, 2, 6]
    assert first_relevant_rank(to_captions).tolist() == [1, 5, 2]
    assert first_relevant_rank(to_images).tolist() == [1, 3, 2, 1, 2, 3]  # a tie, by index
    assert np.median(first_relevant_rank(to_captions)) == 2
    recalls = {
        (direction, k): query_recall_at_k(ranks, k=k).mean()
        for direction, ranks in (("captions", to_captions), ("images", to_images))
        for k in (1, 2, 5)
    }
    assert recalls["captions", 1] == pytest.approx(1 / 3)
    assert recalls["captions", 2] == pytest.approx(2 / 3)
    assert recalls["captions", 5] == 1
    assert recalls["images", 1] == pytest.approx(2 / 6)
    assert recalls["images", 2] == pytest.approx(4 / 6)
    assert recalls["images", 5] == 1
    assert 100 * sum(recalls.values()) == pytest.approx(400)


def test_a_perfect_ranking_has_the_value_1():
    perfect = ranks_of_lists([2, 1, 3], [1], grades=[[0.5, 1, 0.2], [0.3]])
    for metric in (query_r_precision, query_average_precision_at_r, query_ndcg):
        np.testing.assert_allclose(metric(perfect), 1)


def test_average_precision_at_r_ignores_hits_below_rank_r():
    np.testing.assert_allclose(
        query_average_precision_at_r(ranks_of_lists([4, 1, 3], [2, 5])),
        [(1 / 1 + 2 / 3) / 3, (1 / 2) / 2],
    )
    np.testing.assert_allclose(query_r_precision(ranks_of_lists([4, 1, 3], [2, 5])), [2 / 3, 1 / 2])


def test_ndcg_weights_items_by_grade_and_rank():
    found = query_ndcg(ranks_of_lists([1, 3], grades=[[0.5, 1.0]]))
    gain, best = 0.5 / 1 + 1 / 2, 1 / 1 + 0.5 / np.log2(3)
    np.testing.assert_allclose(found, gain / best)


def test_recall_of_a_random_ranking_is_the_mean_over_many_random_rankings():
    random = np.random.default_rng(0)
    ranks = np.sort(random.permuted(np.tile(np.arange(1, 13), (4000, 1)), axis=1)[:, :3])
    for k in (1, 5, 10, 12):
        expected = (ranks[:, 0] <= k).mean()
        chance = chance_recall_at_k(ranks_of_lists([1, 2, 3]), 12, k=k)
        assert chance[0] == pytest.approx(expected, abs=0.02)
    assert chance_recall_at_k(ranks_of_lists([1]), 4, k=10)[0] == 1


def test_no_query_gives_no_value():
    empty = ranks_of_lists([])
    empty = empty.of_queries(np.zeros(0, int))
    assert query_recall_at_k(empty, k=1).shape == (0,)
    assert query_average_precision_at_r(empty).shape == (0,)


def test_k_below_1_is_refused():
    with pytest.raises(InputError, match="at least 1; got 0"):
        query_recall_at_k(ranks_of_lists([1]), k=0)
