"""Render the summary section of a report: dataset, main metrics, metric table and notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.metrics import POOLED, ConfidenceInterval
from surelabel.records import SkippedImage
from surelabel.report.high_probability_accuracy import (
    HIGH_PROBABILITY,
    measure_high_probability_accuracy,
)
from surelabel.report.metric_descriptions import (
    METRIC_DESCRIPTIONS,
    N_MAIN_METRICS,
    NOT_MEASURED,
    UNDEFINED,
    describe_metric,
    format_described_metric_value,
    sort_by_metric_descriptions,
)
from surelabel.tables import table_entry_settings

MAX_SKIPPED_IMAGES = 50
CONVENTIONS = (
    "A decision is one label of one image. ECE, ACE, MCE, Brier score and log loss are computed "
    "over the decisions of all labels and images. The noise floor is the expected value of the "
    "metric for a perfectly calibrated recognizer with the same probabilities. The noise floor is "
    f"above 0 because the number of decisions is finite. The sign {NOT_MEASURED} means that a "
    "value was not computed. The 95 % intervals are bootstrap intervals over images."
)
UNCALIBRATED = (
    "These scores are not calibrated, so they are not probabilities. Ranking metrics are "
    "available; calibration metrics are not. To compute calibration metrics, calibrate the "
    "recognizer on annotated images that are not evaluated here (surelabel calibrate, or "
    "recognizer.calibrate(held_out)). Then evaluate again and write the report again."
)


@dataclass(frozen=True)
class MetricColumns:
    """Columns of the metric table, as mappings from metric to value.

    Attributes:
        summary: Pooled value of each metric.
        class_means: Mean of each metric over the labels for which the metric is defined.
        noise_floor: Pooled value of each metric for perfectly calibrated probabilities. If the
            values are unknown, the mapping is empty.
        class_noise_floor: Mean of each metric over labels for perfectly calibrated probabilities.
        intervals: 95 % confidence interval of the pooled value, for some metrics.
        before: Pooled value of each metric in an earlier evaluation. If None, the table has no such
            column.
    """

    summary: Mapping[str, float]
    class_means: Mapping[str, float]
    noise_floor: Mapping[str, float]
    class_noise_floor: Mapping[str, float]
    intervals: Mapping[str, ConfidenceInterval] = field(default_factory=dict)
    before: Mapping[str, float] | None = None


def render_dataset_overview(
    targets: Array,
    known: Flags,
    *,
    calibration: str | None,
    model: str,
    noun: str = "image",
) -> Markup:
    """Return an HTML paragraph on the dataset, the calibration and the recognizer.

    Args:
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        calibration: Description of the calibration. If None, the recognizer is not calibrated.
        model: Fingerprint of the recognizer. If the string is empty, the recognizer is omitted.
        noun: Noun of the evaluated inputs: ``image``, or ``row`` of precomputed vectors. For rows,
            the paragraph states that the other texts of the report call them images.
    """
    n_images, n_labels = targets.shape
    n_positives = int((targets * known >= 0.5).sum())
    n_unknown = int(known.size - known.sum())
    text = (
        f"{format_count(n_images, noun)} with {format_count(n_labels, 'label')}: "
        f"{int(known.sum()):,} decisions are evaluated, of which {n_positives:,} are positive "
        f"({n_positives / max(n_images, 1):.1f} per {noun})."
    )
    if noun != "image":
        text += f" Each {noun} is a precomputed vector; the texts below call it an image."
    text += f" Decisions with unknown targets are ignored ({n_unknown:,})." * (n_unknown > 0)
    text += f" Calibration: {calibration}." if calibration else ""
    recognizer = [" Recognizer: ", markup_element("code", model), "."] if model else []
    return markup_element("p", text, *recognizer, class_="soft")


def render_overview_headline_metrics(
    summary: Mapping[str, float],
    noise_floor: Mapping[str, float],
    targets: Array,
    known: Flags,
    probabilities: Array | None,
) -> Markup:
    """Return HTML cards of the accuracy of high probabilities, mAP, Brier skill and ECE.

    Args:
        summary: Pooled value of each metric. If a metric is missing, its card is omitted.
        noise_floor: Pooled value of each metric for perfectly calibrated probabilities.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        probabilities: Probabilities in [0, 1], ``(n, c)``. If None, the recognizer is not
            calibrated.
    """
    cards = []
    if probabilities is not None:
        cards.append(_overview_high_probability_card(probabilities, targets, known))
    if "mean_average_precision" in summary:
        value = format_described_metric_value(summary["mean_average_precision"], "%")
        cards.append(
            _overview_headline_card(
                value, "Accuracy: mAP", _overview_mean_average_precision_text(targets, known)
            )
        )
    if "brier_skill" in summary:
        text = "Reduction of the squared error relative to predicting the prevalence of each label."
        cards.append(
            _overview_headline_card(
                format_described_metric_value(summary["brier_skill"], "%"), "Brier skill", text
            )
        )
    if "ece" in summary:
        text = "Mean absolute difference between probability and fraction of positives, in points."
        if "ece" in noise_floor:
            text += f" Noise floor: {format_described_metric_value(noise_floor['ece'], 'points')}."
        cards.append(
            _overview_headline_card(
                format_described_metric_value(summary["ece"], "points"), "Calibration: ECE", text
            )
        )
    return markup_element("div", *cards, class_="cards")


def _overview_mean_average_precision_text(targets: Array, known: Flags) -> str:
    text = "Mean over labels of the average precision of ranking all images."
    n_positives = (targets * known).sum(axis=0)
    has_positives = n_positives > 0  # labels with an average precision
    if not has_positives.any():
        return text
    random = 100 * (n_positives[has_positives] / known.sum(axis=0)[has_positives]).mean()
    return f"{text} A random ranking has an mAP of about {random:.1f} %."


def _overview_high_probability_card(probabilities: Array, targets: Array, known: Flags) -> Markup:
    title = f"Accuracy at p ≥ {100 * HIGH_PROBABILITY:.0f} %"
    result = measure_high_probability_accuracy(probabilities, targets, known)
    if result is None:
        text = f"No probability is {100 * HIGH_PROBABILITY:.0f} % or more."
        return _overview_headline_card(NOT_MEASURED, title, text)
    accuracy = result.accuracy
    bounds = f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f} %"
    interval = f" (95 % interval: {bounds})" if accuracy.low < accuracy.high else ""
    text = (
        f"Fraction of positive labels among the {result.decisions:,} decisions with a probability "
        f"of {100 * HIGH_PROBABILITY:.0f} % or more{interval}. The mean probability of these "
        f"decisions is {100 * result.mean_probability:.1f} %."
    )
    return _overview_headline_card(f"{100 * accuracy.value:.1f} %", title, text)


def _overview_headline_card(value: str, title: str, text: str) -> Markup:
    number = markup_element("div", value, class_="big")
    return markup_element(
        "div", markup_element("div", title), number, markup_element("p", text), class_="card soft"
    )


def render_overview_metric_table(columns: MetricColumns) -> Markup:
    """Return an HTML table of all metrics, with the less common metrics in a collapsed table."""
    metrics = sort_by_metric_descriptions(columns.summary)
    main_metrics = list(METRIC_DESCRIPTIONS)[:N_MAIN_METRICS]
    main = [m for m in metrics if m in main_metrics or m not in METRIC_DESCRIPTIONS]
    more = [m for m in metrics if m not in main]
    if not more:
        return _overview_metric_table_region(main, columns)
    title = markup_element(
        "summary", f"{len(more)} more {'metric' if len(more) == 1 else 'metrics'}"
    )
    folded = markup_element(
        "details", title, _overview_metric_table_region(more, columns), class_="more"
    )
    return join_markup(_overview_metric_table_region(main, columns), folded)


def _overview_metric_table_region(metrics: Sequence[str], columns: MetricColumns) -> Markup:
    before = [] if columns.before is None else ["before"]
    noise_floor = ["noise floor"] * bool(columns.noise_floor)
    value = "value, 95 % interval" if columns.intervals else "value"
    titles = ["metric", value, *before, *noise_floor, "mean over labels", *noise_floor]
    rows = [_overview_metric_table_row(metric, columns) for metric in metrics]
    return markup_table_region("Metrics", markup_header_cells(titles), rows)


def _overview_metric_table_row(metric: str, columns: MetricColumns) -> Markup:
    description = describe_metric(metric)
    metric_settings = table_entry_settings(POOLED[metric]) if metric in POOLED else {}
    qualifiers = [f"in {description.unit}"] * bool(description.unit)
    qualifiers += [f"{key} = {value}" for key, value in metric_settings.items()]
    better = f" {description.better.capitalize()} is better." if description.better else ""
    optional: list[float | None] = []
    if columns.before is not None:
        optional.append(columns.before.get(metric))
    if columns.noise_floor:
        optional.append(columns.noise_floor.get(metric))
    optional.append(columns.class_means.get(metric))
    if columns.noise_floor:
        optional.append(columns.class_noise_floor.get(metric))
    interval = columns.intervals.get(metric)
    bounds = [render_overview_interval_bounds(interval, description.unit)] if interval else []
    return markup_element(
        "tr",
        markup_element(
            "th",
            description.title,
            markup_element("span", " " + ", ".join(qualifiers)),
            markup_element("div", description.text + better),
            scope="row",
            class_="metric",
        ),
        markup_element(
            "td", format_described_metric_value(columns.summary[metric], description.unit), *bounds
        ),
        *(
            markup_element("td", format_described_metric_value(value, description.unit))
            for value in optional
        ),
    )


def render_overview_interval_bounds(interval: ConfidenceInterval, unit: str) -> Markup:
    """Return an HTML line with the ends of a confidence interval, below the value of a metric.

    Args:
        interval: Confidence interval of a metric.
        unit: Unit of the metric, such as ``%`` or ``points``.
    """
    low, high = (
        format_described_metric_value(interval.low, unit),
        format_described_metric_value(interval.high, unit),
    )
    text = UNDEFINED if isnan(interval.low) else f"{low.removesuffix(' %')} to {high}"
    return markup_element("div", text, class_="interval")


def render_overview_undefined_labels(undefined_classes: Mapping[str, int], n_labels: int) -> Markup:
    """Return an HTML note on the number of labels for which each metric is undefined.

    Args:
        undefined_classes: Mapping from metric to the number of labels with an undefined value.
        n_labels: Number of labels.
    """
    counts = [
        f"{describe_metric(metric).title} for {count:,}"
        for metric, count in undefined_classes.items()
        if count
    ]
    if not counts:
        return Markup("")
    text = (
        f"Some metrics are undefined for some of the {n_labels:,} labels: {', '.join(counts)}. "
        "These labels have no positive target or no negative target, or are never predicted. Means "
        "over labels exclude undefined values."
    )
    return markup_element("p", text)


def render_overview_skipped_images(skipped: Sequence[SkippedImage]) -> Markup:
    """Return a collapsed HTML list of the images that could not be read, each with the reason."""
    if not skipped:
        return Markup("")
    items = [
        markup_element("li", markup_element("code", image.path), f" — {image.reason}")
        for image in skipped[:MAX_SKIPPED_IMAGES]
    ]
    n_more = len(skipped) - MAX_SKIPPED_IMAGES
    if n_more > 0:
        items.append(
            markup_element(
                "li", f"and {format_count(n_more, 'more image')}, listed in evaluation.json"
            )
        )
    count = f"{format_count(len(skipped), 'image')} could not be read"
    title = markup_element("summary", f"{count} or evaluated")
    return markup_element("details", title, markup_element("ul", *items), class_="note")


def render_overview_metric_conventions(*, is_calibrated: bool) -> Markup:
    """Return HTML that defines the terms of the table, or explains why metrics are missing.

    Args:
        is_calibrated: True if the scores are calibrated probabilities.
    """
    if not is_calibrated:
        return markup_element("div", UNCALIBRATED, class_="note")
    return markup_element("p", CONVENTIONS, class_="soft")
