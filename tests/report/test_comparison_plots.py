from dataclasses import replace

import numpy as np

from surelabel.report.comparison_plots import COMPARISON_PLOT_NAMES, comparison_plots
from surelabel.report.plot_style import BLUE, ORANGE


def test_there_is_a_plot_for_each_metric_with_the_extremes_in_its_text(compared):
    found = compared()
    plots = comparison_plots(found)
    assert tuple(plot.name for plot in plots) == COMPARISON_PLOT_NAMES
    differences = found.labels["average_precision"].difference
    highest, lowest = (found.names[f(differences)] for f in (np.nanargmax, np.nanargmin))
    assert f"is highest for {highest} and lowest for {lowest}." in plots[0].alt


def test_labels_where_b_is_better_are_blue_and_where_a_is_better_orange(compared, share_of):
    for better, worse, swapped in ((BLUE, ORANGE, False), (ORANGE, BLUE, True)):
        for plot in comparison_plots(compared(swapped=swapped)):
            assert share_of(better, plot.png) > 0
            assert share_of(worse, plot.png) == 0


def test_of_many_labels_only_both_ends_are_drawn(compared, pixels):
    few, many = comparison_plots(compared(n_labels=30)), comparison_plots(compared(n_labels=60))
    assert "20 highest and the 20 lowest of 60 differences" in many[0].caption
    assert "20 highest" not in few[0].caption
    assert pixels(many[0].png).shape[0] < 2 * pixels(few[0].png).shape[0]


def test_a_metric_without_any_defined_difference_has_no_plot(compared):
    found = compared()
    labels = found.labels["average_precision"]
    undefined = replace(labels, difference=np.full(6, np.nan))
    plots = comparison_plots(replace(found, labels={"average_precision": undefined}))
    assert plots == []
