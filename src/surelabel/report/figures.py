"""Which plots an evaluation gets."""

from surelabel.evaluation import Evaluation
from surelabel.report.budget import budget_plot
from surelabel.report.calibrated import calibration_plot
from surelabel.report.confidence import confidence_plot
from surelabel.report.drawing import Plot
from surelabel.report.pairs import pairs_plot
from surelabel.report.per_picture import per_picture_plot
from surelabel.report.precision import precision_plot
from surelabel.report.reliability import pooled_plot
from surelabel.report.reliability_grid import grid_plot
from surelabel.report.risk_coverage import risk_plot

NAMES = (
    "reliability_before",
    "reliability",
    "calibration",
    "confidence",
    "risk_coverage",
    "budget",
    "labels_per_picture",
    "labels_together",
    "reliability_by_label",
    "reliability_unseen",
    "per_class",
    "queries",
)  # of all files that a report may write


def honesty_plots(evaluation: Evaluation, before: Evaluation | None) -> list[Plot]:
    """All that is shown of probabilities, all labels together; nothing where there are none.

    Args:
        evaluation: What to show.
        before: Another recognizer's evaluation of the same pictures, to compare with.
    """
    if evaluation.predictions.calibration is None:
        return []
    compared = before is not None and before.predictions.calibration is not None
    plots: list[Plot | None] = []
    if before is not None and compared:
        plots.append(pooled_plot(before, "reliability_before", "Before"))
    title = "After" if compared else "Do probabilities keep their promise?"
    plots.append(pooled_plot(evaluation, "reliability", title))
    if evaluation.before is not None:
        plots.append(calibration_plot(evaluation, evaluation.before))
    plots += [confidence_plot(evaluation), risk_plot(evaluation)]
    if evaluation.budget is not None:
        plots.append(budget_plot(evaluation.budget))
    return [plot for plot in plots if plot is not None]


def counting_plots(evaluation: Evaluation) -> list[Plot]:
    """How many labels a picture gets, and which together; nothing without probabilities."""
    plots = [per_picture_plot(evaluation), pairs_plot(evaluation)]
    return [plot for plot in plots if plot is not None]


def label_plots(evaluation: Evaluation) -> list[Plot]:
    """Average precision and reliability label by label, where any label has one."""
    calibrated = evaluation.predictions.calibration is not None
    plots = [precision_plot(evaluation), grid_plot(evaluation) if calibrated else None]
    return [plot for plot in plots if plot is not None]
