from dataclasses import replace

import numpy as np
import pytest

from surelabel.report.claims import ALONE, NOW, claimed
from surelabel.report.drawing import BLUE, ORANGE, TEXT
from surelabel.report.per_picture import MOST, per_picture_plot


def test_the_words_say_how_many_pictures_have_how_many_labels(judged):
    found = judged(count=50)
    counts = found.targets.sum(axis=1)
    listed = per_picture_plot(found).alt.split("truth: ")[1]
    for k in range(int(counts.max()) + 1):
        assert f"{100 * np.mean(counts == k):.0f} % have {k}" in listed


def test_the_caption_says_what_each_expects_and_from_where_it_shows(whole):
    found = whole()
    caption = per_picture_plot(found).caption
    assert f"A picture has {found.targets.sum() / 120:.2f} labels on average" in caption
    for who in (ALONE, NOW):
        assert f"{claimed(found)[who].counts.means['expected']:.2f} by " in caption


def test_the_encoder_alone_is_orange_the_recognizer_blue_and_the_truth_dark(whole, share_of):
    found = whole()
    both, one = per_picture_plot(found).png, per_picture_plot(replace(found, alone=None)).png
    assert min(share_of(colour, both) for colour in (ORANGE, BLUE, TEXT)) > 0.005
    assert share_of(ORANGE, one) == 0


def test_pictures_with_very_many_labels_share_the_last_bar(judged):
    found = judged(labels=40)
    found.targets[:] = 1
    assert f"100 % have {MOST}" in per_picture_plot(found).alt


@pytest.mark.parametrize("targets", [0.0, 0.4])
def test_pictures_without_a_label_and_graded_truths_can_be_drawn(judged, targets):
    found = judged()
    found.targets[:] = targets
    assert per_picture_plot(found).png


def test_scores_have_no_plot(judged):
    assert per_picture_plot(judged(calibrated=False)) is None
