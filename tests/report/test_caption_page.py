import json

import numpy as np
import pytest

from surelabel.data import collection
from surelabel.errors import DataError
from surelabel.evaluation import evaluate_pair_scores
from surelabel.records import PairFeatures
from surelabel.report import report_captions


@pytest.fixture(scope="module")
def pairs():
    return collection("scenes-80", split="validation", captions=True).take(range(12))


@pytest.fixture(scope="module")
def evaluation(pairs):
    random = np.random.default_rng(0)
    scores = random.normal(size=(12, len(pairs))).astype(np.float32)
    return evaluate_pair_scores(scores, pairs, variances=np.exp(scores))


def test_the_page_shows_metrics_plots_and_doubtful_queries(evaluation, pairs, tmp_path):
    rows = [["eccv.json", "image to caption", "12", "50.0 %", "40.0 %", "30.0 %"]]
    page = report_captions(evaluation, pairs, tmp_path / "r", model="mine", relevance_rows=rows)
    text = page.read_text()
    for words in ("Retrieval report", "Recognizer: mine", "eccv.json", "Most uncertain captions"):
        assert words in text
    assert "Most uncertain images" in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    names = {file.name for file in (tmp_path / "r" / "plots").iterdir()}
    assert names == {"match_uncertainty.png", "match_risk_coverage.png"}
    stored = json.loads((tmp_path / "r" / "evaluation.json").read_text())
    assert stored["captions"]["rsum"] == pytest.approx(evaluation.rsum)


def test_a_report_is_replaced_and_other_files_are_kept(evaluation, pairs, tmp_path):
    report_captions(evaluation, pairs, tmp_path / "r")
    report_captions(evaluation, pairs, tmp_path / "r")
    (tmp_path / "r" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"other files, such as notes\.txt"):
        report_captions(evaluation, pairs, tmp_path / "r")


def test_vectors_have_no_doubtful_queries(tmp_path):
    vectors = PairFeatures(np.eye(12), np.eye(12), np.arange(12))
    evaluation = evaluate_pair_scores(np.eye(12), vectors)
    text = report_captions(evaluation, vectors, tmp_path / "r").read_text()
    assert "Most uncertain queries" not in text
    assert "Prediction of errors at rank 1" in text
