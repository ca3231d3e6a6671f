import numpy as np
import pytest

from surelabel.evaluation import evaluate_pair_scores
from surelabel.records.pairs import Pairs
from surelabel.records.relevance import Relevance
from surelabel.report.caption_retrieval_table import (
    caption_retrieval_error_rows,
    caption_retrieval_rows,
    describe_caption_retrieval,
)

PAIRS = Pairs(["a", "b", "c", "d"], ["1", "2", "3", "4"], [0, 1, 2, 2])
SCORES = np.array([[4, 3, 2, 1], [4, 1, 2, 3], [1, 2, 3, 4], [0, 0, 0, 0.0]])


@pytest.fixture(scope="module")
def evaluation():
    relevance = Relevance([0, 0, 1], [2, 3, 3], [1.0, 0.5, 1.0])
    return evaluate_pair_scores(SCORES, PAIRS, np.exp(SCORES), relevance)


def test_every_metric_has_a_row_with_both_directions(evaluation):
    rows = {row[0]: row[1:] for row in caption_retrieval_rows(evaluation)}
    assert rows["R@1"][0].startswith("66.7 % (")
    assert rows["R@1"][1].startswith("75.0 % (")
    assert rows["median rank"] == ["1", "1"]
    assert rows["R@1 of a random ranking"][0] == "33.3 %"
    assert rows["missed false negatives (rank > R)"] == ["50.0 % (1 of 2)", "0.0 % (0 of 2)"]
    assert "R@1, mean of 5 folds" not in rows


def test_folds_have_rows():
    found = evaluate_pair_scores(SCORES[:3], PAIRS.take([0, 1, 2]), images_per_fold=1)
    rows = {row[0]: row[1:] for row in caption_retrieval_rows(found)}
    assert rows["R@1, mean of 3 folds"] == ["100.0 %", "100.0 %"]
    assert "The mean RSUM of 3 folds is 600.0." in describe_caption_retrieval(found)


def test_each_quantity_has_a_row_for_each_direction(evaluation):
    rows = caption_retrieval_error_rows(evaluation)
    assert [row[1] for row in rows[:3]] == [
        "uncertainty of the pair",
        "null: minus score",
        "null: minus margin",
    ]
    assert [row[0] for row in rows] == ["image to caption"] * 3 + ["caption to image"] * 3
    assert rows[0][-1] == "–"  # fewer queries than bins


def test_the_sentences_state_what_was_left_out(evaluation):
    lines = describe_caption_retrieval(evaluation)
    assert lines[0].startswith("The evaluation contains 4 images and 4 captions. RSUM, the sum of ")
    assert "Images without a caption: 1. These images are ranked, but are not queries." in lines
    assert lines[-1].startswith("AUROC of false negatives against true negatives: score ")
