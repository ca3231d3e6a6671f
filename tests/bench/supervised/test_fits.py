import numpy as np
import pytest

from surelabel.bench import ResultCache
from surelabel.bench.supervised.fits import (
    calibrate_label_free_scores,
    predict_supervised_test,
    score_without_labels,
)
from surelabel.config import Choice, Run
from surelabel.recognizer import Recognizer

ALL_ROWS, ROWS = np.arange(12), np.array([0, 3, 4, 7, 8, 11])
pytestmark = pytest.mark.filterwarnings("ignore:.* positive image")


def run_of(method, seed=0):
    return Run(encoder=Choice("tiny-rn"), method=Choice(method), seed=seed)


def test_predictions_are_those_of_a_recognizer_that_is_calibrated_by_folds(images, folder):
    cache, run = ResultCache(folder / "cache"), run_of("linear", seed=1)
    found = predict_supervised_test(cache, images, run, ROWS, folds=2)
    recognizer = Recognizer(run, images.test.names).fit(images.train.take(ROWS), folds=2)
    expected = recognizer.predict(images.test)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(found.logits, expected.logits, atol=1e-6)
    assert "2-fold" in recognizer.calibrated_on
    assert (found.passes, found.seconds > 0) == (1, True)


@pytest.mark.parametrize(("method", "passes"), [("zero_shot", 1), ("tiles", 14)])
def test_label_free_scores_are_calibrated_as_by_a_recognizer(images, folder, method, passes):
    cache = ResultCache(folder / "cache")
    scores = score_without_labels(cache, images, method, ALL_ROWS, unlabelled=3)
    found = calibrate_label_free_scores(cache, images, scores, ROWS)
    recognizer = Recognizer(run_of(method), images.test.names).calibrate(images.train.take(ROWS))
    expected = recognizer.predict(images.test)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5)
    assert found.passes == passes


def test_methods_that_learn_from_images_are_fitted_without_labels(images, folder):
    cache = ResultCache(folder / "cache")
    found = score_without_labels(cache, images, "standardized", ROWS, unlabelled=5)
    recognizer = Recognizer(run_of("standardized"), images.test.names)
    recognizer.fit(list(images.train.paths[:5]))
    for split, scores in ((images.train.take(ROWS), found.train), (images.test, found.test_scores)):
        np.testing.assert_allclose(scores, recognizer.predict(split).scores, atol=1e-6)
