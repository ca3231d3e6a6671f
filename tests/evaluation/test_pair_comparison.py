from dataclasses import replace

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation import compare_pair_evaluations, evaluate_pair_scores
from surelabel.records.pairs import Pairs

N = 60
PAIRS = Pairs([f"{i}" for i in range(N)], [f"text {i}" for i in range(N)], np.arange(N))
NOISE = np.random.default_rng(0).normal(size=(N, N))


@pytest.fixture(scope="module")
def models():
    """Return evaluations of a better and of a worse model with correlated errors."""
    worse = np.eye(N) + 0.5 * NOISE
    better = np.eye(N) * 1.4 + 0.5 * NOISE
    return [evaluate_pair_scores(scores, PAIRS, np.exp(-scores)) for scores in (better, worse)]


def test_a_model_does_not_differ_from_itself(models):
    differences = compare_pair_evaluations(models[0], models[0])
    for intervals in differences.values():
        for interval in intervals.values():
            assert (interval.value, interval.low, interval.high) == (0, 0, 0)


def test_a_better_model_is_significantly_better(models):
    better, worse = models
    found = compare_pair_evaluations(better, worse)["image_to_caption"]
    recall = found["recall_at_1"]
    expected = [m.directions["image_to_caption"].metrics["recall_at_1"] for m in models]
    assert recall.value == pytest.approx(expected[0] - expected[1])
    assert 0 < recall.low < recall.high
    assert "median_rank" not in found
    assert "auroc_of_uncertainty" in found


def test_the_paired_interval_is_narrower_than_the_separate_intervals(models):
    paired = compare_pair_evaluations(*models)["caption_to_image"]["map_at_r"]
    separate = [m.directions["caption_to_image"].intervals["map_at_r"] for m in models]
    width = sum((interval.high - interval.low) ** 2 for interval in separate) ** 0.5
    assert paired.high - paired.low < width


def test_evaluations_of_other_pairs_are_refused(models):
    other = evaluate_pair_scores(np.eye(3), PAIRS.take([0, 1, 2]))
    with pytest.raises(InputError, match=r"same images, captions and metrics; got 60 queries"):
        compare_pair_evaluations(models[0], other)
    directions = dict(models[0].directions)
    moved = directions["caption_to_image"]
    directions["caption_to_image"] = replace(moved, image_of_query=moved.image_of_query[::-1])
    with pytest.raises(InputError, match="same pairs with the same relevance"):
        compare_pair_evaluations(models[0], replace(models[0], directions=directions))
