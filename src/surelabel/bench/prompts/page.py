"""Write the Markdown of the comparison of prompt tuning."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isnan
from operator import attrgetter

import numpy as np

from surelabel.bench.base_new_metrics import NEIGHBOURS
from surelabel.bench.base_new_predictions import CALIBRATED, RAW
from surelabel.bench.class_group_metrics import ARITHMETIC, BASE, HARMONIC, NEW
from surelabel.bench.markdown_page import bold_if, markdown_list, markdown_table_of_rows
from surelabel.bench.metric_cells import (
    interval_cell,
    metric_column_title,
    metric_column_value,
    metric_mean_cell,
)
from surelabel.bench.prompts.plan import (
    CCR,
    LOSS_TITLES,
    MAX_EPOCHS,
    NONE,
    SYNTHESIZED_DOMAINS,
    TEST_DOMAIN,
    ZERO_SHOT,
    tuner_learns_prompts,
)
from surelabel.bench.prompts.results import (
    CURVE,
    OPEN_VOCABULARY,
    WEIGHTS,
    PromptResults,
    PromptRow,
)
from surelabel.bench.rows import RowDifference
from surelabel.report.metric_descriptions import describe_metric

PromptCell = Callable[[PromptRow], str]
GainCell = Callable[[tuple[PromptRow, str]], str]
INTRODUCTION = (
    "The tuners are fitted on the base labels with at least {shots} positive images (or captions) "
    "per label. Metrics of base labels and of new labels are computed on all {test:,} test images, "
    "including images without a label of the group. The base labels are the first half of the "
    "{labels} labels. CCR is the regularizer `class_covariance` with weight 0.1. DOR is the "
    "regularizer `outlier`, with weight 8 for coop and 2 for other tuners. The words of DOR "
    "exclude the new labels. DAC multiplies the log-odds of each new label in the row *none* by a "
    "factor, without training. DOR and DAC need learned prompts in the text tower."
)
SYNTHESIZED = (
    "The training images of {tuners} are synthesized for the sampled captions. There is one image "
    "for each caption, with the labels that the caption mentions. The rows *test distribution* use "
    "training images from the generator and the domain of the test images. The seeds of these "
    "training images differ from the seeds of all other images. The rows *{domains}* use training "
    "images of another domain."
)
READOUTS = (
    "Metrics *before calibration* use the log-odds of the fitted method. For the ranking loss, the "
    "scores are used as log-odds. Metrics *after calibration* use Platt scaling with one slope and "
    "intercept, fitted on the base labels of {validation:,} validation images. Before calibration, "
    "the zero-shot row uses the calibrator of the package, which was fitted on more images."
)
VALUES = (
    "Values are means over seeds ± standard deviation, with the noise floor of the ECE in "
    "brackets. A is the arithmetic mean of the values for base and new labels, and H is the "
    "harmonic mean. The CCR paper reports the arithmetic mean of errors under the name HM. "
    "Weighted MCE, which the CCR paper reports as MCE, is the largest term of the ECE sum."
)
DIFFERENCES = (
    "Rows *none* are compared with zero-shot. Other rows are compared with the row *none* of the "
    "same tuner. The paired 95 % intervals are over seeds and over test images. **Bold**: both "
    "intervals exclude 0. Because the tables contain many differences, some intervals are expected "
    "to exclude 0 by chance."
)
GAINS = (
    "The table shows the gain of CCR over the row *none*, before and after calibration. The gain "
    "of the calibrator alone is the improvement of the row *none* by calibration. A positive gain "
    "is an improvement. A gain is significant if the intervals over seeds and over test images "
    "exclude 0. A verdict states that the calibrator alone gains as much if its gain is at least "
    "the gain of CCR before calibration."
)
TEXTS = (
    "Embedding divergence (ED@5) is the mean cosine distance of a text vector to the 5 nearest "
    "text vectors. Neighbourhood preservation (NP@5) is the fraction of the 5 nearest labels that "
    "are also among the 5 nearest labels with the frozen text encoder. "
)
GROUPS = "Head, medium and tail are thirds of the base labels, by frequency in the training images."
JUDGED = ("brier_skill", "log_loss", "ece")
HIGHER_IS_BETTER = ("brier_skill", "mean_average_precision")
ERRORS = ("ece", "ace", "mce", "mce_weighted", "piece")


def prompt_paragraphs(results: PromptResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs about one dataset."""
    plan = results.plan
    labels = len(results.covariance["labels"])
    yield f"## {results.dataset}"
    yield INTRODUCTION.format(shots=plan.shots, test=plan.test, labels=labels)
    if synthesized := [tuner for tuner in plan.tuners if tuner in SYNTHESIZED_DOMAINS]:
        domains = dict.fromkeys(d for t in synthesized for d in SYNTHESIZED_DOMAINS[t])
        others = [domain for domain in domains if domain != TEST_DOMAIN]
        yield SYNTHESIZED.format(tuners=", ".join(synthesized), domains=", ".join(others))
    yield READOUTS.format(validation=plan.validation)
    yield markdown_list(prompt_conclusions(results))
    yield prompt_plan_table(results)
    yield " ".join(results.sample)
    yield GAINS
    yield prompt_gain_table(results)
    yield f"{VALUES} {DIFFERENCES}"
    for loss in plan.losses:
        rows, title = results.tables[loss], LOSS_TITLES[loss]
        yield f"### {title}: differences from zero-shot"
        yield prompt_zero_shot_table(rows)
        yield f"### {title}: ranking and accuracy"
        yield markdown_table_of_rows(rows, _accuracy_columns())
        for readout, heading in ((RAW, "before"), (CALIBRATED, "after")):
            yield f"### {title}: {heading} calibration"
            yield markdown_table_of_rows(rows, _calibration_columns(readout))
        yield f"### {title}: differences"
        for metric in (*JUDGED, "mean_average_precision"):
            compared = [row for row in rows if row.differences]
            yield markdown_table_of_rows(compared, _difference_columns(metric))
        yield f"### {title}: text vectors and frequency of labels"
        yield f"{TEXTS}{prompt_text_correlation(rows)} {GROUPS}"
        yield markdown_table_of_rows(rows, _text_and_group_columns())
    yield from _further_table_paragraphs(results)


def prompt_conclusions(results: PromptResults) -> Iterator[str]:
    """Iterate over the conclusions about the tuners without regularizer and the gains of CCR."""
    for loss in results.plan.losses:
        for group in (BASE, NEW):
            yield prompt_zero_shot_conclusion(results.tables[loss], loss, group)
    rows = _regularized_rows(results)
    for metric in JUDGED:
        for group in (BASE, NEW):
            verdicts = [prompt_gain_verdict(results, row, group, metric) for row in rows]
            counts = [f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts)]
            yield (
                f"{metric_column_title(metric)} of {group} labels: over all tuners and losses, the "
                f"verdicts on CCR are {'; '.join(counts)}. The gains of CCR range from "
                f"{_gain_range(rows, RAW, group, metric)} before calibration, and from "
                f"{_gain_range(rows, CALIBRATED, group, metric)} after calibration."
            )


def prompt_zero_shot_conclusion(rows: Sequence[PromptRow], loss: str, group: str) -> str:
    """Return a sentence about the mAP of the fits without regularizer, compared with zero-shot.

    Args:
        rows: Rows of the loss.
        loss: Key of the table.
        group: ``base`` or ``new``.
    """
    differences = {
        row.setting.tuner_title: row.zero_shot_differences[f"{RAW}_{group}_mean_average_precision"]
        for row in rows
        if row.zero_shot_differences
    }
    signs = {name: _gain_sign(d, "mean_average_precision") for name, d in differences.items()}
    outcomes = {
        1: "significantly above zero-shot",
        0: "not significantly different from zero-shot",
        -1: "significantly below zero-shot",
    }
    parts = [
        f"{outcome} for {', '.join(names)}"
        for sign, outcome in outcomes.items()
        if (names := [name for name in signs if signs[name] == sign])
    ]
    return f"With {LOSS_TITLES[loss]}, the mAP of {group} labels is {'; '.join(parts)}."


def prompt_zero_shot_table(rows: Sequence[PromptRow]) -> str:
    """Return a table with the differences of the fits without regularizer from zero-shot."""
    compared = [row for row in rows if row.zero_shot_differences]
    columns: dict[str, PromptCell] = {"": lambda row: row.setting.tuner_title}
    for metric, readout in (("mean_average_precision", RAW), ("brier_skill", CALIBRATED)):
        heading = ", after calibration" if readout == CALIBRATED else ""
        for group in (BASE, NEW):
            columns[f"{_title(metric)}, {group}{heading}"] = partial(
                _zero_shot_difference_cell, name=f"{readout}_{group}_{metric}", metric=metric
            )
    return markdown_table_of_rows(compared, columns)


def _zero_shot_difference_cell(row: PromptRow, name: str, metric: str) -> str:
    return _difference_cell(row.zero_shot_differences[name], metric)


def prompt_gain_verdict(results: PromptResults, row: PromptRow, group: str, metric: str) -> str:
    """Return a text that states whether CCR improves a metric significantly, and at which stage.

    The stages are before calibration and after calibration.

    Args:
        results: Results with the row without regularizer.
        row: Row with CCR.
        group: ``base`` or ``new``.
        metric: One of ``JUDGED``.
    """
    raw, calibrated = (
        _gain_sign(row.differences[f"{readout}_{group}_{metric}"], metric)
        for readout in (RAW, CALIBRATED)
    )
    if calibrated > 0:
        return "better before and after calibration" if raw > 0 else "better only after calibration"
    if raw > 0:
        gain = _gain(row.differences[f"{RAW}_{group}_{metric}"].value, metric)
        given = _calibrator_gain(results, row, group, metric) >= gain
        return (
            "better before calibration, but the calibrator alone gains as much"
            if given
            else "better only before calibration"
        )
    return "worse" if raw < 0 or calibrated < 0 else "no significant difference"


def prompt_gain_table(results: PromptResults) -> str:
    """Return a table with the gains of CCR and of the calibrator in Brier skill and log loss."""
    entries = [(row, group) for row in _regularized_rows(results) for group in (BASE, NEW)]
    columns: dict[str, GainCell] = {
        "": lambda entry: f"{entry[0].setting.tuner_title}, {LOSS_TITLES[entry[0].setting.loss]}",
        "labels": lambda entry: entry[1],
    }
    for metric in JUDGED[:2]:
        columns |= _gain_columns(results, metric)
    return markdown_table_of_rows(entries, columns)


def prompt_plan_table(results: PromptResults) -> str:
    """Return a table with seeds, epochs, parameters and processor time of each tuner."""
    rows = {
        row.setting.tuner: row
        for row in results.tables[results.plan.losses[0]]
        if row.setting.variant == NONE and row.setting.tuner != ZERO_SHOT
    }
    plan = results.plan
    columns: dict[str, PromptCell] = {
        "tuner": lambda row: row.setting.tuner,
        "seeds": lambda row: str(plan.seeds(row.setting.tuner)),
        "epochs": lambda row: str(plan.epochs.get(row.setting.tuner, MAX_EPOCHS)),
        "trained parameters": lambda row: f"{row.parameters:,}",
    }
    for variant in plan.variants:
        columns[f"processor seconds per step, {variant}"] = partial(
            _step_seconds_cell, results=results, variant=variant
        )
    return markdown_table_of_rows(list(rows.values()), columns)


def _step_seconds_cell(row: PromptRow, results: PromptResults, variant: str) -> str:
    cost = results.costs[row.setting.tuner].get(variant)
    return f"{cost['step_seconds']:.3f}" if cost else "not applicable"


def prompt_text_correlation(rows: Sequence[PromptRow]) -> str:
    """Return a sentence with the correlation of divergence and preservation over the rows."""
    values = {k: text_metric_correlation(rows, k) for k in NEIGHBOURS}
    correlations = [
        f"{'not defined' if isnan(r) else f'{r:.2f}'} for k = {k}" for k, r in values.items()
    ]
    return (
        "Over the rows with learned prompts, the correlation of ED@k and NP@k (means of base and "
        f"new labels) is {', '.join(correlations)}."
    )


def text_metric_correlation(rows: Sequence[PromptRow], k: int) -> float:
    """Return Pearson's r of embedding divergence and neighbourhood preservation over the rows.

    The rows are those of ``text_metric_rows``. If there are no such rows, or all of them have the
    same divergence or the same preservation, the value is NaN.
    """
    points = np.array([text_metric_point(row, k) for row in text_metric_rows(rows)])
    if not len(points) or (np.ptp(points, axis=0) == 0).any():
        return float("nan")
    return float(np.corrcoef(points.T)[0, 1])


def text_metric_rows(rows: Sequence[PromptRow]) -> list[PromptRow]:
    """Return the rows with learned prompts, without DAC, which has the texts of *none*."""
    return [
        row
        for row in rows
        if row.variant == row.setting.variant and tuner_learns_prompts(row.setting.tuner)
    ]


def text_metric_point(row: PromptRow, k: int) -> tuple[float, float]:
    """Return the means of divergence and preservation over base and new labels."""
    divergence, preservation = (
        (row.mean(f"{BASE}_{name}_at_{k}") + row.mean(f"{NEW}_{name}_at_{k}")) / 2
        for name in ("embedding_divergence", "neighbourhood_preservation")
    )
    return divergence, preservation


def _further_table_paragraphs(results: PromptResults) -> Iterator[str]:
    plan = results.plan
    both = (RAW, CALIBRATED)
    yield f"### Number of shots ({plan.studied_tuner}, BCE)"
    yield markdown_table_of_rows(results.shot_counts, SHOT_COLUMNS)
    yield markdown_table_of_rows(results.tables[CURVE], _short_columns(both))
    if plan.domains:
        yield f"### Other domains ({plan.studied_tuner}, BCE, trained on photo)"
        rows = [
            row
            for row in results.tables[plan.losses[0]]
            if row.setting in plan.domain_settings() and row.variant in (NONE, CCR)
        ]
        yield markdown_table_of_rows(rows, _domain_columns(plan.domains))
    yield f"### Weight of CCR and batch size ({plan.studied_tuner}, BCE)"
    time_column: dict[str, PromptCell] = {
        "processor seconds per epoch": lambda row: f"{row.mean('epoch_seconds'):.2f}"
    }
    yield markdown_table_of_rows(results.tables[WEIGHTS], _short_columns(both) | time_column)
    if results.tables[OPEN_VOCABULARY]:
        yield "### 48 base and 17 new labels (BCE)"
        yield markdown_table_of_rows(results.tables[OPEN_VOCABULARY], _short_columns(both))


def _regularized_rows(results: PromptResults) -> list[PromptRow]:
    """Return the rows with CCR of the main tables."""
    return [
        row for loss in results.plan.losses for row in results.tables[loss] if row.variant == CCR
    ]


def _gain(difference: float, metric: str) -> float:
    return difference if metric in HIGHER_IS_BETTER else -difference


def _gain_sign(difference: RowDifference, metric: str) -> int:
    """Return 1 for a significant gain, -1 for a significant loss, and 0 otherwise."""
    return int(np.sign(_gain(difference.value, metric))) if difference.excludes_zero else 0


def _gain_range(rows: Sequence[PromptRow], readout: str, group: str, metric: str) -> str:
    """Return the lowest and the highest gain of the rows, with the unit."""
    name = f"{readout}_{group}_{metric}"
    gains = [_gain(row.differences[name].value, metric) for row in rows]
    unit = _unit(metric).replace("%", "points")
    return f"{_signed(min(gains), metric)} to {_signed(max(gains), metric)} {unit}"


def _calibrator_gain(results: PromptResults, row: PromptRow, group: str, metric: str) -> float:
    """Return the gain of the shared calibrator without CCR."""
    rows = results.tables[row.setting.loss]
    reference = next(r for r in rows if r.setting == row.setting.reference and not r.differences)
    calibrated, raw = (reference.mean(f"{r}_{group}_{metric}") for r in (CALIBRATED, RAW))
    return _gain(calibrated - raw, metric)


def _gain_columns(results: PromptResults, metric: str) -> dict[str, GainCell]:
    def gain(entry: tuple[PromptRow, str], readout: str) -> str:
        row, group = entry
        difference = row.differences[f"{readout}_{group}_{metric}"]
        return bold_if(difference.excludes_zero, _signed(_gain(difference.value, metric), metric))

    title = metric_column_title(metric)
    return {
        f"{_title(metric)}, before calibration": partial(gain, readout=RAW),
        f"{title}, after calibration": partial(gain, readout=CALIBRATED),
        f"{title}, calibrator alone": lambda entry: _signed(
            _calibrator_gain(results, *entry, metric), metric
        ),
        f"verdict on {title}": lambda entry: prompt_gain_verdict(results, *entry, metric),
    }


def _unit(metric: str) -> str:
    return "points" if metric == "piece" else describe_metric(metric).unit


def _title(metric: str) -> str:
    title = "PIECE" if metric == "piece" else metric_column_title(metric)
    return f"{title} ({_unit(metric)})"


def _value(value: float, metric: str) -> str:
    return f"{100 * value:.2f}" if metric == "piece" else metric_column_value(value, metric)


def _signed(value: float, metric: str) -> str:
    """Return a value with its sign: four digits for nats, two digits for other units, times 100."""
    scale, digits = (1, 4) if _unit(metric) == "nats" else (100, 2)
    return f"{scale * value:+.{digits}f}"


def _mean_cell(name: str, metric: str) -> PromptCell:
    return partial(metric_mean_cell, metric=name, format_value=partial(_value, metric=metric))


def _metric_columns(readout: str, metric: str, parts: Sequence[str]) -> dict[str, PromptCell]:
    """Return one column for each part: a group of labels or a mean."""
    letters = {ARITHMETIC: "A", HARMONIC: "H"}
    return {
        f"{_title(metric)}, {letters.get(part, part)}": _mean_cell(
            f"{readout}_{part}_{metric}", metric
        )
        for part in parts
    }


def _accuracy_columns() -> dict[str, PromptCell]:
    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    columns |= _metric_columns(RAW, "mean_average_precision", (BASE, NEW, HARMONIC))
    for readout, heading in ((RAW, "before"), (CALIBRATED, "after")):
        for metric in ("accuracy", "balanced_accuracy"):
            of_metric = _metric_columns(readout, metric, (BASE, NEW, HARMONIC))
            columns |= {f"{title}, {heading} calibration": c for title, c in of_metric.items()}
    return columns


def _calibration_columns(readout: str) -> dict[str, PromptCell]:
    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    for metric in ("brier_skill", "log_loss"):
        columns |= _metric_columns(readout, metric, (BASE, NEW))
    for metric in ERRORS:
        columns |= _metric_columns(readout, metric, (BASE, NEW, ARITHMETIC, HARMONIC))
    return columns


def _difference_cell(difference: RowDifference, metric: str) -> str:
    text = interval_cell(
        difference.value,
        difference.over_seeds,
        difference.over_images,
        format_value=partial(_signed, metric=metric),
    )
    return bold_if(difference.excludes_zero, text)


def _difference_columns(metric: str) -> dict[str, PromptCell]:
    def cell(row: PromptRow, name: str) -> str:
        return _difference_cell(row.differences[name], metric)

    readouts = {RAW: "before", CALIBRATED: "after"}
    if metric == "mean_average_precision":  # the shared calibrator keeps the ranking
        readouts = {RAW: "before and after"}
    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    return columns | {
        f"{_title(metric)}, {group}, {heading} calibration": partial(
            cell, name=f"{readout}_{group}_{metric}"
        )
        for group in (BASE, NEW)
        for readout, heading in readouts.items()
    }


def _text_and_group_columns() -> dict[str, PromptCell]:
    def text_cell(name: str) -> PromptCell:
        return partial(metric_mean_cell, metric=name, format_value="{:.3f}".format)

    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    names = {"ED@5": "embedding_divergence_at_5", "NP@5": "neighbourhood_preservation_at_5"}
    for title, name in names.items():
        for group in ("head", "tail", NEW):
            columns[f"{title}, {group}"] = text_cell(f"{group}_{name}")
    for readout, metric in ((RAW, "mean_average_precision"), (RAW, "ece"), (CALIBRATED, "ece")):
        suffix = " after calibration" if readout == CALIBRATED else ""
        for group in ("head", "medium", "tail"):
            columns[f"{_title(metric)}, {group}{suffix}"] = _mean_cell(
                f"{readout}_{group}_{metric}", metric
            )
    return columns


def _short_columns(readouts: Sequence[str]) -> dict[str, PromptCell]:
    """Return columns of mAP, Brier skill, log loss and ECE of base and new labels."""
    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    columns |= _metric_columns(RAW, "mean_average_precision", (BASE, NEW))
    for readout in readouts:
        heading = "before" if readout == RAW else "after"
        for metric in JUDGED:
            of_metric = _metric_columns(readout, metric, (BASE, NEW))
            columns |= {f"{title}, {heading} calibration": c for title, c in of_metric.items()}
    return columns


def _domain_columns(domains: Sequence[str]) -> dict[str, PromptCell]:
    columns: dict[str, PromptCell] = {"": attrgetter("title")}
    for metric in ("accuracy", "balanced_accuracy", "ece"):
        for domain in ("photo", *domains):
            for group in (BASE, NEW):
                prefix = RAW if domain == "photo" else f"{RAW}_{domain}"
                columns[f"{_title(metric)}, {domain}, {group}"] = _mean_cell(
                    f"{prefix}_{group}_{metric}", metric
                )
    return columns


SHOT_COLUMNS: dict[str, Callable[[dict[str, float]], str]] = {
    "shots": lambda entry: f"{entry['shots']:g}",
    "images": lambda entry: f"{entry['images']:,.0f}",
    "fewest positive images of a base label": lambda entry: f"{entry['least']:.0f}",
    "median": lambda entry: f"{entry['median']:g}",
    "most": lambda entry: f"{entry['most']:.0f}",
}
