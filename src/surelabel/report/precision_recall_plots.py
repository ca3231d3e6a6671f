"""Plot precision-recall curves of all decisions together, and of some labels."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from surelabel.arrays import Array, Flags
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
    shorten_label_for_plot_style,
)
from surelabel.report.precision_recall import (
    PrecisionRecallCurve,
    precision_recall_curve,
    precision_recall_curves_of_labels,
)

PRECISION_RECALL_PLOT_NAMES = ("precision_recall", "precision_recall_per_label")
MARKED_THRESHOLDS = (0.2, 0.5, 0.8)  # probabilities that are marked on the pooled curve
LABEL_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")  # Okabe and Ito


def plot_precision_recall(
    scores: Array, targets: Array, known: Flags, *, is_calibrated: bool
) -> Plot | None:
    """Plot the precision-recall curve of the decisions of all labels.

    Args:
        scores: Probabilities, or scores if ``is_calibrated`` is False, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        is_calibrated: True if the scores are calibrated probabilities. For probabilities, the
            points at thresholds of 20 %, 50 % and 80 % are marked.

    Returns:
        The plot, or None if no decision is positive.
    """
    curve = precision_recall_curve(scores[known], targets[known])
    if curve is None:
        return None
    prevalence = float((targets[known] >= 0.5).mean())
    marks = _marked_points(curve) if is_calibrated else []
    points = "".join(
        f" At a threshold of {100 * threshold:.0f} %, the precision is {100 * precision:.0f} % and "
        f"the recall is {100 * recall:.0f} %."
        for threshold, precision, recall in marks
    )
    area = f"The area under the curve is {100 * curve.average_precision:.1f} %."
    return Plot(
        "precision_recall",
        "Precision and recall of all decisions",
        f"Precision against recall over all thresholds. {area}{points}",
        "Each point of the curve shows precision and recall at one threshold for all labels. A "
        "lower threshold yields more true positives, but also more false positives. "
        f"{area} The dashed line is the precision of a random ranking.",
        _draw_precision_recall(curve, prevalence, marks),
    )


def plot_precision_recall_per_label(
    names: Sequence[str], scores: Array, targets: Array, known: Flags, average_precision: Array
) -> Plot | None:
    """Plot the precision-recall curves of up to five labels.

    Args:
        names: Labels, length c.
        scores: Probabilities or scores, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        average_precision: Average precision of each label, NaN if undefined, ``(c,)``.

    Returns:
        The plot, or None if the average precision of all labels is undefined.
    """
    curves = precision_recall_curves_of_labels(scores, targets, known, average_precision)
    if not curves:
        return None
    listed = ", ".join(
        f"{names[column]} {100 * curve.average_precision:.0f} %" for column, curve in curves
    )
    return Plot(
        "precision_recall_per_label",
        "Precision and recall of some labels",
        f"Precision against recall of {len(curves)} labels, with their average precision: "
        f"{listed}.",
        "The labels are selected at evenly spaced ranks of average precision (AP), from the "
        "highest to the lowest. The curve of a label with few positives has large steps.",
        _draw_precision_recall_per_label(names, curves),
    )


def _marked_points(curve: PrecisionRecallCurve) -> list[tuple[float, float, float]]:
    """Return threshold, precision and recall of the thresholds that are marked on the curve."""
    points = []
    for threshold in MARKED_THRESHOLDS:
        n_points = int(np.searchsorted(-curve.scores, -threshold, side="right"))
        if n_points:
            row = n_points - 1
            points.append((threshold, float(curve.precision[row]), float(curve.recall[row])))
    return points


def _draw_precision_recall(
    curve: PrecisionRecallCurve,
    prevalence: float,
    marks: Sequence[tuple[float, float, float]],
) -> bytes:
    figure = new_figure_in_plot_style(4.6)
    axes = figure.subplots()
    _set_precision_recall_axes(axes)
    axes.axhline(prevalence, color=TEXT, linestyle="--", lw=1)
    _draw_precision_recall_steps(axes, curve, BLUE, lw=2)
    for threshold, precision, recall in marks:
        axes.plot(recall, precision, "o", color=ORANGE, markersize=6)
        is_right = recall < 0.75
        axes.annotate(
            f"{100 * threshold:.0f} %",
            (recall, precision),
            (7 if is_right else -7, 5 if is_right else -12),
            textcoords="offset points",
            ha="left" if is_right else "right",
            color=TEXT,
            fontsize=9,
        )
    note = "Orange points are at thresholds of 20 %, 50 % and 80 %." if marks else ""
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.13, top=0.97, note=note)


def _draw_precision_recall_per_label(
    names: Sequence[str], curves: Sequence[tuple[int, PrecisionRecallCurve]]
) -> bytes:
    figure = new_figure_in_plot_style(4.6)
    axes = figure.subplots()
    _set_precision_recall_axes(axes)
    for (column, curve), colour in zip(curves, LABEL_COLOURS, strict=False):
        title = f"{shorten_label_for_plot_style(names[column])}, AP "
        _draw_precision_recall_steps(
            axes, curve, colour, lw=1.6, label=f"{title}{100 * curve.average_precision:.0f} %"
        )
    legend = axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.45, 1.01),
        ncols=2,
        fontsize=8.5,
        labelcolor=TEXT,
        frameon=False,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.13, top=0.83)


def _draw_precision_recall_steps(
    axes: Axes, curve: PrecisionRecallCurve, colour: str, *, lw: float, label: str | None = None
) -> None:
    """Draw the points at which the recall rises, as steps."""
    rises = np.diff(curve.recall, prepend=0) > 0
    recall, precision = curve.recall[rises], curve.precision[rises]
    recall, precision = np.append(0, recall), np.append(precision[0], precision)
    axes.plot(recall, precision, color=colour, lw=lw, drawstyle="steps-pre", label=label)


def _set_precision_recall_axes(axes: Axes) -> None:
    apply_plot_style_to_axes(axes)
    axes.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="recall", ylabel="precision")
    set_plot_style_percent_ticks(axes.xaxis)
    set_plot_style_percent_ticks(axes.yaxis)
