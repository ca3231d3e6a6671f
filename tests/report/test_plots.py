import numpy as np

from surelabel.report.plots import (
    PLOT_FILE_NAMES,
    calibration_section_plots,
    label_count_section_plots,
    per_label_section_plots,
)


def names(plots):
    return [plot.name for plot in plots]


def test_scores_have_no_plots_of_probabilities(judged):
    found = judged(calibrated=False)
    assert calibration_section_plots(found, judged()) == []
    assert names(per_label_section_plots(found)) == ["average_precision"]
    assert label_count_section_plots(found) == []


def test_reliability_before_is_shown_first(judged):
    shown = names(calibration_section_plots(judged(), judged(claimed=2.0)))
    assert shown == ["reliability_before", "reliability", "score_histograms", "risk_coverage"]


def test_scores_before_have_no_reliability_and_do_no_harm(judged):
    shown = calibration_section_plots(judged(), judged(calibrated=False))
    assert names(shown) == ["reliability", "score_histograms", "risk_coverage"]


def test_calibration_and_budget_are_shown_where_they_are_known(whole):
    found = whole()
    shown = names(calibration_section_plots(found, None))
    assert shown == [
        "reliability",
        "calibration_effect",
        "score_histograms",
        "risk_coverage",
        "calibration_budget",
    ]
    assert names(label_count_section_plots(found)) == ["labels_per_image", "cooccurrence"]
    others = [*label_count_section_plots(found), *per_label_section_plots(found)]
    assert {*shown, *names(others)} <= set(PLOT_FILE_NAMES)


def test_there_is_no_plot_of_labels_without_positives(judged):
    found = judged()
    found.targets[:] = 0
    found.per_class["average_precision"][:] = np.nan
    assert per_label_section_plots(found) == []
