"""Generate the conclusions of the calibration comparison as sentences from the results."""

from collections.abc import Iterator

from surelabel.bench.calibrated.heads import HEADS, LEARNING_RATES
from surelabel.bench.calibrated.published import COLUMNS, PUBLISHED
from surelabel.bench.calibrated.results import CalibrationResults
from surelabel.bench.calibrated.rows import RowComparison
from surelabel.bench.metric_cells import metric_column_value
from surelabel.bench.rows import intervals_exclude_zero
from surelabel.report.metric_descriptions import describe_metric, format_described_metric_with_unit

# Target for SPA: lowest ratio of the ACE of ASY to the ACE of SPA, largest difference in mAP.
TARGET_FACTOR, TARGET_POINT = 2.5, 0.01
REPORTED_DIFFERENCES = (
    ("SPA", "ASY + detached map"),
    ("SPA", "focal + map"),
    ("SPA", "BCE"),
    ("SPA", "TWL + Platt"),
    ("SPA + LPR", "SPA"),
    ("SPA + Platt", "SPA"),
    ("SPA + Platt", "ASY + Platt"),
)
REPORTED_METRICS = {"log_loss": "log loss", "ace": "ACE"}  # names in sentences


def calibration_conclusions(results: CalibrationResults) -> Iterator[str]:
    """Iterate over the conclusions, the first of which states whether SPA reaches its target."""
    yield _calibrated_target_conclusion(results)
    yield _calibrated_best_rows_conclusion(results)
    for first, second in REPORTED_DIFFERENCES:
        yield _calibrated_difference_conclusion(results.comparison(first, second))
    yield _calibrated_sign_conclusion(results)
    weight = results.row("SPA + LPR").settings["regularizer_weight"]
    yield (
        "For SPA, the weight of label-pair regularization with the lowest validation log loss is "
        f"{weight:g}."
    )
    yield from _calibrated_learning_rate_conclusions(results)
    if results.retrieval:
        yield _calibrated_retrieval_conclusion(results)


def _calibrated_target_conclusion(results: CalibrationResults) -> str:
    spa, asy = results.row("SPA"), results.row("ASY")
    spa_ace, asy_ace = spa.mean("ace"), asy.mean("ace")
    map_gain = spa.mean("mean_average_precision") - asy.mean("mean_average_precision")
    is_reached = asy_ace >= TARGET_FACTOR * spa_ace and abs(map_gain) <= TARGET_POINT
    return (
        f"The ACE of ASY with a sigmoid is {asy_ace / spa_ace:.1f} times the ACE of SPA "
        f"({metric_column_value(asy_ace, 'ace')} and {metric_column_value(spa_ace, 'ace')} "
        f"points). The mAP@y of SPA is {abs(100 * map_gain):.1f} points "
        f"{'higher' if map_gain >= 0 else 'lower'} than the mAP@y of ASY. "
        f"The target is an ACE ratio of at least {TARGET_FACTOR:g} and an mAP@y difference of at "
        f"most one point. The target is {'reached' if is_reached else 'not reached'}."
    )


def _calibrated_best_rows_conclusion(results: CalibrationResults) -> str:
    by_log_loss = min(results.rows, key=lambda row: row.mean("log_loss"))
    by_ace = min(results.rows, key=lambda row: row.mean("ace"))
    noise_floor = metric_column_value(by_ace.mean("ace_noise_floor"), "ace")
    log_loss = metric_column_value(by_log_loss.mean("log_loss"), "log_loss")
    return (
        f"{by_log_loss.title} has the lowest log loss of all rows ({log_loss} nats), and "
        f"{by_ace.title} has the lowest ACE "
        f"({metric_column_value(by_ace.mean('ace'), 'ace')} points, noise floor {noise_floor})."
    )


def _calibrated_difference_conclusion(comparison: RowComparison) -> str:
    return " ".join(_calibrated_metric_sentence(comparison, metric) for metric in REPORTED_METRICS)


def _calibrated_metric_sentence(comparison: RowComparison, metric: str) -> str:
    """Return a sentence on the difference of both rows in a metric."""
    over_seeds, over_images = comparison.over_seeds[metric], comparison.over_images[metric]
    first, second = (
        f"the {REPORTED_METRICS[metric]} of {title}"
        for title in (comparison.first, comparison.second)
    )
    value = over_seeds.value
    are_significant = [intervals_exclude_zero(i) for i in (over_seeds, over_images)]
    if value * over_images.value <= 0 or not any(are_significant):
        return f"T{first[1:]} does not differ significantly from {second}."
    amount = format_described_metric_with_unit(abs(value), describe_metric(metric).unit)
    which = (
        "both intervals exclude 0"
        if all(are_significant)
        else "only one of the two intervals excludes 0"
    )
    relation = "higher" if value > 0 else "lower"
    return f"T{first[1:]} is {amount} {relation} than {second} ({which})."


def _calibrated_sign_conclusion(results: CalibrationResults) -> str:
    """Return a sentence with the differences in ACE whose sign is opposite in the SPA paper."""
    column, contradictions = COLUMNS.index("ACE"), []
    for comparison in results.comparisons:
        first, second = comparison.first, comparison.second
        published = [
            rows[first][column] - rows[second][column]
            for rows in PUBLISHED.values()
            if first in rows and second in rows
        ]
        interval = comparison.over_seeds["ace"]
        if (
            published
            and intervals_exclude_zero(interval)
            and all(interval.value * difference < 0 for difference in published)
        ):
            contradictions.append(
                f"{first} − {second} (published {min(published):+.1f} to {max(published):+.1f}, "
                f"measured {100 * interval.value:+.1f})"
            )
    if contradictions:
        return (
            "The following differences in ACE have the opposite sign in the SPA paper: "
            f"{', '.join(contradictions)}."
        )
    return "No significant difference in ACE has the opposite sign in the SPA paper."


def _calibrated_learning_rate_conclusions(results: CalibrationResults) -> Iterator[str]:
    """Yield a sentence that lists the heads with the largest learning rate, if there are any."""
    rates = {row.head: row.settings["learning_rate"] for row in results.rows}
    heads = [HEADS[key].title for key, rate in rates.items() if rate >= max(LEARNING_RATES)]
    if heads:
        yield (
            f"The largest learning rate of the grid was selected for {', '.join(heads)}. A larger "
            "learning rate might be better for these heads."
        )


def _calibrated_retrieval_conclusion(results: CalibrationResults) -> str:
    spa, asy = results.retrieval["SPA"], results.retrieval["ASY"]
    differences = [
        f"{100 * (spa_map - asy_map):+.2f} points for query length {length}"
        for length, spa_map, asy_map in zip(spa["length"], spa["map"], asy["map"], strict=True)
    ]
    return (
        "The retrieval mAP of SPA minus the retrieval mAP of ASY (with a sigmoid) is "
        f"{', '.join(differences)}."
    )
