"""Render the section of a report on operating points, precision and recall, and costs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.evaluation import Evaluation
from surelabel.markup import Markup, markup_element
from surelabel.report.decision_costs import (
    compute_decision_costs,
    decision_costs_as_json,
    render_decision_cost_table,
)
from surelabel.report.operating_point_table import (
    operating_points_as_json,
    render_operating_point_tables,
)
from surelabel.report.operating_points import MIN_IMAGES, measure_operating_points
from surelabel.report.page_layout import render_page_plot_grid, render_page_section
from surelabel.report.plot_style import Plot
from surelabel.report.precision_recall import precision_recall_as_json
from surelabel.report.precision_recall_plots import (
    plot_precision_recall,
    plot_precision_recall_per_label,
)

NO_THRESHOLDS = (
    "There is no table of operating points: the recognizer has no validation record, and fewer "
    f"than {MIN_IMAGES} images with a known target are evaluated. Calibrate the recognizer on "
    f"annotated images, or evaluate {MIN_IMAGES} or more annotated images."
)
UNCALIBRATED = (
    "Operating points and costs require calibrated probabilities. These scores are not calibrated, "
    "so only precision-recall curves are shown."
)


def decision_section_plots(evaluation: Evaluation) -> list[Plot]:
    """Return the precision-recall curves of all decisions and of some labels.

    Curves that are undefined, because no decision is positive, are left out.
    """
    predictions, targets, known = evaluation.predictions, evaluation.targets, evaluation.known
    is_calibrated = predictions.calibration is not None
    scores = _scores_of_decisions(evaluation)
    plots = [
        plot_precision_recall(scores, targets, known, is_calibrated=is_calibrated),
        plot_precision_recall_per_label(
            predictions.names, scores, targets, known, evaluation.per_class["average_precision"]
        ),
    ]
    return [plot for plot in plots if plot is not None]


def _scores_of_decisions(evaluation: Evaluation) -> Array:
    """Return the probabilities, or the scores if they are not calibrated, ``(n, c)``."""
    predictions = evaluation.predictions
    if predictions.calibration is not None:
        return predictions.probabilities
    return predictions.scores.astype(np.float64)


def decision_section_title(evaluation: Evaluation) -> str:
    """Return the short title of the section, which depends on whether scores are calibrated."""
    is_calibrated = evaluation.predictions.calibration is not None
    return "Operating points" if is_calibrated else "Precision and recall"


def render_decision_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    """Return the section on operating points, precision and recall, and costs.

    Args:
        evaluation: Evaluation to report.
        plots: Precision-recall curves.
    """
    predictions = evaluation.predictions
    grid = [render_page_plot_grid(plots)] if plots else []
    if predictions.calibration is None:
        note = markup_element("p", UNCALIBRATED, class_="soft")
        return (
            render_page_section("decisions", "Precision and recall", note, *grid)
            if grid
            else (Markup(""))
        )
    measurements = measure_operating_points(evaluation)
    tables = (
        markup_element("p", NO_THRESHOLDS, class_="note")
        if measurements is None
        else render_operating_point_tables(measurements, predictions.names, predictions.calibration)
    )
    costs = compute_decision_costs(predictions.probabilities, evaluation.targets, evaluation.known)
    return render_page_section(
        "decisions",
        "Operating points, precision-recall curves and costs",
        tables,
        *grid,
        markup_element("h3", "Cost of decisions"),
        render_decision_cost_table(costs),
    )


def decision_section_as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the operating points, the precision-recall curves and the costs as JSON values.

    Without calibration, the operating points and the costs are None. Too few evaluated images
    without a validation record have no operating points either; see `measure_operating_points`.
    """
    predictions, targets, known = evaluation.predictions, evaluation.targets, evaluation.known
    is_calibrated = predictions.calibration is not None
    scores = _scores_of_decisions(evaluation)
    measurements = measure_operating_points(evaluation)
    curves = precision_recall_as_json(
        predictions.names, scores, targets, known, evaluation.per_class["average_precision"]
    )
    costs = compute_decision_costs(scores, targets, known) if is_calibrated else None
    return {
        "operating_points": measurements
        and operating_points_as_json(measurements, predictions.names),
        "precision_recall": curves,
        "decision_costs": costs and decision_costs_as_json(costs),
    }
