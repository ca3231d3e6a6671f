import json

import numpy as np

from surelabel.cli.caption_retrieval import caption_retrieval_as_json, caption_retrieval_as_text
from surelabel.cli.terminal_text import to_terminal_json_value
from surelabel.evaluation import evaluate_pair_scores
from surelabel.records.pairs import Pairs

PAIRS = Pairs([f"{i}.jpg" for i in range(12)], [f"text {i}" for i in range(12)], np.arange(12))
SCORES = np.eye(12) + np.random.default_rng(0).normal(size=(12, 12)) / 2


def test_the_text_has_both_tables():
    text = caption_retrieval_as_text(evaluate_pair_scores(SCORES, PAIRS, np.exp(-SCORES)))
    lines = text.splitlines()
    assert lines[0].startswith("The evaluation contains 12 images and 12 captions. RSUM, the ")
    assert any(line.split("  ")[0] == "R@10" for line in lines)
    assert sum("null: minus margin" in line for line in lines) == 2
    assert sum("uncertainty of the pair" in line for line in lines) == 2


def test_the_json_has_the_metrics_of_both_directions():
    evaluation = evaluate_pair_scores(SCORES, PAIRS)
    value = to_terminal_json_value(caption_retrieval_as_json(evaluation))
    value = json.loads(json.dumps(value, allow_nan=False))
    for direction in ("image_to_caption", "caption_to_image"):
        expected = evaluation.directions[direction].metrics["recall_at_1"]
        assert value[direction]["metrics"]["recall_at_1"] == expected
        assert value[direction]["error_predictions"].keys() == {"minus_score", "minus_margin"}
