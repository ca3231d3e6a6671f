"""Summary section: the dataset, headline metrics, the table of all metrics, and notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from surelabel.metrics import POOLED, ConfidenceInterval
from surelabel.records import Array, Flags, SkippedImage
from surelabel.report.markup import Markup, header_cells, html_element, join_markup, table_region
from surelabel.report.metric_descriptions import (
    METRIC_DESCRIPTIONS,
    N_MAIN_METRICS,
    NOT_MEASURED,
    UNDEFINED,
    describe_metric,
    format_value,
    sort_metrics,
)
from surelabel.tables import settings

CONFIDENT = 0.8  # least probability of a confident prediction
MAX_SKIPPED_IMAGES = 50
CONVENTIONS = (
    "A decision is one label of one image. ECE, ACE, MCE, Brier score and log loss are computed "
    "over the decisions of all labels and images. The noise floor is the value of a perfectly "
    "calibrated recognizer with the same probabilities; it is above 0 because the number of "
    f"images is finite. {NOT_MEASURED} means not measured. The 95 % intervals are bootstrap "
    "intervals over images."
)
UNCALIBRATED = (
    "These scores are not calibrated, so they are not probabilities. Ranking metrics are "
    "available; calibration metrics are not. To get them, calibrate on annotated images that are "
    "not evaluated here (surelabel calibrate, or recognizer.calibrate(held_out)), evaluate again "
    "and write the report again."
)


@dataclass(frozen=True)
class MetricColumns:
    """Columns of the metric table, each with a value by metric.

    Attributes:
        summary: Pooled value of each metric.
        class_means: Mean over the labels for which the metric is defined.
        noise_floor: Pooled value of perfectly calibrated probabilities; empty if unknown.
        class_noise_floor: Mean over labels of perfectly calibrated probabilities.
        intervals: 95 % confidence interval of the pooled value, for some metrics.
        before: Pooled value of the evaluation to compare with; None if there is none.
    """

    summary: Mapping[str, float]
    class_means: Mapping[str, float]
    noise_floor: Mapping[str, float]
    class_noise_floor: Mapping[str, float]
    intervals: Mapping[str, ConfidenceInterval] = field(default_factory=dict)
    before: Mapping[str, float] | None = None


def render_dataset_summary(
    targets: Array, known: Flags, *, calibration: str | None, model: str
) -> Markup:
    """Return an HTML paragraph on the dataset, the calibration and the recognizer.

    Args:
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        calibration: Description of the calibration; None without calibration.
        model: Name of the recognizer; may be empty.
    """
    n_images, n_labels = targets.shape
    n_positives = int((targets * known >= 0.5).sum())
    n_unknown = int(known.size - known.sum())
    text = (
        f"{n_images:,} {_plural_noun('image', n_images)} with {n_labels:,} "
        f"{_plural_noun('label', n_labels)}: {int(known.sum()):,} decisions are evaluated, of "
        f"which {n_positives:,} are positive ({n_positives / max(n_images, 1):.1f} per image)."
    )
    text += f" {n_unknown:,} decisions with unknown targets are ignored." * (n_unknown > 0)
    text += f" Calibration: {calibration}." if calibration else ""
    recognizer = [" Recognizer: ", html_element("code", model), "."] if model else []
    return html_element("p", text, *recognizer, class_="soft")


def render_headline_metrics(
    summary: Mapping[str, float],
    noise_floor: Mapping[str, float],
    targets: Array,
    known: Flags,
    probabilities: Array | None,
) -> Markup:
    """Return HTML cards of mAP, Brier skill, ECE and the precision of confident predictions.

    Args:
        summary: Pooled value of each metric; a card is omitted if its metric is missing.
        noise_floor: Pooled value of perfectly calibrated probabilities.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        probabilities: Probabilities in [0, 1], ``(n, c)``; None without calibration.
    """
    cards = []
    if "mean_average_precision" in summary:
        value = format_value(summary["mean_average_precision"], "%")
        cards.append(
            _headline_card(value, "Accuracy: mAP", _describe_mean_average_precision(targets, known))
        )
    if "brier_skill" in summary:
        text = "Reduction of the squared error relative to predicting the prevalence of each label."
        cards.append(_headline_card(format_value(summary["brier_skill"], "%"), "Brier skill", text))
    if "ece" in summary:
        text = "Mean absolute difference between probability and share of positives, in points."
        if "ece" in noise_floor:
            text += f" Noise floor: {format_value(noise_floor['ece'], 'points')}."
        cards.append(
            _headline_card(format_value(summary["ece"], "points"), "Calibration: ECE", text)
        )
    if probabilities is not None:
        cards.append(_confident_predictions_card(probabilities, targets, known))
    return html_element("div", *cards, class_="cards")


def _describe_mean_average_precision(targets: Array, known: Flags) -> str:
    text = "Mean over labels of the average precision of ranking all images."
    n_positives = (targets * known).sum(axis=0)
    has_positives = n_positives > 0  # labels with an average precision
    if not has_positives.any():
        return text
    random = 100 * (n_positives[has_positives] / known.sum(axis=0)[has_positives]).mean()
    return f"{text} A random ranking reaches about {random:.1f} %."


def _confident_predictions_card(probabilities: Array, targets: Array, known: Flags) -> Markup:
    title = "Confident predictions"
    is_confident = (probabilities >= CONFIDENT) & known
    count = int(is_confident.sum())
    if not count:
        text = f"No probability is {100 * CONFIDENT:.0f} % or more."
        return _headline_card(NOT_MEASURED, title, text)
    precision, mean = targets[is_confident].mean(), probabilities[is_confident].mean()
    text = (
        f"Share of correct labels among the {count:,} predictions with {100 * CONFIDENT:.0f} % or "
        f"more. Their mean probability is {100 * mean:.1f} %."
    )
    return _headline_card(f"{100 * precision:.1f} %", title, text)


def _headline_card(value: str, title: str, text: str) -> Markup:
    number = html_element("div", value, class_="big")
    return html_element(
        "div", html_element("div", title), number, html_element("p", text), class_="card soft"
    )


def render_metric_table(columns: MetricColumns) -> Markup:
    """Return an HTML table of all metrics; the less common metrics are folded."""
    metrics = sort_metrics(columns.summary)
    main_metrics = list(METRIC_DESCRIPTIONS)[:N_MAIN_METRICS]
    main = [m for m in metrics if m in main_metrics or m not in METRIC_DESCRIPTIONS]
    more = [m for m in metrics if m not in main]
    if not more:
        return _metric_table_region(main, columns)
    title = html_element("summary", f"{len(more)} more {_plural_noun('metric', len(more))}")
    folded = html_element("details", title, _metric_table_region(more, columns), class_="more")
    return join_markup(_metric_table_region(main, columns), folded)


def _metric_table_region(metrics: Sequence[str], columns: MetricColumns) -> Markup:
    before = [] if columns.before is None else ["before"]
    noise_floor = ["noise floor"] * bool(columns.noise_floor)
    value = "value, 95 % interval" if columns.intervals else "value"
    titles = ["metric", value, *before, *noise_floor, "mean over labels", *noise_floor]
    rows = [_metric_table_row(metric, columns) for metric in metrics]
    return table_region("Metrics", header_cells(titles), rows)


def _metric_table_row(metric: str, columns: MetricColumns) -> Markup:
    description = describe_metric(metric)
    metric_settings = settings(POOLED[metric]) if metric in POOLED else {}
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
    bounds = [_confidence_interval_bounds(interval, description.unit)] if interval else []
    return html_element(
        "tr",
        html_element(
            "th",
            description.title,
            html_element("span", " " + ", ".join(qualifiers)),
            html_element("div", description.text + better),
            scope="row",
            class_="metric",
        ),
        html_element("td", format_value(columns.summary[metric], description.unit), *bounds),
        *(html_element("td", format_value(value, description.unit)) for value in optional),
    )


def _confidence_interval_bounds(interval: ConfidenceInterval, unit: str) -> Markup:
    low, high = format_value(interval.low, unit), format_value(interval.high, unit)
    text = UNDEFINED if isnan(interval.low) else f"{low.removesuffix(' %')} to {high}"
    return html_element("div", text, class_="interval")


def render_undefined_labels(undefined_classes: Mapping[str, int], n_labels: int) -> Markup:
    """Return an HTML note on the number of labels for which each metric is undefined.

    Args:
        undefined_classes: Metric → number of labels for which it is undefined.
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
        "Such a label has no known positive or no known negative image, or is never among the "
        "first k labels or above the threshold. Means over labels omit it."
    )
    return html_element("p", text)


def render_skipped_images(skipped: Sequence[SkippedImage]) -> Markup:
    """Return a folded HTML list of the images that could not be read, with the reason."""
    if not skipped:
        return Markup("")
    items = [
        html_element("li", html_element("code", image.path), f" — {image.reason}")
        for image in skipped[:MAX_SKIPPED_IMAGES]
    ]
    n_more = len(skipped) - MAX_SKIPPED_IMAGES
    if n_more > 0:
        items.append(html_element("li", f"and {n_more:,} more, see evaluation.json"))
    count = f"{len(skipped):,} {_plural_noun('image', len(skipped))} could not be read"
    title = html_element("summary", f"{count} and are not evaluated")
    return html_element("details", title, html_element("ul", *items), class_="note")


def render_metric_conventions(*, is_calibrated: bool) -> Markup:
    """Return HTML that defines the terms of the table, or explains why metrics are missing.

    Args:
        is_calibrated: True if there are probabilities.
    """
    if not is_calibrated:
        return html_element("div", UNCALIBRATED, class_="note")
    return html_element("p", CONVENTIONS, class_="soft")


def _plural_noun(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"
