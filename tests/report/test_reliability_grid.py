import numpy as np

from surelabel.metrics import reliability
from surelabel.report.drawing import BAND
from surelabel.report.reliability_grid import SHOWN, grid_plot, per_label


def test_the_labels_with_the_most_positives_are_shown_and_the_others_counted(judged):
    found = judged(labels=23)
    found.targets[:] = 0
    found.targets[:, 22] = 1
    found.targets[:30, :21] = 1
    plot = grid_plot(found)
    assert plot.title.endswith(f"The {SHOWN} with the most positives")
    assert plot.alt.startswith(f"{SHOWN} small reliability diagrams. label 22, 60 positives, ECE")
    assert "label 21," not in plot.alt
    assert "3 labels with fewer positives are left out" in plot.caption
    assert len(plot.png) < 300_000


def test_labels_without_positives_take_no_room(judged, pixels):
    found = judged(labels=7)
    found.targets[:, 3:] = 0
    found.targets[0, :3] = 1
    three = pixels(grid_plot(found).png)
    found.targets[0] = 1
    assert len(pixels(grid_plot(found).png)) > 2 * len(three)


def test_nothing_is_drawn_where_nothing_is_there(judged):
    found = judged()
    found.targets[:] = 0
    assert grid_plot(found) is None


def test_each_label_has_the_bins_it_would_have_alone(judged):
    found = judged(labels=3, unknown=0.3)
    p, whole = found.predictions.probabilities, per_label(found)
    for c in range(3):
        alone = reliability(p[:, [c]], found.targets[:, [c]], found.known[:, [c]], bins=15)
        assert np.array_equal(whole.counts[c], alone.counts)
        assert np.allclose(whole.accuracy[c], alone.accuracy, equal_nan=True)


def test_a_band_is_drawn_and_strange_names_do_no_harm(judged, share_of):
    found = judged(labels=3, names=["$x^2", "line\nbreak", "犬" * 40])
    assert share_of(BAND, grid_plot(found).png) > 0.005
