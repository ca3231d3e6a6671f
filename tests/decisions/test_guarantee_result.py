import numpy as np
import pytest

from surelabel.decisions import (
    Guarantee,
    at_most_missed_on_average,
    at_most_wrong,
    record_validation,
)


@pytest.mark.parametrize(
    ("threshold", "shown"),
    [(0.0, [True, True, True]), (0.5, [False, True, True]), (1.0, [0, 0, 0])],
)
def test_shows_from_the_threshold_on_and_nothing_at_one(threshold, shown):
    found = Guarantee(threshold, 0.0, 0.1, 0.9, 10, True, None, "")
    assert found.predict([0.1, 0.5, 1.0]).tolist() == shown


def test_the_sentence_says_what_is_promised():
    found = at_most_wrong(record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30))
    assert found.sentence == (
        "Predict labels with probability >= 0.0522. With 90 % confidence, at most 10 % of the "
        "labels predicted for an image are wrong, averaged over images with a predicted label. "
        "The observed average on 30 such labelled images is 0 %."
    )


def test_the_sentence_says_how_many_images_are_missing():
    found = at_most_wrong(record_validation([[3.0, -3.0]] * 10, [[1, 0]] * 10))
    assert not found.is_reached
    assert found.threshold == 1
    assert np.isnan(found.risk)
    assert found.images_needed == 70
    assert (
        "10 labelled images with a predicted label are not sufficient; about 70 labelled images in "
        "total are needed." in found.sentence
    )


def test_the_sentence_says_when_more_images_would_not_help():
    found = at_most_wrong(record_validation([[3.0, -3.0]] * 30, [[0, 0]] * 30))
    assert found.images_needed is None
    assert found.sentence.endswith(
        "100 % of the labels with probability >= 0.953 were wrong. Calibrate again or increase "
        "the level."
    )


def test_without_a_confidence_none_is_claimed():
    found = at_most_missed_on_average(record_validation([[3.0, -3.0]] * 30, [[1, 0]] * 30))
    assert "confidence" not in found.sentence
    assert found.confidence is None


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "95 %"), (0.999, "99.9 %"), (0.9996, "99.96 %"), (0.999999, "99.9999 %")],
)
def test_a_confidence_below_one_is_not_called_100_percent(confidence, text):
    record = record_validation([[3.0]] * 500, [[1]] * 500)
    found = at_most_wrong(record, confidence=confidence)
    assert found.is_reached
    assert f"With {text} confidence, at most 10 % of" in found.sentence
    refused = at_most_wrong(record, level=0.9996, confidence=confidence)
    assert f"{text} confidence, at most 99.96 % of" in refused.sentence


def test_showing_everything_is_called_that():
    found = at_most_missed_on_average(record_validation([[-20.0]] * 30, [[1]] * 30))
    assert found.sentence.startswith("Predict every label. In expectation, at most 20 %")


def test_a_threshold_just_below_one_is_not_called_one():
    found = at_most_missed_on_average(record_validation([[20.0]] * 30, [[1]] * 30))
    assert found.threshold == pytest.approx(0.99966, abs=1e-5)
    assert found.sentence.startswith("Predict labels with probability >= 0.99966.")
