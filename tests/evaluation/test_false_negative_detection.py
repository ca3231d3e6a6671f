import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from surelabel.evaluation import false_negative_detection
from surelabel.evaluation.false_negative_detection import false_negative_auroc
from surelabel.records.relevance import Relevance
from surelabel.retrieval.caption_retrieval.relevant_items import relevant_captions_of_images


@pytest.fixture
def collection():
    random = np.random.default_rng(0)
    image_rows = np.repeat(np.arange(20), 3)
    grades = random.choice([0, 0.5, 1], p=[0.8, 0.1, 0.1], size=(20, 60))
    scores = random.normal(size=grades.shape) + grades
    return image_rows, grades, scores, np.exp(random.normal(size=grades.shape) - grades)


def test_equals_the_auroc_over_all_pairs_of_different_images(collection):
    image_rows, grades, scores, variances = collection
    relevance = Relevance(*np.nonzero(grades), grades[grades > 0])
    found = false_negative_auroc(
        scores, relevant_captions_of_images(image_rows, 20, relevance), variances=variances
    )
    is_other = np.arange(20)[:, None] != image_rows
    compared = is_other & (grades != 0.5)
    for name, values in {
        "score": scores,
        "margin": scores - scores.max(axis=1, keepdims=True),
        "uncertainty": variances,
    }.items():
        expected = roc_auc_score(grades[compared] == 1, values[compared])
        assert found[name] == pytest.approx(expected)
    assert found["score"] > 0.6 > 0.4 > found["uncertainty"]


def test_a_sample_of_true_negatives_gives_nearly_the_same_value(collection, monkeypatch):
    image_rows, grades, scores, _ = collection
    relevance = Relevance(*np.nonzero(grades), grades[grades > 0])
    captions = relevant_captions_of_images(image_rows, 20, relevance)
    exact = false_negative_auroc(scores, captions)
    monkeypatch.setattr(false_negative_detection, "MAX_TRUE_NEGATIVES", 600)
    sampled = false_negative_auroc(scores, captions, seed=1)
    assert sampled["score"] == pytest.approx(exact["score"], abs=0.04)
    assert sampled != exact


def test_without_a_false_negative_the_value_is_undefined(collection):
    image_rows, _, scores, _ = collection
    found = false_negative_auroc(scores, relevant_captions_of_images(image_rows, 20))
    assert math.isnan(found["score"])
