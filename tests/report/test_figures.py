import numpy as np

from surelabel.report.figures import NAMES, counting_plots, honesty_plots, label_plots


def names(plots):
    return [plot.name for plot in plots]


def test_scores_have_no_plots_of_probabilities(judged):
    found = judged(calibrated=False)
    assert honesty_plots(found, judged()) == []
    assert names(label_plots(found)) == ["per_class"]
    assert counting_plots(found) == []


def test_reliability_before_is_shown_first(judged):
    shown = names(honesty_plots(judged(), judged(claimed=2.0)))
    assert shown == ["reliability_before", "reliability", "confidence", "risk_coverage"]


def test_scores_before_have_no_reliability_and_do_no_harm(judged):
    shown = honesty_plots(judged(), judged(calibrated=False))
    assert names(shown) == ["reliability", "confidence", "risk_coverage"]


def test_calibration_and_budget_are_shown_where_they_are_known(whole):
    found = whole()
    shown = names(honesty_plots(found, None))
    assert shown == ["reliability", "calibration", "confidence", "risk_coverage", "budget"]
    assert names(counting_plots(found)) == ["labels_per_picture", "labels_together"]
    others = [*counting_plots(found), *label_plots(found)]
    assert {*shown, *names(others)} <= set(NAMES)


def test_there_is_no_plot_of_labels_when_nothing_is_there(judged):
    found = judged()
    found.targets[:] = 0
    found.per_class["average_precision"][:] = np.nan
    assert label_plots(found) == []
