import numpy as np
from scipy.stats import binomtest

from surelabel.metrics import Reliability, reliability
from surelabel.report.drawing import ORANGE, PAPER
from surelabel.report.reliability import band, conventions, diagram, pooled_plot, reliability_of


def test_the_band_holds_what_an_exact_test_would_not_doubt():
    found = Reliability(np.array([40.0, 0.0, 7.0]), np.array([0.3, np.nan, 0.02]), np.zeros(3))
    low, high = band(found)
    for count, claimed, lowest, highest in ((40, 0.3, low[0], high[0]), (7, 0.02, low[2], high[2])):
        for edge, side, step in ((lowest, "less", -1), (highest, "greater", 1)):
            at = round(edge * count)
            assert binomtest(at, count, claimed, side).pvalue > 0.025
            if 0 <= at + step <= count:
                assert binomtest(at + step, count, claimed, side).pvalue <= 0.025
    assert np.isnan([low[1], high[1]]).all()


def test_an_honest_recognizer_lies_inside_its_band_as_often_as_the_band_promises(judged):
    inside = []
    for seed in range(20):
        found = reliability_of(judged(count=200, seed=seed))
        low, high = band(found)
        inside += list((low <= found.accuracy) & (found.accuracy <= high))
    assert np.mean(inside) > 0.93


def test_the_words_hold_every_point_with_its_count(judged):
    found = judged()
    bins, alt = reliability_of(found), pooled_plot(found, "reliability", "x").alt
    for claimed, true, count in zip(bins.confidence, bins.accuracy, bins.counts, strict=True):
        if count:
            told = f"{100 * claimed:.0f} % claimed, {100 * true:.0f} % true in {count:,.0f} decis"
            assert told in alt


def test_bins_and_conventions_are_said(judged):
    text = conventions(judged(unknown=0.3, labels=5))
    known = int(judged(unknown=0.3, labels=5).known.sum())
    assert "15 equal-width bins" in text
    assert f"pooled over {known} known decisions of 60 pictures x 5 labels" in text
    assert "probability that the label is present" in text


def test_a_single_decision_has_a_diagram(share_of):
    found = reliability(np.array([[1.0]]), np.array([[1.0]]), bins=15)
    assert share_of(PAPER, diagram([("one", found)], "")) > 0.5


def test_the_same_numbers_give_the_same_bytes():
    found = reliability(np.linspace(0, 1, 50)[:, None], np.ones((50, 1)), bins=15)
    assert diagram([("x", found)], "note") == diagram([("x", found)], "note")


def test_a_second_curve_is_drawn_in_a_second_colour(share_of):
    found = reliability(np.linspace(0, 1, 50)[:, None], np.ones((50, 1)), bins=15)
    assert share_of(ORANGE, diagram([("x", found)], "")) == 0
    assert share_of(ORANGE, diagram([("x", found), ("y", found)], "")) > 0.001
