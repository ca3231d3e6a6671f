from dataclasses import replace

import numpy as np
import pytest

from surelabel.counts import format_count
from surelabel.report.baseline_comparison import (
    BASELINE,
    RECOGNIZER,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.labels_per_image import MAX_COUNT, plot_labels_per_image
from surelabel.report.plot_style import BLUE, ORANGE, TEXT


def labels_by_source(found):
    sources = predictions_for_baseline_comparison(found.predictions, found.zero_shot_baseline)
    return threshold_labels_for_baseline_comparison(sources, found.targets, found.known)


def plot(found):
    return plot_labels_per_image(labels_by_source(found))


def test_the_words_say_how_many_images_have_how_many_labels(judged):
    found = judged(count=50)
    counts = found.targets.sum(axis=1)
    listed = plot(found).alt.split("ground truth: ")[1]
    for k in range(int(counts.max()) + 1):
        assert f"{format_count(k, 'label')} in {100 * np.mean(counts == k):.0f} %" in listed


def test_the_caption_says_what_each_expects_and_from_where_it_shows(whole):
    found = whole()
    caption = plot(found).caption
    assert f"an image has {found.targets.sum() / 120:.2f} positive labels" in caption
    for who in (BASELINE, RECOGNIZER):
        expected = labels_by_source(found)[who].counts.means["expected"]
        assert f"the expected number of labels is {expected:.2f}; " in caption


def test_the_encoder_alone_is_orange_the_recognizer_blue_and_the_truth_dark(whole, share_of):
    found = whole()
    both, one = (
        plot(found).png,
        plot(replace(found, zero_shot_baseline=None)).png,
    )
    assert min(share_of(colour, both) for colour in (ORANGE, BLUE, TEXT)) > 0.005
    assert share_of(ORANGE, one) == 0


def test_images_with_very_many_labels_share_the_last_bar(judged):
    found = judged(labels=40)
    found.targets[:] = 1
    assert f"{MAX_COUNT} labels in 100 %" in plot(found).alt


@pytest.mark.parametrize("targets", [0.0, 0.4])
def test_images_without_a_label_and_graded_truths_can_be_drawn(judged, targets):
    found = judged()
    found.targets[:] = targets
    assert plot(found).png


def test_scores_have_no_plot(judged):
    assert plot(judged(calibrated=False)) is None
