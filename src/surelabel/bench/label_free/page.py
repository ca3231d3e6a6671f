"""Write the Markdown and the conclusions of the label-free comparison."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter, itemgetter
from statistics import mean
from typing import Any

from surelabel.bench.label_free.results import LabelFreeResults
from surelabel.bench.label_free.rows import LabelFreeRow
from surelabel.bench.label_free.students import StudentVariant
from surelabel.bench.markdown_page import markdown_list, markdown_table_of_rows
from surelabel.bench.metric_cells import (
    interval_cell,
    metric_mean_cell,
    noise_floor_suffix,
    percent_column,
    percent_text,
)
from surelabel.metrics import ConfidenceInterval

RANKING = (
    "mAP@y is the mean average precision over labels, with its 95 % interval over test images. The "
    "gain is the difference in mAP@y from **{best}**, the row with one encoder pass and the "
    "highest validation mAP. mAP@x is the average precision of the label ranking of each image, "
    "averaged over images. {recall}The value after ± is the standard deviation over seeds, which "
    "change the random crops or the training of the student."
)
RECALL = (
    "The columns *main* and *others* show the recall of the main objects and of all other objects. "
    "For this recall, each image receives as many labels as it has positive targets. "
)
CALIBRATION = (
    "Each recognizer except the linear probe is calibrated on unlabelled images. All recognizers "
    "are evaluated with the targets of the test images. Brackets contain the noise floor of the "
    "ECE. The column *Platt* shows metrics after Platt scaling of the same scores on 100 annotated "
    "images. The values of this column are means over 5 samples of annotated images. The column "
    "*labels* shows the expected and the true number of labels per image. The column *F1* shows "
    "the micro-averaged F1 with the expected number of positive decisions, and with the best "
    "single threshold."
)
COST = (
    "The table shows three costs per image: the number of encoder passes, the number of "
    "floating-point operations, and the processor time."
)
STAGES = (
    "The pseudo-labels of {count:,} training images are evaluated with the targets of these "
    "images. The teacher does not use these targets. An inversion is a negative target with a "
    "higher score than a positive target of the same image or of the same label."
)
VARIANTS = (
    "Students are trained on {count:,} unlabelled images and evaluated on the test images. Values "
    "are means over {seeds} seeds. Differences from the default student are shown with 95 % "
    "intervals over seeds."
)


def _map_cell(row: LabelFreeRow) -> str:
    low, high = map(percent_text, row.interval)
    return f"{metric_mean_cell(row, 'mean_average_precision')} ({low} to {high})"


def _gain_cell(row: LabelFreeRow) -> str:
    if row.gain is None:
        return ""
    gain = ConfidenceInterval(*row.gain)
    return interval_cell(gain.value, gain, format_value=partial(percent_text, spec="+.1f"))


def _ece_cell(row: LabelFreeRow) -> str:
    two_decimals = partial(percent_text, spec=".2f")
    return two_decimals(row.mean("ece")) + noise_floor_suffix(row, "ece", two_decimals)


def _pair_cell(*columns: Callable[[LabelFreeRow], str]) -> Callable[[LabelFreeRow], str]:
    """Return a function that returns the texts of several columns, separated by commas."""
    return lambda row: ", ".join(column(row) for column in columns)


def _mean_cell(metric: str, spec: str, factor: float = 1) -> Callable[[LabelFreeRow], str]:
    """Return a function that returns the mean of a metric over seeds, times a factor."""
    return lambda row: f"{factor * row.mean(metric):{spec}}"


def _inversions_cell(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda stage: f"{stage[key]:,.0f}" if key in stage else ""


def _student_map_cell(variant: StudentVariant) -> str:
    return percent_text(mean(variant.student_map))


def _student_difference_cell(variant: StudentVariant) -> str:
    difference = variant.difference
    if difference is None:
        return ""
    two_decimals = partial(percent_text, spec="+.2f")
    return interval_cell(difference.value, difference, format_value=two_decimals)


RANKING_COLUMNS: dict[str, Callable[[LabelFreeRow], str]] = {
    "": attrgetter("title"),
    "mAP@y (%)": _map_cell,
    "gain (points)": _gain_cell,
    "mAP@x (%)": percent_column("mean_average_precision_per_image"),
}
RECALL_COLUMNS: dict[str, Callable[[LabelFreeRow], str]] = {
    "main (%)": percent_column("recall_of_main"),
    "others (%)": percent_column("recall_of_others"),
}
CALIBRATION_COLUMNS: dict[str, Callable[[LabelFreeRow], str]] = {
    "": attrgetter("title"),
    "Brier skill (%)": percent_column("brier_skill"),
    "ECE (%)": _ece_cell,
    "log loss (nats)": _mean_cell("log_loss", ".4f"),
    "Platt: Brier skill, ECE (%)": _pair_cell(
        percent_column("brier_skill_of_platt"), percent_column("ece_of_platt", ".2f")
    ),
    "labels: expected, true": _pair_cell(
        _mean_cell("expected_labels", ".2f"), _mean_cell("true_labels", ".2f")
    ),
    "F1: expected count, best (%)": _pair_cell(percent_column("f1"), percent_column("best_f1")),
}
COST_COLUMNS: dict[str, Callable[[LabelFreeRow], str]] = {
    "": attrgetter("title"),
    "trained parameters": _mean_cell("parameters", ",.0f"),
    "passes": _mean_cell("passes", ".1f"),
    "GFLOP": _mean_cell("flops", ".2f", 1e-9),
    "milliseconds": _mean_cell("seconds", ".1f", 1000),
}
STAGE_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "teacher": itemgetter("teacher"),
    "stage": itemgetter("stage"),
    "mAP (%)": lambda stage: percent_text(stage["map"], ".2f"),
    "inversions within images": _inversions_cell("within_images"),
    "within labels": _inversions_cell("within_labels"),
}
VARIANT_COLUMNS: dict[str, Callable[[StudentVariant], str]] = {
    "": attrgetter("title"),
    "mAP of the student (%)": _student_map_cell,
    "mAP of the pseudo-labels (%)": lambda variant: percent_text(variant.pseudolabel_map),
    "difference (points)": _student_difference_cell,
}


def label_free_paragraphs(results: LabelFreeResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs about one image collection."""
    plan = results.plan
    yield f"## {results.dataset}"
    yield (
        f"Fitting and calibration use {plan.unlabelled:,} unlabelled images. The evaluation uses "
        f"{plan.test:,} test images with {results.labels} labels."
    )
    yield markdown_list(label_free_conclusions(results))
    has_main = results.has_main_objects
    yield RANKING.format(best=results.best_one_pass, recall=RECALL if has_main else "")
    yield markdown_table_of_rows(
        results.rows, RANKING_COLUMNS | (RECALL_COLUMNS if has_main else {})
    )
    yield CALIBRATION
    yield markdown_table_of_rows(results.rows, CALIBRATION_COLUMNS)
    yield COST
    yield markdown_table_of_rows(results.rows, COST_COLUMNS)
    yield STAGES.format(count=plan.student_images)
    yield markdown_table_of_rows(results.stages, STAGE_COLUMNS)
    yield VARIANTS.format(count=plan.student_images, seeds=plan.student_seeds)
    yield markdown_table_of_rows(results.variants, VARIANT_COLUMNS)


def label_free_conclusions(results: LabelFreeResults) -> Iterator[str]:
    """Iterate over the sentences of the conclusions."""
    metric = "mean_average_precision"
    one_pass, best = results.row(results.best_one_pass), results.best_untrained
    probe = results.row("linear probe, all labels")
    gap = probe.mean(metric) - one_pass.mean(metric)
    closed_share = (best.mean(metric) - one_pass.mean(metric)) / gap
    map_text, main, others = map(percent_column, (metric, "recall_of_main", "recall_of_others"))
    yield (
        f"The highest mAP@y without training is {map_text(best)} % ({best.title}). The mAP@y is "
        f"{map_text(one_pass)} % for {one_pass.title} and {map_text(probe)} % for a linear probe "
        f"trained with all labels. The row {best.title} closes {100 * closed_share:.0f} % of this "
        "gap."
    )
    if results.has_main_objects:
        yield (
            f"If each image receives its true number of labels, the recall of {one_pass.title} is "
            f"{main(one_pass)} % for main objects and {others(one_pass)} % for other objects. The "
            f"recall of {best.title} is {main(best)} % for main objects and {others(best)} % for "
            "other objects."
        )
    default = results.variants[0]
    yield (
        f"The student trained on {results.plan.student_images:,} images has an mAP of "
        f"{_student_map_cell(default)} % on the test images with one encoder pass per image. The "
        f"pseudo-labels of its teacher have an mAP of {percent_text(default.pseudolabel_map)} % on "
        "the test images."
    )
