import numpy as np
from scipy.stats import binomtest

from surelabel.metrics import ReliabilityBins, reliability_bins
from surelabel.report.plot_style import ORANGE, PAPER
from surelabel.report.reliability_diagram import (
    describe_reliability_diagram_bins,
    draw_reliability_diagram,
    plot_pooled_reliability_diagram,
    reliability_diagram_consistency_band,
)


def pooled_bins(found):
    p = found.predictions.probabilities
    return reliability_bins(p, found.targets, found.known, bins=15)


def test_the_band_holds_what_an_exact_test_would_not_doubt():
    found = ReliabilityBins(np.array([40.0, 0.0, 7.0]), np.array([0.3, np.nan, 0.02]), np.zeros(3))
    low, high = reliability_diagram_consistency_band(found)
    for count, claimed, lowest, highest in ((40, 0.3, low[0], high[0]), (7, 0.02, low[2], high[2])):
        for edge, side, step in ((lowest, "less", -1), (highest, "greater", 1)):
            at = round(edge * count)
            assert binomtest(at, count, claimed, side).pvalue > 0.025
            if 0 <= at + step <= count:
                assert binomtest(at + step, count, claimed, side).pvalue <= 0.025
    assert np.isnan([low[1], high[1]]).all()


def test_the_band_contains_the_points_of_calibrated_probabilities(judged):
    inside = []
    for seed in range(20):
        found = pooled_bins(judged(count=200, seed=seed))
        low, high = reliability_diagram_consistency_band(found)
        inside += list((low <= found.accuracy) & (found.accuracy <= high))
    assert np.mean(inside) > 0.93


def test_the_words_hold_every_point_with_its_count(judged):
    found = judged()
    bins = pooled_bins(found)
    alt = plot_pooled_reliability_diagram(bins, "", title="x").alt
    for claimed, true, count in zip(bins.confidence, bins.accuracy, bins.counts, strict=True):
        if count:
            point = f"at a probability of {100 * claimed:.0f} %, {100 * true:.0f} % of"
            assert f"{point} {count:,.0f} decisions are positive" in alt


def test_the_note_describes_the_bins_and_the_decisions():
    text = describe_reliability_diagram_bins(60, 5, 210)
    assert "15 equal-width bins" in text
    assert "210 decisions with known targets (60 images x 5 labels)" in text
    assert text.startswith("The probabilities of ")


def test_a_single_decision_has_a_diagram(share_of):
    found = reliability_bins(np.array([[1.0]]), np.array([[1.0]]), bins=15)
    assert share_of(PAPER, draw_reliability_diagram([("one", found)], "")) > 0.5


def test_the_same_numbers_give_the_same_bytes():
    found = reliability_bins(np.linspace(0, 1, 50)[:, None], np.ones((50, 1)), bins=15)
    assert draw_reliability_diagram([("x", found)], "note") == draw_reliability_diagram(
        [("x", found)], "note"
    )


def test_a_second_curve_is_drawn_in_a_second_colour(share_of):
    found = reliability_bins(np.linspace(0, 1, 50)[:, None], np.ones((50, 1)), bins=15)
    assert share_of(ORANGE, draw_reliability_diagram([("x", found)], "")) == 0
    assert share_of(ORANGE, draw_reliability_diagram([("x", found), ("y", found)], "")) > 0.001
