"""Markdown, conclusions and JSON of the label-free comparison."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from statistics import stdev
from typing import Any

from surelabel.bench.label_free.results import LabelFreeResults
from surelabel.bench.label_free.rows import LabelFreeRow
from surelabel.bench.label_free.students import StudentVariant
from surelabel.bench.markdown_tables import markdown_table

RANKING = (
    "mAP@y is the mean average precision over labels, with the 95 % interval over test images. "
    "The gain is the difference from **{best}**, the row with one encoder pass and the highest "
    "validation mAP. mAP@x is the mean over images of the average precision of labels. Main and "
    "others are the recall of the main objects and of all other objects, if each image receives as "
    "many labels as it has positive targets. ± is the standard deviation over seeds, which change "
    "the random crops or the training of the student."
)
CALIBRATION = (
    "Calibration without labels: each recognizer except the linear probe is calibrated on "
    "unlabelled images; all are evaluated with the targets of the test images. Brackets have the "
    "noise floor of the ECE. Platt: Platt scaling of the same scores on 100 annotated images, mean "
    "over 5 samples of images. Labels: expected and true number of labels per image. F1: "
    "micro-averaged F1 if the expected number of labels is predicted, and with the best single "
    "threshold."
)
COST = (
    "Cost per image: number of encoder passes, floating-point operations, and processor time on "
    "one core."
)
STAGES = (
    "Pseudo-labels of {count:,} training images are evaluated with the targets of these images, "
    "which the teacher does not use. An inversion is a negative target with a higher score than a "
    "positive target of the same image or of the same label."
)
VARIANTS = (
    "Students are trained on {count:,} unlabelled images and evaluated on the test images. Values "
    "are means over {seeds} seeds. Differences from the default student have 95 % intervals over "
    "seeds."
)


def label_free_page(results: LabelFreeResults) -> str:
    """Return the Markdown section of one image collection."""
    return "\n\n".join(_label_free_page_paragraphs(results)) + "\n"


def label_free_page_json(results: LabelFreeResults) -> dict[str, Any]:
    """Return the results as a JSON value, with null for undefined numbers."""
    return {key: _label_free_page_json_value(value) for key, value in asdict(results).items()}


def _label_free_page_paragraphs(results: LabelFreeResults) -> Iterator[str]:
    plan = results.plan
    yield f"## {results.dataset}"
    yield (
        f"{plan.unlabelled:,} unlabelled images are used for fitting and calibration, and "
        f"{plan.test:,} test images with {results.labels} labels for evaluation."
    )
    yield "\n".join(f"- {sentence}" for sentence in label_free_page_conclusions(results))
    yield RANKING.format(best=results.best_one_pass)
    yield markdown_table(
        ["", "mAP@y (%)", "gain (points)", "mAP@x (%)", "main (%)", "others (%)"],
        [_label_free_page_ranking_cells(row) for row in results.rows],
    )
    yield CALIBRATION
    yield markdown_table(
        [
            *("", "Brier skill (%)", "ECE (%)", "log loss (nats)", "Platt: Brier skill, ECE (%)"),
            *("labels: expected, true", "F1: expected count, best (%)"),
        ],
        [_label_free_page_calibration_cells(row) for row in results.rows],
    )
    yield COST
    yield markdown_table(
        ["", "trained parameters", "passes", "GFLOP", "milliseconds"],
        [_label_free_page_cost_cells(row) for row in results.rows],
    )
    yield STAGES.format(count=plan.student_images)
    yield markdown_table(
        ["teacher", "stage", "mAP (%)", "inversions within images", "within labels"],
        [_label_free_page_stage_cells(stage) for stage in results.stages],
    )
    yield VARIANTS.format(count=plan.student_images, seeds=plan.student_seeds)
    yield markdown_table(
        ["", "mAP of the student (%)", "mAP of the pseudo-labels (%)", "difference (points)"],
        [_label_free_page_variant_cells(variant) for variant in results.variants],
    )


def label_free_page_conclusions(results: LabelFreeResults) -> Iterator[str]:
    """Iterate over the sentences of the conclusions."""
    metric = "mean_average_precision"
    one_pass, best = results.row(results.best_one_pass), results.best_untrained
    probe = results.row("linear probe, all labels")
    gap = probe.mean(metric) - one_pass.mean(metric)
    closed_share = (best.mean(metric) - one_pass.mean(metric)) / gap
    yield (
        f"The best mAP@y without training is {_label_free_page_percent(best, metric)} % "
        f"({best.title}). The mAP@y is {_label_free_page_percent(one_pass, metric)} % for "
        f"{one_pass.title} and {_label_free_page_percent(probe, metric)} % for a linear probe "
        f"trained with all labels; {best.title} closes {100 * closed_share:.0f} % of this gap."
    )
    yield (
        f"If each image receives its true number of labels, the recall of {one_pass.title} is "
        f"{_label_free_page_percent(one_pass, 'recall_of_main')} % for main objects and "
        f"{_label_free_page_percent(one_pass, 'recall_of_others')} % for other objects. The recall "
        f"of {best.title} is {_label_free_page_percent(best, 'recall_of_main')} % and "
        f"{_label_free_page_percent(best, 'recall_of_others')} %."
    )
    default = results.variants[0]
    yield (
        f"The student trained on {results.plan.student_images:,} images has an mAP of "
        f"{_label_free_page_mean_percent(default)} % on the test images with one encoder pass. The "
        f"pseudo-labels of its teacher have an mAP of {100 * default.pseudolabel_map:.1f} % on the "
        "test images."
    )


def _label_free_page_ranking_cells(row: LabelFreeRow) -> list[str]:
    low, high = (f"{100 * end:.1f}" for end in row.interval)
    gain = (
        ""
        if row.gain is None
        else "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * value for value in row.gain))
    )
    metrics = ("mean_average_precision_per_image", "recall_of_main", "recall_of_others")
    percent = _label_free_page_percent(row, "mean_average_precision")
    map_cell = f"{percent}{_label_free_page_deviation(row)} ({low} to {high})"
    return [
        row.title,
        map_cell,
        gain,
        *(_label_free_page_percent(row, metric) for metric in metrics),
    ]


def _label_free_page_calibration_cells(row: LabelFreeRow) -> list[str]:
    return [
        row.title,
        _label_free_page_percent(row, "brier_skill"),
        f"{100 * row.mean('ece'):.2f} [{100 * row.mean('ece_noise_floor'):.2f}]",
        f"{row.mean('log_loss'):.4f}",
        f"{_label_free_page_percent(row, 'brier_skill_of_platt')}, "
        f"{100 * row.mean('ece_of_platt'):.2f}",
        f"{row.mean('expected_labels'):.2f}, {row.mean('true_labels'):.2f}",
        f"{_label_free_page_percent(row, 'f1')}, {_label_free_page_percent(row, 'best_f1')}",
    ]


def _label_free_page_cost_cells(row: LabelFreeRow) -> list[str]:
    return [
        row.title,
        f"{row.mean('parameters'):,.0f}",
        f"{row.mean('passes'):.1f}",
        f"{row.mean('flops') / 1e9:.2f}",
        f"{1000 * row.mean('seconds'):.1f}",
    ]


def _label_free_page_stage_cells(stage: dict[str, Any]) -> list[str]:
    inversions = [stage.get("within_images"), stage.get("within_labels")]
    cells = ["" if count is None else f"{count:,.0f}" for count in inversions]
    return [stage["teacher"], stage["stage"], f"{100 * stage['map']:.2f}", *cells]


def _label_free_page_variant_cells(variant: StudentVariant) -> list[str]:
    interval, difference = variant.difference, ""
    if interval is not None:
        low, high = 100 * interval.low, 100 * interval.high
        difference = f"{100 * interval.value:+.2f} ({low:+.2f} to {high:+.2f})"
    pseudolabels = f"{100 * variant.pseudolabel_map:.1f}"
    return [variant.title, _label_free_page_mean_percent(variant), pseudolabels, difference]


def _label_free_page_mean_percent(variant: StudentVariant) -> str:
    return f"{100 * sum(variant.student_map) / len(variant.student_map):.1f}"


def _label_free_page_percent(row: LabelFreeRow, metric: str) -> str:
    return f"{100 * row.mean(metric):.1f}"


def _label_free_page_deviation(row: LabelFreeRow) -> str:
    values = row.metrics["mean_average_precision"]
    return f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""


def _label_free_page_json_value(value: Any) -> Any:
    """Return a JSON value: lists for tuples, null for non-finite numbers."""
    if isinstance(value, dict):
        return {str(key): _label_free_page_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_label_free_page_json_value(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
