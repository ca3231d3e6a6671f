from surelabel.metrics import reliability_bins_per_class
from surelabel.report.label_table import compute_label_table_statistics
from surelabel.report.plot_style import BAND
from surelabel.report.reliability_per_label import MAX_LABELS, plot_reliability_per_label


def plot(found):
    p, names = found.predictions.probabilities, found.predictions.names
    decisions = p, found.targets, found.known
    labels = compute_label_table_statistics(names, *decisions[1:], p, found.per_class)
    return plot_reliability_per_label(labels, reliability_bins_per_class(*decisions, bins=15))


def test_the_labels_with_the_most_positives_are_shown_and_the_others_counted(judged):
    found = judged(labels=23)
    found.targets[:] = 0
    found.targets[:, 22] = 1
    found.targets[:30, :21] = 1
    grid = plot(found)
    assert grid.title.endswith(f"the {MAX_LABELS} labels with the most positives")
    assert grid.alt.startswith(
        f"{MAX_LABELS} small reliability diagrams. label 22, 60 positives, ECE"
    )
    assert "label 21," not in grid.alt
    assert "Labels with fewer positives are omitted (3)." in grid.caption
    assert len(grid.png) < 300_000


def test_labels_without_positives_take_no_space(judged, pixels):
    found = judged(labels=7)
    found.targets[:, 3:] = 0
    found.targets[0, :3] = 1
    three = pixels(plot(found).png)
    found.targets[0] = 1
    assert len(pixels(plot(found).png)) > 2 * len(three)


def test_nothing_is_drawn_where_nothing_is_there(judged):
    found = judged()
    found.targets[:] = 0
    assert plot(found) is None


def test_a_band_is_drawn_and_strange_names_do_no_harm(judged, share_of):
    found = judged(labels=3, names=["$x^2", "line\nbreak", "犬" * 40])
    assert share_of(BAND, plot(found).png) > 0.005
