"""Render a table that compares a recognizer with its zero-shot baseline and the targets."""

from collections.abc import Mapping

from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.records import Predictions
from surelabel.report.baseline_comparison import (
    BASELINE,
    GROUND_TRUTH,
    RECOGNIZER,
    ThresholdedLabels,
    baseline_comparison_pairs_per_image,
)
from surelabel.report.metric_descriptions import (
    NOT_MEASURED,
    describe_metric,
    format_described_metric_value,
)

BASELINE_NOTE = (
    "The zero-shot baseline scores the same labels with the encoder, without adaptation and with "
    "one view of each image."
)
COUNTS_NOTE = (
    "The expected number of labels is the sum of all probabilities. A label is predicted if its "
    "probability reaches a threshold. The threshold is set without targets, so that the number of "
    "predicted labels is closest to the expected number. Any two labels of one image form a pair. "
    "Decisions with unknown targets are not counted."
)
UNCALIBRATED_NOTE = (
    "These scores are not calibrated. Uncalibrated scores have no threshold, so predicted labels "
    "cannot be counted. To count labels, calibrate the recognizer with surelabel calibrate, or "
    "without annotations with surelabel calibrate --unlabelled. Then evaluate again and write the "
    "report again."
)
UNCALIBRATED_BASELINE_NOTE = (
    "The baseline is not calibrated, so its predicted labels are not counted."
)


def describe_zero_shot_baseline_in_report(sources: Mapping[str, Predictions]) -> Markup:
    """Return an HTML note that describes the baseline, its label counts and missing values.

    Args:
        sources: Mapping from source (recognizer or baseline) to predictions.
    """
    baseline = sources.get(BASELINE)
    sentences = [] if baseline is None else [BASELINE_NOTE]
    if sources[RECOGNIZER].calibration is None:
        note = markup_element("div", UNCALIBRATED_NOTE, class_="note")
        return join_markup(*_zero_shot_baseline_note_paragraph(sentences), note)
    if baseline is not None and baseline.calibration is None:
        sentences.append(UNCALIBRATED_BASELINE_NOTE)
    elif baseline is not None:
        sentences.append(f"Calibration of the baseline: {baseline.calibration}.")
    return join_markup(*_zero_shot_baseline_note_paragraph([*sentences, COUNTS_NOTE]))


def _zero_shot_baseline_note_paragraph(sentences: list[str]) -> list[Markup]:
    return [markup_element("p", " ".join(sentences), class_="soft")] if sentences else []


def zero_shot_baseline_report_table(
    sources: Mapping[str, Predictions],
    ranking_metrics: Mapping[str, Mapping[str, float]],
    labels_by_source: Mapping[str, ThresholdedLabels],
) -> Markup:
    """Return an HTML table that compares the recognizer with the zero-shot baseline.

    The rows are ranking metrics, numbers of labels, precision and co-occurrence. Without a
    baseline, the ranking metrics are left out.

    Args:
        sources: Mapping from source (recognizer or baseline) to predictions.
        ranking_metrics: Mapping from metric to a mapping from source to metric value.
        labels_by_source: Mapping from source (recognizer or baseline) to predicted labels.
    """
    rows: list[tuple[str, dict[str, str]]] = []
    if BASELINE in sources:
        for metric, values in ranking_metrics.items():
            cells = {
                source: format_described_metric_value(value, "%")
                for source, value in values.items()
            }
            rows.append((describe_metric(metric).title, cells))
    rows += _zero_shot_baseline_report_table_rows(labels_by_source)
    columns = [*sources, *[GROUND_TRUTH] * bool(labels_by_source)]
    body = [
        markup_element(
            "tr",
            markup_element("th", title, scope="row", class_="metric"),
            *(markup_element("td", cells.get(column, NOT_MEASURED)) for column in columns),
        )
        for title, cells in rows
    ]
    return markup_table_region("Zero-shot baseline", markup_header_cells(["", *columns]), body)


def _zero_shot_baseline_report_table_rows(
    labels_by_source: Mapping[str, ThresholdedLabels],
) -> list[tuple[str, dict[str, str]]]:
    """Return table rows with the numbers of labels and of label pairs per image."""
    if not labels_by_source:
        return []
    annotated = labels_by_source[RECOGNIZER]
    sources = labels_by_source.items()
    expected = {source: f"{labels.counts.means['expected']:.2f}" for source, labels in sources}
    expected[GROUND_TRUTH] = f"{annotated.counts.means['positive']:.2f}"
    above_half = {source: f"{labels.labels_above_half:.2f}" for source, labels in sources}
    precision = {
        source: format_described_metric_value(labels.precision, "%") for source, labels in sources
    }
    rows = [
        ("labels per image, expected", expected),
        ("labels per image, with a probability of 50 % or more", above_half),
        ("precision of the predicted labels", precision),
    ]
    positive = annotated.cooccurrence.positive
    if positive is None or len(positive) < 2:
        return rows
    pairs = {
        source: f"{baseline_comparison_pairs_per_image(labels.cooccurrence.predicted):.2f}"
        for source, labels in sources
    }
    pairs[GROUND_TRUTH] = f"{baseline_comparison_pairs_per_image(positive):.2f}"
    errors = {
        source: format_described_metric_value(
            labels.cooccurrence.mean_absolute_difference, "points"
        )
        for source, labels in sources
    }
    return [
        *rows,
        ("label pairs per image, predicted", pairs),
        ("mean absolute error of the fraction of images with a pair, in points", errors),
    ]
