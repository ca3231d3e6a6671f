"""Render the operating points of a report as HTML tables and as JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.metrics import ConfidenceInterval
from surelabel.records import calibration_provenance
from surelabel.report.metric_descriptions import (
    NOT_MEASURED,
    format_described_metric_value,
    format_described_probability,
)
from surelabel.report.operating_points import MeasuredOperatingPoint, OperatingPointMeasurements
from surelabel.report.overview import render_overview_interval_bounds

HEADER = (
    "operating point",
    "threshold",
    "precision",
    "recall",
    "pooled precision",
    "pooled recall",
    "labels per image",
)
LABEL_OPTIONS = ("--precision 0.9", "--recall 0.8", "--best-f1")  # in the table of labels
AVERAGES = (
    "Precision and recall are measured on the evaluated images and averaged over labels. Labels "
    "that do not reach the operating point, or have an undefined value, are left out. Below each "
    "mean is the value that was expected when the thresholds were computed. Pooled values count "
    "the decisions of all labels together, and have 95 % bootstrap intervals over images."
)


def describe_operating_point_source(
    measurements: OperatingPointMeasurements, calibration: str | None
) -> str:
    """Return sentences on the images from which the thresholds are computed.

    Args:
        measurements: Operating points of a report.
        calibration: Description of the calibration of the recognizer.
    """
    images = f"{measurements.n_record_images:,} images"
    if measurements.is_cross_fitted:
        return (
            f"The recognizer has no validation record, so the thresholds are computed from the "
            f"{images} of this evaluation. Precision and recall are measured by 5-fold "
            "cross-fitting: no image is evaluated at a threshold that was computed from its "
            "targets. The expected values are computed from the same images as the thresholds, so "
            "the expected values are optimistic."
        )
    if calibration_provenance(calibration) == "no labels":
        return (
            f"The command surelabel tag uses the same thresholds. The thresholds are computed from "
            f"the probabilities of {images} without labels, so the expected values are not "
            "verified. Precision and recall are measured on the evaluated images."
        )
    return (
        f"The command surelabel tag uses the same thresholds. The thresholds are computed from the "
        f"validation record of the recognizer, which was computed from {images}. The thresholds do "
        "not depend on the evaluated images, unless these images were used for calibration."
    )


def render_operating_point_tables(
    measurements: OperatingPointMeasurements, names: Sequence[str], calibration: str | None
) -> Markup:
    """Return a description of the thresholds, a table of operating points and a table of labels.

    Args:
        measurements: Operating points of a report.
        names: Labels, length c.
        calibration: Description of the calibration of the recognizer.
    """
    rows = [_operating_point_row(point) for point in measurements.points]
    title = markup_element("summary", "Thresholds of each label")
    return join_markup(
        markup_element("p", describe_operating_point_source(measurements, calibration)),
        markup_table_region("Operating points", markup_header_cells(HEADER), rows),
        markup_element("p", AVERAGES, class_="soft"),
        markup_element(
            "details", title, _label_threshold_table(measurements.points, names), class_="more"
        ),
    )


def operating_points_as_json(
    measurements: OperatingPointMeasurements, names: Sequence[str]
) -> dict[str, Any]:
    """Return the operating points with the thresholds of each label, as JSON values.

    Args:
        measurements: Operating points of a report.
        names: Labels, length c.
    """
    return {
        "thresholds_computed_from": "evaluated images, cross-fitted"
        if measurements.is_cross_fitted
        else "validation record of the recognizer",
        "images": measurements.n_record_images,
        "points": [_operating_point_as_json(point, names) for point in measurements.points],
    }


def _operating_point_as_json(point: MeasuredOperatingPoint, names: Sequence[str]) -> dict[str, Any]:
    pooled = {"precision": point.pooled_precision, "recall": point.pooled_recall}
    means = {metric: point.mean_over_labels(metric) for metric in pooled}
    thresholds = point.thresholds
    return {
        "option": point.option,
        "reached_labels": int(thresholds.is_reached.sum()),
        "labels_per_image": point.labels_per_image,
        **{f"expected_{metric}": expected for metric, (expected, _) in means.items()},
        **{f"measured_{metric}": measured for metric, (_, measured) in means.items()},
        **{
            f"pooled_{metric}": {"value": v.value, "low": v.low, "high": v.high}
            for metric, v in pooled.items()
        },
        "per_class": {
            name: {
                "threshold": float(thresholds.values[c]),
                "is_reached": bool(thresholds.is_reached[c]),
                "expected_precision": float(thresholds.precision[c]),
                "expected_recall": float(thresholds.recall[c]),
                "precision": float(point.precision[c]),
                "recall": float(point.recall[c]),
            }
            for c, name in enumerate(names)
        },
    }


def _operating_point_row(point: MeasuredOperatingPoint) -> Markup:
    n_reached, n_labels = int(point.thresholds.is_reached.sum()), point.thresholds.values.size
    reached = "" if n_reached == n_labels else f"reached by {n_reached:,} of {n_labels:,} labels"
    return markup_element(
        "tr",
        markup_element(
            "th",
            point.description,
            markup_element("div", markup_element("code", point.option)),
            *([markup_element("div", reached, class_="interval")] if reached else []),
            scope="row",
        ),
        markup_element("td", *_threshold_range(point.thresholds.values, point)),
        _mean_cell(*point.mean_over_labels("precision")),
        _mean_cell(*point.mean_over_labels("recall")),
        _pooled_cell(point.pooled_precision),
        _pooled_cell(point.pooled_recall),
        markup_element("td", f"{point.labels_per_image:.2f}"),
    )


def _threshold_range(values: Array, point: MeasuredOperatingPoint) -> list[str]:
    """Return the common threshold, or the median and the range of the thresholds of labels."""
    if np.ptp(values) == 0:
        is_never = values[0] >= 1
        return [NOT_MEASURED if is_never else format_described_probability(float(values[0]))]
    reached = values[point.thresholds.is_reached]
    low, median, high = (
        format_described_probability(float(value))
        for value in (reached.min(), np.median(reached), reached.max())
    )
    bounds = markup_element("div", f"{low} to {high}", class_="interval")
    return [f"median {median}", bounds]


def _mean_cell(expected: float, measured: float) -> Markup:
    note = markup_element(
        "div", f"expected {format_described_metric_value(expected, '%')}", class_="interval"
    )
    notes = [] if np.isnan(expected) else [note]
    return markup_element("td", format_described_metric_value(measured, "%"), *notes)


def _pooled_cell(interval: ConfidenceInterval) -> Markup:
    # if all decisions are correct, or none is correct, all resamples are equal
    is_known = interval.low < interval.high
    bounds = [render_overview_interval_bounds(interval, "%")] if is_known else []
    return markup_element("td", format_described_metric_value(interval.value, "%"), *bounds)


def _label_threshold_table(
    points: Sequence[MeasuredOperatingPoint], names: Sequence[str]
) -> Markup:
    shown = [point for point in points if point.option in LABEL_OPTIONS]
    columns = ("threshold", "precision", "recall")
    titles = [f"{point.option.removeprefix('--')}: {title}" for point in shown for title in columns]
    rows = [
        markup_element(
            "tr",
            markup_element("th", name, scope="row", class_="name"),
            markup_element("td", f"{shown[0].thresholds.support[c]:,.0f}"),
            *(
                markup_element("td", text)
                for point in shown
                for text in _label_threshold_texts(point, c)
            ),
        )
        for c, name in enumerate(names)
    ]
    header = markup_header_cells(["label", "positives", *titles])
    return markup_table_region("Thresholds of each label", header, rows, class_="scroll")


def _label_threshold_texts(point: MeasuredOperatingPoint, column: int) -> tuple[str, str, str]:
    """Return the threshold of a label and its measured precision and recall."""
    if not point.thresholds.is_reached[column]:
        return "not reached", NOT_MEASURED, NOT_MEASURED
    return (
        format_described_probability(float(point.thresholds.values[column])),
        format_described_metric_value(float(point.precision[column]), "%"),
        format_described_metric_value(float(point.recall[column]), "%"),
    )
