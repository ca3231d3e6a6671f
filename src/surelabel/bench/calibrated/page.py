"""Write the Markdown of the calibration comparison."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from surelabel.bench.calibrated.conclusions import calibration_conclusions
from surelabel.bench.calibrated.heads import HEADS
from surelabel.bench.calibrated.plan import TABLE_METRICS
from surelabel.bench.calibrated.published import COLUMNS, PUBLISHED
from surelabel.bench.calibrated.results import CalibrationResults
from surelabel.bench.calibrated.rows import CalibrationRow, RowComparison
from surelabel.bench.markdown_page import (
    bold_if,
    markdown_list,
    markdown_section,
    markdown_table,
    markdown_table_of_rows,
)
from surelabel.bench.metric_cells import (
    interval_cell,
    metric_column_title,
    metric_column_value,
    metric_mean_cell,
    percent_text,
)
from surelabel.bench.rows import intervals_exclude_zero
from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import describe_metric

DIFFERENCE_METRICS = ("brier_skill", "log_loss", "mean_average_precision", "ace", "ece")
ROWS = (
    "Each value is the mean ± standard deviation over fits. The noise floor in brackets is the "
    "expected metric value of a perfectly calibrated model with the same probabilities. Rows in "
    "**bold** have an mAP@y within one point of the highest mAP@y. Ranking metrics use the raw "
    "scores. In row titles, *map* means the link of the loss, which converts scores to log-odds. "
    "The settings of a head with a map were selected with the map, not with the plain sigmoid."
)
SELECTED_SETTINGS = (
    "The table shows the candidate settings with the lowest validation log loss for each head. All "
    "heads have the same number of candidate settings. With label-pair regularization (LPR), the "
    "first candidates combine each weight λ with the settings selected without LPR. The remaining "
    "candidates are sampled from the grid."
)
COMPARISONS = (
    "The table shows differences between pairs of rows, with 95 % intervals. The value before the "
    "slash is the mean difference over fits, with a paired t interval. The value after the slash "
    "is the difference of the first fit, with a paired bootstrap interval over test images. "
    "**Bold**: the interval excludes 0. The fits share most of their training images, so the "
    "interval before the slash shows the variation between repeated fits, not between independent "
    "training sets. Because the table contains many differences, some intervals are expected to "
    "exclude 0 by chance."
)
SENSITIVITY = (
    "The table shows metrics of SPA with one setting changed, for the first fit. The other "
    "settings of the loss keep the values of the SPA paper (zeta_neg 5, k_neg 3, b_neg 1). The "
    "learning rate and the weight decay were selected with the settings of the paper. The last "
    "rows add label-pair regularization, one row for each weight."
)
RETRIEVAL = (
    "The table shows the mean average precision (mAP) of the first fit for queries with wanted and "
    "unwanted labels, by number of labels. All queries of up to {exact} labels are evaluated. "
    "Longer queries are sampled for each combination of the numbers of wanted and unwanted labels. "
    "The value after ± is the standard error of the mean over sampled queries. The standard error "
    "does not include the variation between test sets. Log-odds have a lower limit of -40, and "
    "images at this limit are sorted by the raw score."
)


def calibration_paragraphs(results: CalibrationResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs about one dataset."""
    train, validation, test = results.images
    plan = results.plan
    yield f"## {results.dataset}"
    yield (
        f"Linear heads for {results.labels} labels are fitted on the frozen features of {train:,} "
        f"training images. Settings are selected, and calibrators are fitted, on {validation:,} "
        f"validation images. All metrics are computed on {test:,} test images. Each head has "
        f"{plan.settings_per_head} candidate settings, of which one is selected by validation log "
        f"loss. Each head is fitted {plan.seeds} times, each time on a different random sample "
        "of 80 % of the training images. Calibration errors are computed with 15 bins of equal "
        "width, over the pooled predictions for all labels."
    )
    yield markdown_list(calibration_conclusions(results))
    yield ROWS
    yield calibrated_metrics_table(results)
    yield COMPARISONS
    yield calibrated_comparisons_table(results.comparisons)
    yield RETRIEVAL.format(exact=next(iter(results.retrieval.values()))["max_exact_length"])
    yield calibrated_retrieval_table(results)
    yield SENSITIVITY
    yield calibrated_sensitivity_table(results)
    yield SELECTED_SETTINGS
    yield calibrated_settings_table(results)


def calibrated_metrics_table(results: CalibrationResults) -> str:
    """Return a table of mean ± standard deviation over fits, with noise floors in brackets."""
    near_best = results.near_best
    columns: dict[str, Callable[[CalibrationRow], str]] = {
        "": lambda row: bold_if(row.title in near_best, row.title)
    }
    for metric in TABLE_METRICS:
        value_text = partial(metric_column_value, metric=metric)
        columns[_calibrated_table_title(metric)] = partial(
            metric_mean_cell, metric=metric, format_value=value_text
        )
    return markdown_table_of_rows(results.rows, columns)


def calibrated_settings_table(results: CalibrationResults) -> str:
    """Return a table of the settings selected on validation for each head."""
    lines = []
    for key, head in HEADS.items():
        settings = next(row.settings for row in results.rows if row.head == key)
        pair_weight = settings.get("regularizer_weight")
        values = (settings["learning_rate"], settings["weight_decay"], pair_weight)
        lines.append([head.title, *("" if value is None else f"{value:g}" for value in values)])
    return markdown_table(["", "Learning rate", "Weight decay", "λ of LPR"], lines)


def calibrated_comparisons_table(comparisons: Sequence[RowComparison]) -> str:
    """Return a table of differences with intervals over fits and, if present, over test images."""
    columns: dict[str, Callable[[RowComparison], str]] = {
        "": lambda comparison: f"{comparison.first} − {comparison.second}"
    }
    for metric in DIFFERENCE_METRICS:
        title = _calibrated_table_title(metric).replace("%", "points")
        columns[title] = partial(_calibrated_comparison_cell, metric=metric)
    return markdown_table_of_rows(comparisons, columns)


def calibrated_sensitivity_table(results: CalibrationResults) -> str:
    """Return a table of metrics, one row for each changed setting of SPA."""
    metrics = [name for name in results.sensitivity[0] if name not in ("setting", "value")]
    lines = [
        [
            f"{entry['setting']} = {entry['value']:g}",
            *(metric_column_value(entry[metric], metric) for metric in metrics),
        ]
        for entry in results.sensitivity
    ]
    return markdown_table(["", *(_calibrated_table_title(metric) for metric in metrics)], lines)


def calibrated_retrieval_table(results: CalibrationResults) -> str:
    """Return a table of retrieval mAP by query length, with standard errors of sampled queries."""
    first_curve = next(iter(results.retrieval.values()))
    lines = [
        [title, *map(_calibrated_table_mean_with_error, curve["map"], curve["standard_error"])]
        for title, curve in results.retrieval.items()
    ]
    lines.append(["queries evaluated", *(f"{n:,}" for n in first_curve["evaluated"])])
    lines.append(
        ["queries without a relevant image (excluded)"]
        + [f"{n:,}" for n in first_curve["unfulfilled"]]
    )
    header = ["mAP (%) of queries of length", *map(str, first_curve["length"])]
    return markdown_table(header, lines)


def calibrated_tables_as_published() -> str:
    """Return the published tables of the SPA paper as Markdown."""
    sections = []
    for title, rows in PUBLISHED.items():
        lines = [[name, *(f"{value:.1f}" for value in values)] for name, values in rows.items()]
        table = markdown_table(["", *COLUMNS], lines)
        sections.append(f"### Published: {title}\n\n{table}")
    return markdown_section(sections)


def _calibrated_table_title(metric: str) -> str:
    return f"{metric_column_title(metric)} ({describe_metric(metric).unit})"


def _calibrated_comparison_cell(comparison: RowComparison, metric: str) -> str:
    intervals = (comparison.over_seeds.get(metric), comparison.over_images.get(metric))
    return " / ".join(_calibrated_table_interval(i, metric) for i in intervals if i)


def _calibrated_table_interval(interval: ConfidenceInterval, metric: str) -> str:
    value_text = partial(metric_column_value, metric=metric)
    text = interval_cell(interval.value, interval, format_value=value_text)
    return bold_if(intervals_exclude_zero(interval), text)


def _calibrated_table_mean_with_error(mean: float, error: float) -> str:
    text = percent_text(mean, ".2f")
    return f"{text} ± {percent_text(error, '.2f')}" if error > 0 else text
