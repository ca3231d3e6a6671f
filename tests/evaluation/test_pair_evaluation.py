import json
import math

import numpy as np
import pytest

from surelabel.cli.terminal_text import to_terminal_json_value
from surelabel.errors import InputError
from surelabel.evaluation import evaluate_pair_scores
from surelabel.records.pairs import PairFeatures, Pairs
from surelabel.records.relevance import Relevance

N, PER_IMAGE = 30, 2
IMAGE_ROWS = np.repeat(np.arange(N), PER_IMAGE)


@pytest.fixture(scope="module")
def scored():
    """Return pairs with graded relevance, scores, and variances that are high for wrong matches."""
    random = np.random.default_rng(0)
    topics = random.integers(6, size=N)
    grades = np.where(topics[:, None] == topics[IMAGE_ROWS], 1.0, 0.0)
    grades[random.random(grades.shape) < 0.05] = 0.5
    grades[IMAGE_ROWS, np.arange(len(IMAGE_ROWS))] = 1
    relevance = Relevance(*np.nonzero(grades), grades[grades > 0])
    is_own = np.arange(N)[:, None] == IMAGE_ROWS
    scores = (random.normal(size=grades.shape) + grades + 1.5 * is_own).astype(np.float32)
    variances = np.exp(random.normal(size=grades.shape) / 4 - is_own).astype(np.float32)
    pairs = Pairs(
        [f"{i}.jpg" for i in range(N)],
        [f"caption {i}" for i in range(len(IMAGE_ROWS))],
        IMAGE_ROWS,
        relevance=relevance,
    )
    return pairs, scores, variances, grades, is_own


def test_recall_equals_sorting_in_both_directions(scored):
    pairs, scores, _, _, is_own = scored
    found = evaluate_pair_scores(scores, pairs)
    for name, matrix, own in (
        ("image_to_caption", scores, is_own),
        ("caption_to_image", scores.T, is_own.T),
    ):
        ranked = np.take_along_axis(own, np.argsort(-matrix, axis=1, kind="stable"), axis=1)
        metrics = found.directions[name].metrics
        for k in (1, 5, 10):
            assert metrics[f"recall_at_{k}"] == pytest.approx(ranked[:, :k].any(axis=1).mean())
        assert metrics["median_rank"] == np.median(ranked.argmax(axis=1) + 1)
    recalls = [d.recalls[k] for d in found.directions.values() for k in (1, 5, 10)]
    assert found.rsum == pytest.approx(100 * sum(recalls))


@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_relevant_pairs_and_false_negatives_are_counted_from_the_threshold_on(scored, threshold):
    pairs, scores, _, grades, is_own = scored
    found = evaluate_pair_scores(scores, pairs, threshold=threshold)
    direction = found.directions["image_to_caption"]
    order = np.argsort(-scores, axis=1, kind="stable")
    relevant = np.take_along_axis(grades >= threshold, order, axis=1)
    other = np.take_along_axis((grades >= threshold) & ~is_own, order, axis=1)
    n_relevant = relevant.sum(axis=1)
    is_top = np.arange(len(pairs)) < n_relevant[:, None]
    r_precision = (relevant & is_top).sum(axis=1) / n_relevant
    assert direction.metrics["relevant_r_precision"] == pytest.approx(r_precision.mean())
    assert direction.false_negatives.relevant_items == other.sum()
    assert direction.false_negatives.missed_items == (other & ~is_top).sum()
    np.testing.assert_array_equal(direction.is_top_item_relevant, relevant[:, :10])
    np.testing.assert_array_equal(direction.top_items, order[:, :10])


def test_without_relevance_only_own_captions_are_relevant(scored):
    pairs, scores, variances, _, _ = scored
    own_only = PairFeatures(np.zeros((N, 2)), np.zeros((len(pairs), 3)), IMAGE_ROWS)
    found = evaluate_pair_scores(scores, own_only, variances)
    direction = found.directions["image_to_caption"]
    assert (found.threshold, dict(found.false_negative_auroc)) == (None, {})
    assert direction.false_negatives is None
    assert not any(name.startswith("relevant_") for name in direction.metrics)
    with_relevance = evaluate_pair_scores(scores, own_only, variances, pairs.relevance)
    assert with_relevance.as_dict() == evaluate_pair_scores(scores, pairs, variances).as_dict()


def test_the_uncertainty_of_the_first_item_is_evaluated_beside_both_nulls(scored):
    pairs, scores, variances, _, is_own = scored
    direction = evaluate_pair_scores(scores, pairs, variances).directions["caption_to_image"]
    assert list(direction.error_predictions) == ["uncertainty", "minus_score", "minus_margin"]
    first, second = np.sort(scores, axis=0)[[-1, -2]].astype(float)
    rows = scores.argmax(axis=0)
    columns = np.arange(len(pairs))
    expected = {
        "uncertainty": variances[rows, columns],
        "minus_score": -first,
        "minus_margin": second - first,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(direction.error_predictions[name].uncertainty, values)
    wrong = ~is_own[rows, columns]
    pairs_of_errors = [(variances[rows, columns][w], wrong[w]) for w in range(len(wrong))]
    wins = [u > v for u, e in pairs_of_errors if e for v, f in pairs_of_errors if not f]
    assert direction.error_predictions["uncertainty"].auroc == pytest.approx(np.mean(wins))
    assert list(direction.ranking_uncertainty) == ["uncertainty", "minus_score"]
    assert [result.k for result in direction.ranking_uncertainty["uncertainty"]] == [*range(1, 11)]


def test_without_variances_the_nulls_remain(scored):
    pairs, scores, *_ = scored
    direction = evaluate_pair_scores(scores, pairs).directions["image_to_caption"]
    assert list(direction.error_predictions) == ["minus_score", "minus_margin"]


def test_folds_are_evaluated_if_the_images_fill_two(scored):
    pairs, scores, *_ = scored
    assert evaluate_pair_scores(scores, pairs).folds is None
    assert evaluate_pair_scores(scores, pairs, images_per_fold=30).folds is None
    found = evaluate_pair_scores(scores, pairs, images_per_fold=10)
    halves = [
        evaluate_pair_scores(
            scores[rows[0] : rows[-1] + 1, 2 * rows[0] : 2 * (rows[-1] + 1)], pairs.take(rows)
        )
        for rows in np.split(np.arange(N), 3)
    ]
    assert found.folds.n_folds == 3
    assert found.folds.rsum == pytest.approx(np.mean([half.rsum for half in halves]))


def test_an_image_without_a_caption_is_ranked_but_is_no_query(scored):
    pairs = Pairs(["a", "b", "c"], ["x", "y"], [0, 2])
    scores = np.array([[0.5, 0.1], [0.9, 0.2], [0.3, 0.8]])
    found = evaluate_pair_scores(scores, pairs)
    to_captions, to_images = found.directions.values()
    assert (to_captions.queries.tolist(), to_captions.n_left_out) == ([0, 2], 1)
    assert to_images.values["median_rank"].tolist() == [2, 1]
    assert to_images.image_of_query.tolist() == [0, 2]


def test_a_single_pair_has_no_margin():
    found = evaluate_pair_scores(np.array([[0.3]]), Pairs(["a"], ["x"], [0]))
    direction = found.directions["image_to_caption"]
    assert found.rsum == 600
    assert list(direction.error_predictions) == ["minus_score"]
    assert math.isnan(direction.error_predictions["minus_score"].auroc)
    assert direction.chance_recall == {f"recall_at_{k}": 1 for k in (1, 5, 10)}


def test_the_dictionary_is_json_and_the_summary_shows_both_directions(scored):
    pairs, scores, variances, *_ = scored
    found = evaluate_pair_scores(scores, pairs, variances, images_per_fold=10)
    summary = json.loads(json.dumps(to_terminal_json_value(found.as_dict()), allow_nan=False))
    assert summary["images"] == N
    assert summary["folds"]["caption_to_image"].keys() == {f"recall_at_{k}" for k in (1, 5, 10)}
    direction = summary["image_to_caption"]
    assert direction["false_negatives"]["relevant_items"] > 0
    assert len(direction["error_predictions"]["uncertainty"]["bins"]["accuracy"]) == 10
    assert summary["false_negative_auroc"].keys() == {"score", "margin", "uncertainty"}
    text = repr(found)
    assert text.startswith("PairEvaluation(images=30, captions=60, rsum=")
    assert "metric" in text
    assert "auroc of uncertainty" in text
    assert "<table>" in found._repr_html_()


def test_scores_of_other_pairs_are_refused(scored):
    pairs, scores, variances, *_ = scored
    with pytest.raises(InputError, match=r"\(30, 60\); got shape \(60, 30\)\. Transpose"):
        evaluate_pair_scores(scores.T, pairs)
    with pytest.raises(InputError, match="variances must have axes"):
        evaluate_pair_scores(scores, pairs, variances[:5])
    with pytest.raises(InputError, match="image must have a caption; got no such"):
        evaluate_pair_scores(np.zeros((1, 0)), Pairs(["a"], [], []))


def test_folds_without_images_are_refused(scored):
    pairs, scores, *_ = scored
    with pytest.raises(InputError, match="images_per_fold must be 1 or more; got 0"):
        evaluate_pair_scores(scores, pairs, images_per_fold=0)


def test_values_that_are_not_finite_are_refused(scored):
    pairs, scores, variances, *_ = scored
    with pytest.raises(InputError, match="scores must be finite"):
        evaluate_pair_scores(np.where(scores == scores.max(), np.nan, scores), pairs)
    with pytest.raises(InputError, match="finite"):
        evaluate_pair_scores(scores, pairs, np.full_like(variances, np.nan))
