"""Plot and summarize the calibration error by the number of annotated images."""

import numpy as np

from surelabel.evaluation import CalibrationBudget
from surelabel.report.metric_descriptions import (
    format_described_metric_value,
    format_described_metric_with_unit,
)
from surelabel.report.plot_style import (
    BAND,
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
)

NOISE_FACTOR = 2  # multiple of the noise floor above which an error is more than noise


def describe_calibration_budget_in_report(budget: CalibrationBudget) -> str:
    """Summarize in one to three sentences how many annotated images calibration needs.

    Example:
        >>> ece, loss = np.array([[0.05], [0.021], [0.02]]), np.array([[0.3], [0.2], [0.2]])
        >>> budget = CalibrationBudget((25, 50, 100), ece, loss, 0.01, 200)
        >>> describe_calibration_budget_in_report(budget).partition(": ")[2]
        'the ECE is 2.10 points with 50 images and 2.00 points with 100 images.'
    """
    errors = budget.mean_ece
    largest = budget.sizes[-1]
    largest_error = format_described_metric_value(errors[-1], "points")
    if np.isnan(errors[-1]):
        return (
            "These annotated images contain too few positive or too few negative targets to "
            "estimate how many images calibration needs."
        )
    if budget.sufficient_size is None:
        sizes = list(zip(errors, budget.sizes, strict=True))[-2:-1]
        previous = "".join(
            f" ({format_described_metric_value(e, 'points')} points with {size:,} images)"
            for e, size in sizes
        )
        return (
            f"{largest:,} annotated images may be too few: the ECE is "
            f"{largest_error} points{previous}, and more images may reduce the ECE."
        )
    error = errors[budget.sizes.index(budget.sufficient_size)]
    text = (
        f"About {budget.sufficient_size:,} annotated images are enough: the ECE is "
        f"{format_described_metric_value(error, 'points')} points with "
        f"{budget.sufficient_size:,} images and {largest_error} points with {largest:,} images."
    )
    if errors[-1] > NOISE_FACTOR * budget.noise_floor:
        noise_floor = format_described_metric_value(budget.noise_floor, "points")
        text += (
            f" The noise floor is {noise_floor} points. To reduce the remaining calibration error, "
            "try another calibrator or method instead of more annotated images."
        )
    return text


def plot_calibration_budget(budget: CalibrationBudget) -> Plot:
    """Plot ECE and log loss against the number of annotated images, with the noise floor."""
    values = [
        f"{size:,} images: ECE {format_described_metric_with_unit(error, 'points')}, "
        f"log loss {format_described_metric_with_unit(loss, 'nats')}"
        for size, error, loss in zip(
            budget.sizes, budget.mean_ece, budget.mean_log_loss, strict=True
        )
    ]
    repeats = budget.ece.shape[1]
    n_undefined = int(np.isnan(budget.ece).sum())
    omitted = (
        f" Samples without positive or without negative targets are omitted ({n_undefined:,})."
        * (n_undefined > 0)
    )
    return Plot(
        "calibration_budget",
        "How many annotated images does calibration need?",
        f"ECE and log loss by the number of annotated images. {'; '.join(values)}. "
        f"Noise floor: {format_described_metric_with_unit(budget.noise_floor, 'points')}.",
        f"{describe_calibration_budget_in_report(budget)} For each number of images, a calibrator "
        f"was fitted on each of {repeats:,} random samples and evaluated on "
        f"{budget.test_images:,} other images. Each dot shows one sample.{omitted}",
        _draw_calibration_budget_curves(budget),
    )


def _draw_calibration_budget_curves(budget: CalibrationBudget) -> bytes:
    figure = new_figure_in_plot_style(5.4)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[3, 2])
    for axes, values, mean, colour in (
        (upper, 100 * budget.ece, 100 * budget.mean_ece, BLUE),
        (lower, budget.log_loss, budget.mean_log_loss, ORANGE),
    ):
        apply_plot_style_to_axes(axes)
        for size, samples in zip(budget.sizes, values, strict=True):
            axes.plot([size] * len(samples), samples, ".", color=colour, alpha=0.35, markersize=4)
        axes.plot(budget.sizes, mean, "o-", color=colour, markersize=5, label="mean")
    if not np.isnan(budget.noise_floor):
        upper.axhspan(0, 100 * budget.noise_floor, color=BAND, linewidth=0, label="noise floor")
    upper.set_ylim(0, 1.35 * max(np.nanmax(100 * budget.ece, initial=0), 1e-3))
    upper.set_ylabel("ECE, points")
    upper.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9, ncols=2)
    lower.set(xlabel="annotated images", ylabel="log loss, nats", xscale="log")
    lower.set_xticks(budget.sizes, [f"{size:,}" for size in budget.sizes])
    lower.minorticks_off()
    note = (
        "ECE (15 equal-width bins) and log loss are computed on "
        f"{budget.test_images:,} images that were not used to fit the calibrator. There are "
        f"{budget.ece.shape[1]:,} samples for each number of images."
    )
    return plot_style_figure_to_png(figure, left=0.15, bottom=0.11, top=0.97, note=note)
