from dataclasses import replace

import numpy as np

from surelabel.report.decision_section import decision_section_plots
from surelabel.report.precision_recall_plots import PRECISION_RECALL_PLOT_NAMES


def test_the_words_of_the_plot_have_the_points_at_the_marked_thresholds(judged):
    found = judged(count=200)
    pooled, per_label = decision_section_plots(found)
    p = found.predictions.probabilities
    precision = found.targets[p >= 0.5].mean()
    recall = found.targets[p >= 0.5].sum() / found.targets.sum()
    text = f"At a threshold of 50 %, the precision is {100 * precision:.0f} % and the recall is "
    assert f"{text}{100 * recall:.0f} %" in pooled.alt
    assert f"{100 * found.summary['average_precision']:.1f} %" in pooled.alt
    assert (pooled.name, per_label.name) == PRECISION_RECALL_PLOT_NAMES


def test_each_label_has_its_colour(judged, share_of):
    png = decision_section_plots(judged(count=200))[1].png
    assert min(share_of(colour, png) for colour in ("#0072b2", "#cc79a7")) > 1e-3


def test_scores_have_curves_without_thresholds(judged):
    pooled, _ = decision_section_plots(judged(calibrated=False))
    assert "threshold of" not in pooled.alt


def test_there_is_no_curve_without_positives(judged):
    found = judged()
    undefined = {"average_precision": np.full(8, np.nan)}
    found = replace(found, targets=np.zeros_like(found.targets), per_class=undefined)
    assert decision_section_plots(found) == []
