import numpy as np
import pytest

from surelabel.report.figures import honesty_plots, label_plots, reliability_of


def names(plots):
    return [plot.name for plot in plots]


def test_scores_have_no_reliability(judged):
    assert honesty_plots(judged(calibrated=False), judged()) == []


def test_reliability_before_is_shown_first(judged):
    shown = names(honesty_plots(judged(), judged(claimed=2.0)))
    assert shown == ["reliability_before", "reliability", "confidence"]


def test_scores_before_have_no_reliability_and_do_no_harm(judged):
    shown = honesty_plots(judged(), judged(calibrated=False))
    assert names(shown) == ["reliability", "confidence"]


def test_the_words_for_a_diagram_hold_its_points(judged):
    found = judged()
    bins = reliability_of(found)
    first = f"{100 * bins.confidence[0]:.0f} % claimed, {100 * bins.accuracy[0]:.0f} % true"
    assert first in honesty_plots(found, None)[0].alt


def test_the_best_and_the_worst_label_are_named(judged):
    found = judged(names=["lion", "bear", "fox"])
    found.per_class["average_precision"][:] = [0.25, 0.75, np.nan]
    (plot,) = label_plots(found)
    assert "bear with 75 %, the last is lion with 25 %" in plot.alt


@pytest.mark.filterwarnings("error")
def test_there_is_no_plot_of_labels_when_all_are_undefined(judged):
    found = judged()
    found.per_class["average_precision"][:] = np.nan
    assert label_plots(found) == []
