"""Plot the error rate against the fraction of kept images (risk-coverage curve)."""

import numpy as np

from surelabel.decisions import RiskCoverageCurve
from surelabel.report.plot_style import (
    BLUE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
)


def plot_risk_coverage(curve: RiskCoverageCurve) -> Plot:
    """Plot the error rate against the fraction of images that are kept, least uncertain first."""
    overall = curve.risk[-1]
    half = curve.risk[np.searchsorted(curve.coverage, 0.5)]
    error_rates = (
        f"The error rate is {100 * half:.2f} % on the least uncertain half of the images, and "
        f"{100 * overall:.2f} % on all images"
    )
    areas = (
        f"The mean error rate over all coverages is {100 * curve.area:.2f} %, and would be "
        f"{100 * curve.optimal_area:.2f} % if images were sorted by their true error rate"
    )
    return Plot(
        "risk_coverage",
        "Risk-coverage curve: does uncertainty predict errors?",
        f"Error rate against the fraction of images kept. {error_rates}. {areas}.",
        f"{error_rates}. {areas}. The further the solid line is below the dashed line, the better "
        "the uncertainty predicts errors.",
        _draw_risk_coverage_curve(curve),
    )


def _draw_risk_coverage_curve(curve: RiskCoverageCurve) -> bytes:
    figure = new_figure_in_plot_style(4.6)
    axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    risk = 100 * curve.risk
    axes.plot([0, 1], [risk[-1]] * 2, color=TEXT, linestyle="--", lw=1, label="random order")
    axes.plot(curve.coverage, risk, color=BLUE, lw=2, label="least uncertain first")
    axes.set(xlim=(0, 1), ylim=(0, max(1.3 * risk.max(), 1e-9)), ylabel="error rate, %")
    axes.set_xlabel("coverage: fraction of images kept, least uncertain first")
    axes.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9, ncols=2)
    set_plot_style_percent_ticks(axes.xaxis)
    note = (
        "The uncertainty of an image is the mean binary entropy over its labels with known "
        "targets. An error is a negative label with a probability of 50 % or more, or a positive "
        "label with a probability below 50 %."
    )
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.13, top=0.97, note=note)
