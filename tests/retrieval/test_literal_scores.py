"""Images ready to be ranked, and the precision of one ranking."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from surelabel.errors import InputError
from surelabel.retrieval.literal_scores import (
    average_precision_of_literal_scores,
    compute_literal_scores,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "retrieval.json").read_text())
UNKNOWN = np.array([[1, 0], [np.nan, 0], [0, np.nan]])


@pytest.mark.parametrize("example", GOLDEN["examples"], ids=lambda e: f"{e['pos']}{e['neg']}")
def test_the_recorded_rankings_come_out(example):
    images = compute_literal_scores(GOLDEN["log_odds"], GOLDEN["targets"])
    query = tuple(sorted([(j, 1) for j in example["pos"]] + [(j, -1) for j in example["neg"]]))
    scores, relevant = images.query_scores(query), images.relevant_images(query)
    best = np.argsort(-scores)[:3]
    assert best.tolist() == example["top3"]
    np.testing.assert_allclose(scores[best], example["top3_log_score"], rtol=1e-6)
    assert relevant.sum() == example["relevant"]
    assert average_precision_of_literal_scores(scores, relevant) == pytest.approx(
        example["AP"], abs=1e-12
    )


@given(st.lists(st.tuples(st.sampled_from([-9.0, -1.5, 0.0, 2.0]), st.booleans()), min_size=1))
def test_the_precision_equals_scikit_learn_with_ties(pairs):
    scores, relevant = (np.array(side) for side in zip(*pairs, strict=True))
    if relevant.any():
        expected = average_precision_score(relevant, scores)
        assert average_precision_of_literal_scores(
            scores.astype(np.float32), relevant
        ) == pytest.approx(expected)


def test_a_image_with_an_unknown_label_comes_after_all_others_and_is_not_relevant():
    images = compute_literal_scores(np.full((3, 2), 5.0), UNKNOWN)
    assert images.relevant_images(((0, 1),)).tolist() == [True, False, False]
    assert images.relevant_images(((0, -1),)).tolist() == [False, False, True]
    assert np.isinf(images.query_scores(((0, -1),))).tolist() == [False, True, False]
    assert np.isinf(images.query_scores(((0, 1), (1, -1)))).tolist() == [False, True, True]


def test_extreme_log_odds_keep_their_order():
    z = np.array([[-40.0], [-39.0], [20.0], [39.0], [40.0]])
    images = compute_literal_scores(z, np.ones((5, 1)))
    assert (np.diff(images.query_scores(((0, 1),))) > 0).all()
    assert (np.diff(images.query_scores(((0, -1),))) < 0).all()


@pytest.mark.parametrize(
    ("logits", "targets", "match"),
    [
        ([[np.nan]], [[1]], "must be finite"),
        ([[1.0]], [[0.5]], r"must be 0 or 1; got 0\.5"),
        ([[1.0]], [[1, 0]], "must have axes"),
    ],
)
def test_invalid_input_is_refused(logits, targets, match):
    with pytest.raises(InputError, match=match):
        compute_literal_scores(logits, targets)
