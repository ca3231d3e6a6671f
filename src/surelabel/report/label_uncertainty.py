"""Render the uncertainty of labels in a report, and the errors that abstaining avoids."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from surelabel.arrays import Array
from surelabel.evaluation import LabelUncertainty, SelectiveRisk, UncertaintyEvaluation
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.report.metric_descriptions import format_described_metric_value
from surelabel.report.overview import render_overview_interval_bounds
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
)

LABEL_UNCERTAINTY_PLOT_NAMES = ("uncertainty_bins", "uncertainty_risk_coverage")
KIND_TITLES = {
    "bernoulli_variance": "Bernoulli variance",
    "residual_error": "residual error",
    "match_variance": "match variance",
}
LINE_STYLES = {
    "bernoulli_variance": (BLUE, "-", "o"),
    "residual_error": (ORANGE, "--", "s"),
    "match_variance": (TEXT, ":", "^"),
}
KIND_DESCRIPTIONS = {
    "bernoulli_variance": (
        "Bernoulli variance, scaled to [0, 1], is 4p(1 - p) for the calibrated probability p. Its "
        "highest value is 1, at p = 50 %."
    ),
    "residual_error": (
        "Residual error is a learned estimate of the expected squared error of the uncalibrated "
        "probability. Label noise and ambiguity increase the residual error."
    ),
    "match_variance": (
        "Match variance is the learned variance of the similarity between image and label. A lower "
        "variance means a more reliable match. Compare the match variance of accepted labels only. "
        "Rejected labels have the highest variance, although most rejections are correct."
    ),
}
RISK_NOTE = (
    "A label is accepted if its probability is 50 % or more. An accepted label is wrong if its "
    "target is negative. The error rate of an image is the fraction of wrong decisions among its "
    "labels with known targets. Labels or images are left out in order of decreasing uncertainty. "
    "The area under the risk-coverage curve is the mean error rate over all coverages. A lower "
    "area is better. 95 % intervals are bootstrap intervals over images."
)
RISK_HEADER = (
    "",
    "labels: area",
    "error rate at 80 % coverage",
    "error rate of all labels",
    "images: area",
    "error rate at 80 % coverage",
    "error rate of all images",
)


def label_uncertainty_plots(evaluation: UncertaintyEvaluation) -> list[Plot]:
    """Return the plots of the section: errors by uncertainty, and the risk-coverage curves.

    The first plot is omitted if there are fewer than 100 accepted labels.
    """
    with_bins = [kind for kind in evaluation.kinds if kind.bins is not None]
    bins = [plot_errors_by_label_uncertainty(with_bins)] if with_bins else []
    return [*bins, plot_label_risk_coverage(evaluation.kinds)]


def plot_errors_by_label_uncertainty(kinds: Sequence[LabelUncertainty]) -> Plot:
    """Plot the error rate of accepted labels in ten bins of increasing uncertainty.

    Args:
        kinds: Evaluations of kinds of uncertainty that have bins, at least one.
    """
    figure = new_figure_in_plot_style(4.4)
    axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    sentences, highest, size, n_left_out = [], 1.0, 0, 0
    for kind in kinds:
        bins = kind.bins
        assert bins is not None  # label_uncertainty_plots leaves out the others
        colour, style, marker = LINE_STYLES[kind.kind]
        errors = 100 * (1 - bins.accuracy)
        numbers = np.arange(1, len(errors) + 1)
        title = KIND_TITLES[kind.kind]
        axes.plot(numbers, errors, color=colour, linestyle=style, marker=marker, label=title)
        sentences.append(
            f"{title.capitalize()}: the error rate is {errors[0]:.1f} % in the most certain bin "
            f"and {errors[-1]:.1f} % in the most uncertain bin"
        )
        highest, size = max(highest, float(errors.max())), bins.decisions_per_bin
        n_left_out = bins.n_left_out
    axes.set(ylim=(0, 1.3 * highest), ylabel="error rate of accepted labels, %", xticks=numbers)
    axes.set_xlabel("bin of increasing uncertainty")
    axes.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)
    note = f"Each of the ten bins contains {size:,} accepted labels." + (
        f" The most uncertain labels that do not fill a bin are left out ({n_left_out})."
        * (n_left_out > 0)
    )
    text = ". ".join(sentences)
    return Plot(
        "uncertainty_bins",
        "Errors by uncertainty",
        f"Error rate of accepted labels in ten bins of increasing uncertainty. {text}.",
        f"{text}. If a line rises, uncertain labels are wrong more often.",
        plot_style_figure_to_png(figure, left=0.13, bottom=0.13, top=0.97, note=note),
    )


def plot_label_risk_coverage(kinds: Sequence[LabelUncertainty]) -> Plot:
    """Plot the error rate of the accepted labels, and of the images, that are kept.

    Args:
        kinds: Evaluation of each kind of uncertainty, at least one.
    """
    figure = new_figure_in_plot_style(6.4)
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_risks(upper, {kind.kind: kind.accepted_labels for kind in kinds})
    _draw_risks(lower, {kind.kind: kind.images for kind in kinds})
    upper.set_ylabel("error rate, %\naccepted labels")
    lower.set_ylabel("error rate, %\nimages")
    lower.set_xlabel("coverage: fraction of labels or images kept, least uncertain first")
    lower.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)
    set_plot_style_percent_ticks(lower.xaxis)
    text = ". ".join(_risk_sentence(kind) for kind in kinds)
    return Plot(
        "uncertainty_risk_coverage",
        "How much does abstaining reduce the error rate?",
        f"Error rate against the fraction of accepted labels or images that are kept. {text}.",
        f"{text}. The further a line is below the dashed horizontal line, the better the "
        "uncertainty predicts errors.",
        plot_style_figure_to_png(figure, left=0.15, bottom=0.09, top=0.97),
    )


def render_label_uncertainty_tables(evaluation: UncertaintyEvaluation) -> Markup:
    """Return the descriptions of the kinds of uncertainty and the table of their risks as HTML."""
    items = [markup_element("li", KIND_DESCRIPTIONS[kind.kind]) for kind in evaluation.kinds]
    rows = [
        markup_element(
            "tr",
            markup_element("th", KIND_TITLES[kind.kind], scope="row"),
            *_risk_cells(kind.accepted_labels),
            *_risk_cells(kind.images),
        )
        for kind in evaluation.kinds
    ]
    return join_markup(
        markup_element("ul", *items, class_="soft"),
        markup_element("h3", "Error rate after leaving out uncertain labels or images"),
        markup_element("p", RISK_NOTE, class_="soft"),
        markup_table_region("Risk and coverage", markup_header_cells(RISK_HEADER), rows),
    )


def label_uncertainty_as_json(evaluation: UncertaintyEvaluation) -> dict[str, object]:
    """Return the metrics of each kind of uncertainty, without the points of the curves."""
    return {
        kind.kind: {
            "accepted_labels": None
            if kind.accepted_labels is None
            else _risk_as_json(kind.accepted_labels),
            "images": _risk_as_json(kind.images),
            "bins": None if kind.bins is None else vars(kind.bins),
        }
        for kind in evaluation.kinds
    }


def _draw_risks(axes: Axes, risks: dict[str, SelectiveRisk | None]) -> None:
    apply_plot_style_to_axes(axes)
    highest = 0.0
    for kind, risk in risks.items():
        if risk is None:
            continue
        colour, style, _ = LINE_STYLES[kind]
        values: Array = 100 * risk.curve.risk
        axes.plot(
            risk.curve.coverage,
            values,
            color=colour,
            linestyle=style,
            lw=1.8,
            label=KIND_TITLES[kind],
        )
        axes.axhline(values[-1], color=TEXT, alpha=0.5, linestyle="--", lw=1)
        highest = max(highest, float(values.max()))
    axes.set(xlim=(0, 1), ylim=(0, max(1.4 * highest, 1e-9)))


def _risk_sentence(kind: LabelUncertainty) -> str:
    risks = [("accepted labels", kind.accepted_labels), ("images", kind.images)]
    parts = [
        f"from {100 * risk.curve.risk[-1]:.2f} % to "
        f"{100 * risk.intervals['risk_at_80'].value:.2f} % ({title})"
        for title, risk in risks
        if risk is not None
    ]
    return (
        f"{KIND_TITLES[kind.kind].capitalize()}: leaving out the most uncertain 20 % changes the "
        f"error rate {' and '.join(parts)}"
    )


def _risk_cells(risk: SelectiveRisk | None) -> list[Markup]:
    if risk is None:
        return [markup_element("td", format_described_metric_value(None, "%"))] * 3
    cells = [
        markup_element(
            "td",
            format_described_metric_value(interval.value, "%"),
            render_overview_interval_bounds(interval, "%"),
        )
        for interval in (risk.intervals["area"], risk.intervals["risk_at_80"])
    ]
    overall = format_described_metric_value(float(risk.curve.risk[-1]), "%")
    return [*cells, markup_element("td", overall)]


def _risk_as_json(risk: SelectiveRisk) -> dict[str, object]:
    return {
        "intervals": {name: vars(interval) for name, interval in risk.intervals.items()},
        "optimal_area": risk.curve.optimal_area,
        "risk_of_all": float(risk.curve.risk[-1]),
        "decisions": len(risk.curve.risk),
    }
