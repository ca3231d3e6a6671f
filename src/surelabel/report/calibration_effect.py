"""Plot and tabulate the same decisions with and without the calibrator."""

from collections.abc import Mapping

from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.metrics import ReliabilityBins
from surelabel.report.metric_descriptions import (
    describe_metric,
    format_described_metric_value,
    format_described_metric_with_unit,
    sort_by_metric_descriptions,
)
from surelabel.report.plot_style import Plot
from surelabel.report.reliability_diagram import draw_reliability_diagram


def plot_calibration_effect(
    calibrated: ReliabilityBins,
    uncalibrated: ReliabilityBins,
    *,
    summary: Mapping[str, float],
    uncalibrated_summary: Mapping[str, float],
    note: str,
) -> Plot:
    """Plot the reliability diagrams with and without the calibrator.

    Args:
        calibrated: Reliability bins of the calibrated probabilities.
        uncalibrated: Reliability bins of the uncalibrated probabilities of the same decisions.
        summary: Mapping from metric to value for the calibrated probabilities, including ``ece``
            and ``log_loss``.
        uncalibrated_summary: Mapping from metric to value for the uncalibrated probabilities.
        note: Description of the bins, printed below the diagram.
    """
    errors = [
        f"{title}: ECE {format_described_metric_with_unit(values['ece'], 'points')}, "
        f"log loss {format_described_metric_with_unit(values['log_loss'], 'nats')}"
        for title, values in (("Uncalibrated", uncalibrated_summary), ("calibrated", summary))
    ]
    return Plot(
        "calibration_effect",
        "Effect of the calibrator",
        f"Two reliability diagrams of the same decisions. {'; '.join(errors)}.",
        "Squares on a dashed line show probabilities without the calibrator. Dots on a solid line "
        "show probabilities with the calibrator.",
        draw_reliability_diagram(
            [("with the calibrator", calibrated), ("without the calibrator", uncalibrated)], note
        ),
    )


def calibration_effect_table(
    summary: Mapping[str, float], uncalibrated_summary: Mapping[str, float]
) -> Markup:
    """Return an HTML table of the probability metrics with and without the calibrator.

    A sentence after the table names the metrics that are worse with the calibrator.

    Args:
        summary: Mapping from metric to value for the calibrated probabilities.
        uncalibrated_summary: Mapping from metric to value for the uncalibrated probabilities.
    """
    rows = [
        _calibration_effect_row(metric, uncalibrated_summary[metric], summary.get(metric))
        for metric in sort_by_metric_descriptions(uncalibrated_summary)
    ]
    header = markup_header_cells(["metric", "uncalibrated", "calibrated"])
    table = markup_table_region("Metrics without and with the calibrator", header, rows)
    worse = [
        describe_metric(metric).title
        for metric in sort_by_metric_descriptions(uncalibrated_summary)
        if _is_worse(metric, uncalibrated_summary[metric], summary.get(metric))
    ]
    if not worse:
        return table
    note = f"On the evaluated images, the calibrator makes these metrics worse: {', '.join(worse)}."
    return join_markup(table, markup_element("p", note, class_="soft"))


def _is_worse(metric: str, uncalibrated: float, calibrated: float | None) -> bool:
    """Return whether a metric is worse with the calibrator, or False if a value is undefined."""
    if calibrated is None:
        return False
    is_higher_better = describe_metric(metric).better == "higher"
    return calibrated < uncalibrated if is_higher_better else calibrated > uncalibrated


def _calibration_effect_row(metric: str, *values: float | None) -> Markup:
    description = describe_metric(metric)
    return markup_element(
        "tr",
        markup_element(
            "th", description.title, markup_element("span", f" in {description.unit}"), scope="row"
        ),
        *(
            markup_element("td", format_described_metric_value(value, description.unit))
            for value in values
        ),
    )
