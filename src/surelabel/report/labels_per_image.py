"""Plot the number of predicted and positive labels per image."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import PercentFormatter

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.report.baseline_comparison import (
    BASELINE,
    GROUND_TRUTH,
    RECOGNIZER,
    WITH_ARTICLE,
    ThresholdedLabels,
)
from surelabel.report.metric_descriptions import format_described_probability
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
)

MAX_COUNT = 12  # larger numbers of labels share the last bar
COLOURS = {BASELINE: ORANGE, RECOGNIZER: BLUE, GROUND_TRUTH: TEXT}


def plot_labels_per_image(labels_by_source: Mapping[str, ThresholdedLabels]) -> Plot | None:
    """Plot histograms of the number of predicted and of positive labels per image.

    Args:
        labels_by_source: Mapping from source (recognizer or baseline) to predicted labels.

    Returns:
        Plot of labels per image, or None if the recognizer is not calibrated.
    """
    if not labels_by_source:
        return None
    counts = {
        source: _round_labels_per_image_for_plot(labels.counts.predicted)
        for source, labels in labels_by_source.items()
    }
    annotated = labels_by_source[RECOGNIZER].counts
    counts[GROUND_TRUTH] = _round_labels_per_image_for_plot(annotated.positive)
    n_images = len(annotated.predicted)
    shares = {
        source: histogram / n_images
        for source, histogram in _labels_per_image_plot_histograms(counts).items()
    }
    return Plot(
        "labels_per_image",
        "Labels per image",
        f"Fraction of images by number of labels. {_describe_labels_per_image_plot(shares)}",
        _labels_per_image_plot_caption(labels_by_source, annotated.means["positive"]),
        _draw_labels_per_image_bars(
            shares, {source: float(np.mean(of)) for source, of in counts.items()}
        ),
    )


def _round_labels_per_image_for_plot(counts: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    """Round the number of labels per image, which is not an integer if targets are fractions."""
    assert counts is not None  # an evaluation has targets
    return np.rint(counts).astype(np.int64)


def _labels_per_image_plot_histograms(
    counts: Mapping[str, npt.NDArray[np.int64]],
) -> dict[str, Array]:
    """Return the number of images with 0, 1, 2 … labels, for each source.

    The count for ``MAX_COUNT`` labels includes images with more labels.
    """
    greatest = min(MAX_COUNT, max(int(of.max()) for of in counts.values()))
    return {
        source: np.bincount(np.minimum(of, greatest), minlength=greatest + 1).astype(np.float64)
        for source, of in counts.items()
    }


def _labels_per_image_plot_caption(
    labels_by_source: Mapping[str, ThresholdedLabels], mean_positives: float
) -> str:
    expected = [
        f"For {WITH_ARTICLE[source]}, the expected number of labels is "
        f"{labels.counts.means['expected']:.2f}; about this number is predicted at a threshold of "
        f"{format_described_probability(labels.threshold)}."
        for source, labels in labels_by_source.items()
    ]
    return (
        f"On average, an image has {mean_positives:.2f} positive labels. {' '.join(expected)} Each "
        "bar shows the fraction of images with this number of predicted or positive labels."
    )


def _describe_labels_per_image_plot(shares: Mapping[str, Array]) -> str:
    lines = [
        f"{source}: "
        + ", ".join(
            f"{format_count(k, 'label')} in {100 * share:.0f} %" for k, share in enumerate(of)
        )
        for source, of in shares.items()
    ]
    return f"{'; '.join(lines)}."


def _draw_labels_per_image_bars(shares: Mapping[str, Array], means: Mapping[str, float]) -> bytes:
    figure = new_figure_in_plot_style(3.9)
    axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    numbers = np.arange(len(next(iter(shares.values()))))
    width = 0.84 / len(shares)
    for i, (source, share) in enumerate(shares.items()):
        x = numbers + (i - (len(shares) - 1) / 2) * width
        label = f"{source}: {means[source]:.2f} on average"
        axes.bar(x, share, 0.92 * width, color=COLOURS[source], label=label)
    last_tick = f"{MAX_COUNT}+" if numbers[-1] == MAX_COUNT else f"{numbers[-1]}"
    axes.set_xticks(numbers, [*map(str, numbers[:-1]), last_tick])
    axes.grid(False, axis="x")
    greatest = max(float(share.max()) for share in shares.values())
    axes.set(xlabel="labels per image", ylabel="fraction of images")
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
    axes.set_ylim(0, min(1.35 * greatest, 1.3))
    axes.legend(loc="upper right", frameon=False, labelcolor=TEXT, fontsize=9)
    return plot_style_figure_to_png(figure, left=0.14, bottom=0.14, top=0.97)
