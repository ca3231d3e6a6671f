"""Write the Markdown and the conclusions of the supervised comparison."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isinf, isnan

from surelabel.bench.markdown_page import (
    bold_if,
    markdown_list,
    markdown_table,
    markdown_table_of_rows,
)
from surelabel.bench.metric_cells import (
    interval_cell,
    metric_column_value,
    noise_floor_suffix,
    percent_column,
    percent_text,
)
from surelabel.bench.rows import RowDifference, intervals_exclude_zero
from surelabel.bench.supervised.label_demand import LabelDemand
from surelabel.bench.supervised.metrics import COMPARED_METRICS, MAP
from surelabel.bench.supervised.plan import CALIBRATOR, LABEL_FREE_METHODS, MAP_LEVELS
from surelabel.bench.supervised.results import (
    SupervisedDifference,
    SupervisedResults,
    SupervisedRow,
)
from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import describe_metric

CONCLUSION_METRICS = {MAP: "mAP", "brier_skill": "Brier skill", "log_loss": "log loss"}
BETTER = {MAP: "higher", "brier_skill": "higher", "log_loss": "lower"}
NOT_SIGNIFICANT = "not significant"
ROWS = (
    "The table shows means over seeds, with 95 % intervals over seeds in parentheses. mAP is the "
    "mean average precision over labels. The noise floor of the ECE, in brackets, is the expected "
    "ECE of a perfectly calibrated model with the same probabilities. Passes are encoder passes "
    "per image. Seconds are the processor time of the fit, the folds and the calibration, without "
    "the time to encode images."
)
DIFFERENCES = (
    "The table shows differences between methods with the same labelled images. The parentheses "
    "contain two 95 % intervals, over seeds and over test images. With one seed, there is no "
    "interval over seeds. A difference is **bold** if all its intervals exclude 0. The best "
    "label-free method is the label-free method with the highest mAP on the test images."
)
DEMAND = (
    "The table shows the number of labelled images at which the mean mAP first reaches a value. "
    "Between measured numbers of images, the mean mAP is interpolated linearly in the logarithm of "
    "the number. The parentheses contain the numbers at which the upper and the lower end of the "
    "interval over seeds reach the value. The entry ≤ {least:,} means that the smallest measured "
    "number reaches the value. The entry – means that no measured number reaches the value."
)


def supervised_paragraphs(results: SupervisedResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs about one encoder."""
    yield f"## {results.dataset}"
    yield " ".join(supervised_setup(results))
    yield markdown_list(supervised_conclusions(results))
    yield ROWS
    yield markdown_table_of_rows(results.rows, _row_columns())
    yield DIFFERENCES
    yield markdown_table_of_rows(results.differences, _difference_columns())
    yield DEMAND.format(least=results.plan.image_counts[0])
    yield _demand_table(results)


def supervised_setup(results: SupervisedResults) -> Iterator[str]:
    """Iterate over the sentences about images, seeds and calibration."""
    plan, (n_train, n_test) = results.plan, results.images
    yield (
        f"Labelled images are sampled from {n_train:,} training images. The {n_test:,} test images "
        f"with {results.labels} labels are used only for the evaluation. A recognizer is fitted "
        "and calibrated on the same labelled images, and no other annotations are used. The "
        f"calibrator `{CALIBRATOR}` is fitted on out-of-fold scores of {plan.folds} folds."
    )
    if label_free := [method for method in LABEL_FREE_METHODS if method in plan.methods]:
        yield (
            f"Label-free methods ({', '.join(label_free)}) are not fitted on the labelled images, "
            "only calibrated."
        )
    if results.left_out:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in results.left_out.items())
        yield f"The encoder does not support the following methods: {reasons}."
    if "region_statistics" in plan.methods:
        yield (f"region_statistics is fitted on {plan.unlabelled:,} unlabelled training images.")
    yield f"The {plan.seeds} seeds determine the sampled images and the initialization."
    if plan.image_counts[-1] >= plan.few_seeds_from:
        yield (
            f"With {plan.few_seeds_from:,} or more images, ml_decoder is fitted with only "
            f"{plan.few_seeds} {'seed' if plan.few_seeds == 1 else 'seeds'}, because each fit is "
            "slow."
        )
    if n_train in plan.image_counts:
        yield (
            f"All samples of {n_train:,} images contain the same images, so the seed changes only "
            "the fit."
        )
    if any(plan.image_counts_of_method(name) != plan.image_counts for name in plan.methods):
        yield (
            f"Methods that use patch features are measured with at most {plan.max_patch_images:,} "
            "labelled images."
        )


def supervised_conclusions(results: SupervisedResults) -> Iterator[str]:
    """Iterate over the sentences of the conclusions."""
    comparisons: dict[tuple[str, str], list[SupervisedDifference]] = {}
    for difference in results.differences:
        reference = _conclusion_reference(difference)
        comparisons.setdefault((difference.method, reference), []).append(difference)
    for (method, reference), differences in comparisons.items():
        yield from _comparison_sentences(method, reference, differences)
    for method in dict.fromkeys(difference.method for difference in results.differences):
        yield _value_sentences(results.rows_of_method(method))


def _comparison_sentences(
    method: str, reference: str, differences: list[SupervisedDifference]
) -> Iterator[str]:
    """Iterate over sentences on the differences of a method from another method."""
    all_counts = [difference.n_images for difference in differences]
    counts = {metric: _counts_by_relation(differences, metric) for metric in BETTER}
    if all(counts[metric] == {better: all_counts} for metric, better in BETTER.items()):
        yield (
            f"With {_joined(all_counts)} images, {method} has a higher mAP, a higher Brier skill "
            f"and a lower log loss than {reference}. All 95 % intervals of these three "
            "differences exclude 0."
        )
        return
    for metric, title in CONCLUSION_METRICS.items():
        parts = [
            f"{relation} with {_joined(of_relation)} images"
            for relation, of_relation in counts[metric].items()
            if relation != NOT_SIGNIFICANT
        ]
        if parts:
            yield (
                f"The {title} of {method}, compared with that of {reference}, is "
                f"{' and '.join(parts)}."
            )
        if NOT_SIGNIFICANT in counts[metric]:
            yield (
                f"With {_joined(counts[metric][NOT_SIGNIFICANT])} images, the {title} of {method} "
                f"does not differ significantly from that of {reference}."
            )


def _value_sentences(rows: list[SupervisedRow]) -> str:
    """Return one sentence with the mAP and one with the Brier skill of a method."""
    counts = _joined(row.n_images for row in rows)
    return " ".join(
        f"The {CONCLUSION_METRICS[metric]} of {rows[0].method} is "
        f"{_joined(map(percent_column(metric), rows))} % with {counts} images."
        for metric in (MAP, "brier_skill")
    )


def _conclusion_reference(difference: SupervisedDifference) -> str:
    return "the best label-free method" if difference.is_best_label_free else difference.reference


def _counts_by_relation(
    differences: list[SupervisedDifference], metric: str
) -> dict[str, list[int]]:
    """Return the numbers of labelled images by ``higher``, ``lower`` or ``not significant``."""
    counts: dict[str, list[int]] = {}
    for difference in differences:
        of_metric = difference.metrics[metric]
        relation = "higher" if of_metric.value > 0 else "lower"
        is_significant = intervals_exclude_zero(*_defined_intervals(of_metric))
        relation = relation if is_significant else NOT_SIGNIFICANT
        counts.setdefault(relation, []).append(difference.n_images)
    return counts


def _joined(values: Iterable[int | str]) -> str:
    """Return values as text, with a comma or "and" between them."""
    *first, last = (value if isinstance(value, str) else f"{value:,}" for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def _row_columns() -> dict[str, Callable[[SupervisedRow], str]]:
    return {
        "images": lambda row: f"{row.n_images:,}",
        "method": lambda row: row.method,
        "mAP (%)": partial(_seed_interval_cell, metric=MAP),
        "Brier skill (%)": partial(_seed_interval_cell, metric="brier_skill"),
        "log loss (nats)": lambda row: f"{row.mean('log_loss'):.4f}",
        "ECE (%)": _ece_cell,
        "passes": lambda row: f"{row.mean('passes'):.0f}",
        "seconds": lambda row: f"{row.mean('seconds'):.1f}",
    }


def _seed_interval_cell(row: SupervisedRow, metric: str) -> str:
    interval = row.interval(metric)
    if isnan(interval.low):
        return percent_text(interval.value)
    return interval_cell(interval.value, interval)


def _ece_cell(row: SupervisedRow) -> str:
    two_decimals = partial(percent_text, spec=".2f")
    return two_decimals(row.mean("ece")) + noise_floor_suffix(row, "ece", two_decimals)


def _difference_columns() -> dict[str, Callable[[SupervisedDifference], str]]:
    columns: dict[str, Callable[[SupervisedDifference], str]] = {
        "images": lambda difference: f"{difference.n_images:,}",
        "method": lambda difference: difference.method,
        "minus": lambda difference: (
            difference.reference + (" (best label-free)" if difference.is_best_label_free else "")
        ),
    }
    for metric in COMPARED_METRICS:
        unit = describe_metric(metric).unit.replace("%", "points")
        columns[f"{describe_metric(metric).title} ({unit})"] = partial(
            _difference_cell, metric=metric
        )
    return columns


def _difference_cell(difference: SupervisedDifference, metric: str) -> str:
    of_metric = difference.metrics[metric]
    intervals = _defined_intervals(of_metric)
    text = interval_cell(
        of_metric.value, *intervals, format_value=partial(metric_column_value, metric=metric)
    )
    return bold_if(intervals_exclude_zero(*intervals), text)


def _defined_intervals(difference: RowDifference) -> list[ConfidenceInterval]:
    """Return the intervals over seeds and over images, or only over images for one seed."""
    intervals = (difference.over_seeds, difference.over_images)
    return [interval for interval in intervals if not isnan(interval.low)]


def _demand_table(results: SupervisedResults) -> str:
    least = results.plan.image_counts[0]
    lines = [
        [method, *(_demand_cell(demand, least) for demand in demands)]
        for method, demands in results.demands.items()
    ]
    return markdown_table(["mAP (%)", *(f"{100 * level:.0f}" for level in MAP_LEVELS)], lines)


def _demand_cell(demand: LabelDemand, least: int) -> str:
    text = _demand_text(demand.count, least)
    bounds = [_demand_text(count, least) for count in (demand.low, demand.high)]
    return text if set(bounds) == {text} else f"{text} ({bounds[0]} to {bounds[1]})"


def _demand_text(count: float, least: int) -> str:
    if isinf(count):
        return "–"
    return f"≤ {least:,}" if count == least else f"{count:,.0f}"
