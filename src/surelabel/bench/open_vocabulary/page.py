"""Write the Markdown of the open-vocabulary comparison."""

from collections.abc import Callable, Iterator
from functools import partial
from math import isnan
from operator import attrgetter, itemgetter
from typing import Any

from surelabel.bench.markdown_page import bold_if, markdown_list, markdown_table_of_rows
from surelabel.bench.metric_cells import interval_cell, metric_mean_cell, percent_text
from surelabel.bench.open_vocabulary.conclusions import open_vocabulary_conclusions
from surelabel.bench.open_vocabulary.plan import ALL_LAYER_PROMPTS, REFERENCE
from surelabel.bench.open_vocabulary.published import PUBLISHED
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import OpenVocabularyRow

RowCell = Callable[[OpenVocabularyRow], str]
EntryCell = Callable[[dict[str, Any]], str]

INTRODUCTION = (
    "The {train:,} training images are annotated with {seen} seen classes. {removed:,} other "
    "images were removed because they contain an unseen class. Platt scaling with one slope and "
    "intercept for all classes is fitted on the seen classes of {validation:,} validation images. "
    "All classes are evaluated on {test:,} test images. Zero-shot (ZSL) metrics use the {unseen} "
    "unseen classes and the {zsl:,} test images with an unseen class. Generalized zero-shot (GZSL) "
    "metrics use all classes and {gzsl:,} test images. Every image is scored for all classes at "
    "once. The number of classes without a positive image is {zsl_labels_without_positives} for "
    "ZSL and {gzsl_labels_without_positives} for GZSL. The mAP that counts these classes as 0 and "
    "the mAP that excludes these classes {same}."
)
RANKING = (
    "Values are means over {seeds} seeds ± standard deviation. In each section, the header of the "
    "first table shows the F1 of a perfect ranking, whose mAP is 100 %. The last column shows the "
    "published F1@3 of one run: ZSL and GZSL on NUS-WIDE, then ZSL and GZSL on COCO."
)
CALIBRATION = (
    "The second table of each section shows the ECE, with its noise floor in brackets, and the "
    "Brier skill of unseen and of seen classes."
)
DIFFERENCES = (
    "The third table shows the differences from **{reference}** (row minus reference) in points, "
    "with paired 95 % intervals over seeds and over test images. **Bold**: both intervals exclude "
    "0."
)
COSTS = (
    "The table corresponds to table 12 of the Recover and Match paper, and all rows are measured "
    "on {timed} images. Speed is the number of images per second on one core, for training from "
    "cached features and for prediction with the encoder. Memory is the peak memory minus the "
    "memory in use at the start. Each row is measured in a separate process."
)
VOCABULARY_CHANGE = (
    "After training and calibration, labels are added to the {seen} seen classes, without further "
    "training or calibration. The table shows how the added labels change the predictions for the "
    "seen classes on {n_images:,} test images."
)
RANKING_TITLES = {"f1_at_3": "F1@3", "f1_at_5": "F1@5", "map": "mAP"}
COMPARED = {
    "zsl_map": "ZSL mAP",
    "zsl_f1_at_3": "ZSL F1@3",
    "gzsl_map": "GZSL mAP",
    "gzsl_f1_at_3": "GZSL F1@3",
    "unseen_ece": "unseen ECE",
    "seen_ece": "seen ECE",
}


def open_vocabulary_paragraphs(results: OpenVocabularyResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs of the results."""
    reference, protocols = results.reference, ("zsl", "gzsl")
    zero_filled = [reference.mean(f"{protocol}_map_zero_filled") for protocol in protocols]
    defined = [reference.mean(f"{protocol}_map") for protocol in protocols]
    yield f"## {results.dataset}"
    same = (
        "are equal"
        if zero_filled == defined
        else "differ; the tables show the mAP that excludes these classes"
    )
    yield INTRODUCTION.format(**results.counts, same=same)
    yield markdown_list(open_vocabulary_conclusions(results))
    ranking = RANKING.format(seeds=results.plan.seeds)
    yield f"{ranking} {CALIBRATION} {DIFFERENCES.format(reference=REFERENCE)}"
    for heading, rows in results.tables.items():
        yield f"### {heading}"
        yield markdown_table_of_rows(rows, _open_vocabulary_ranking_columns(results, heading))
        yield markdown_table_of_rows(rows, CALIBRATION_COLUMNS)
        yield markdown_table_of_rows([row for row in rows if row.differences], DIFFERENCE_COLUMNS)
    yield "### Speed and memory"
    yield COSTS.format(timed=results.plan.timed_images)
    yield markdown_table_of_rows(results.costs, _open_vocabulary_cost_columns(results))
    yield "### Change of the vocabulary"
    yield VOCABULARY_CHANGE.format(
        seen=results.counts["seen"], n_images=results.plan.vocabulary_change_images
    )
    yield markdown_table_of_rows(results.vocabulary_change, VOCABULARY_CHANGE_COLUMNS)
    seconds = sum(sum(row.seconds) for row in _distinct_open_vocabulary_rows(results))
    yield (
        "Fitting, calibration and prediction of all recognizers took "
        f"{seconds / 60:.1f} minutes of processor time."
    )


def _open_vocabulary_ranking_columns(
    results: OpenVocabularyResults, heading: str
) -> dict[str, RowCell]:
    """Return the columns of a ranking table, with the F1 of a perfect ranking in the headers."""
    columns: dict[str, RowCell] = {"": attrgetter("title")}
    for protocol in ("zsl", "gzsl"):
        for name, title in RANKING_TITLES.items():
            metric = f"{protocol}_{name}"
            maximum = results.perfect_ranking.get(metric)
            suffix = "" if maximum is None else f" of {percent_text(maximum)}"
            columns[f"{protocol.upper()} {title}{suffix} (%)"] = _mean_cell(metric)
    return columns | {"paper, F1@3 (%)": partial(_published_cell, heading)}


def _published_cell(heading: str, row: OpenVocabularyRow) -> str:
    published = PUBLISHED.get(heading, {}).get(row.title, ())
    return ", ".join("–" if isnan(value) else f"{value:.1f}" for value in published)


def _open_vocabulary_cost_columns(results: OpenVocabularyResults) -> dict[str, EntryCell]:
    costs = {cost["title"]: cost for cost in results.costs}
    reference = costs[ALL_LAYER_PROMPTS]["train_memory_mib"] if costs else float("nan")
    return {
        "": itemgetter("title"),
        "trained parameters": _entry_cell("parameters", ",.0f"),
        "training (images/s)": _entry_cell("train_images_per_second", ".0f"),
        "prediction (images/s)": _entry_cell("predict_images_per_second", ".0f"),
        "training (MiB)": _entry_cell("train_memory_mib", ".0f"),
        "relative to prompts in all layers": lambda cost: (
            f"{percent_text(cost['train_memory_mib'] / reference, '.0f')} %"
        ),
        "prediction (MiB)": _entry_cell("predict_memory_mib", ".0f"),
    }


def _mean_cell(metric: str, spec: str = ".1f") -> RowCell:
    return partial(metric_mean_cell, metric=metric, format_value=partial(percent_text, spec=spec))


def _difference_cell(metric: str) -> RowCell:
    """Return a function that returns the difference of a row in points, with its intervals."""
    spec = "+.2f" if metric.endswith("ece") else "+.1f"

    def cell(row: OpenVocabularyRow) -> str:
        difference = row.differences[metric]
        intervals, format_value = (
            (difference.over_seeds, difference.over_images),
            partial(percent_text, spec=spec),
        )
        text = interval_cell(difference.value, *intervals, format_value=format_value)
        return bold_if(difference.excludes_zero, text)

    return cell


def _entry_cell(key: str, spec: str, factor: float = 1) -> EntryCell:
    """Return a function that returns the value of a key, times a factor."""
    return lambda entry: f"{factor * entry[key]:{spec}}"


def _distinct_open_vocabulary_rows(results: OpenVocabularyResults) -> list[OpenVocabularyRow]:
    """Return the rows of all tables, without repeated rows (rows with equal processor times)."""
    rows = [row for rows in results.tables.values() for row in rows]
    seconds = [row.seconds for row in rows]
    return [row for position, row in enumerate(rows) if row.seconds not in seconds[:position]]


CALIBRATION_COLUMNS: dict[str, RowCell] = {
    "": attrgetter("title"),
    "unseen ECE (%)": _mean_cell("unseen_ece", ".2f"),
    "seen ECE (%)": _mean_cell("seen_ece", ".2f"),
    "unseen Brier skill (%)": _mean_cell("unseen_brier_skill"),
    "seen (%)": _mean_cell("seen_brier_skill"),
}
DIFFERENCE_COLUMNS: dict[str, RowCell] = {
    "": attrgetter("title"),
    **{title: _difference_cell(metric) for metric, title in COMPARED.items()},
}
VOCABULARY_CHANGE_COLUMNS: dict[str, EntryCell] = {
    "labels added": _entry_cell("names", ","),
    "with trained tokens": _entry_cell("names_with_trained_tokens", ".0f"),
    "ECE before (%)": _entry_cell("ece_before", ".2f", 100),
    "largest change (points)": _entry_cell("ece_change", "+.2f", 100),
    "log-odds change, median": _entry_cell("logit_change_median", ".2f"),
    "95th percentile": _entry_cell("logit_change_95th_percentile", ".2f"),
    "mAP before, after (%)": lambda entry: (
        f"{percent_text(entry['map_before'])}, {percent_text(entry['map_after'])}"
    ),
}
