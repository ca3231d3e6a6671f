"""Markdown and JSON of the open-vocabulary comparison."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite, isnan
from statistics import stdev
from typing import Any

from surelabel.bench.markdown_tables import markdown_table
from surelabel.bench.open_vocabulary.conclusions import (
    open_vocabulary_conclusion_difference,
    open_vocabulary_conclusion_percent,
    open_vocabulary_conclusions,
)
from surelabel.bench.open_vocabulary.plan import ALL_LAYER_PROMPTS, REFERENCE
from surelabel.bench.open_vocabulary.published import PUBLISHED
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import OpenVocabularyRow

INTRODUCTION = (
    "The {train:,} training images are annotated with {seen} seen classes; {removed:,} others were "
    "removed because they contain an unseen class. Platt scaling with one slope and intercept for "
    "all classes is fitted on the seen classes of {validation:,} images. {test:,} test images are "
    "evaluated with all classes. Zero-shot (ZSL) metrics use the {unseen} unseen classes and the "
    "{zsl:,} images with an unseen class. Generalized zero-shot (GZSL) metrics use all classes and "
    "{gzsl:,} images. Every image is scored for all classes at once. Classes without a positive "
    "image: {zsl_labels_without_positives} (ZSL) and {gzsl_labels_without_positives} (GZSL). The "
    "mAP that counts these classes as 0 and the mAP that excludes them {same}."
)
RANKING = (
    "Values are means over {seeds} seeds ± standard deviation. The header of the first table of "
    "each section shows the F1 of a perfect ranking, which has an mAP of 100 %. The last column is "
    "F1@3 as published, from one run: ZSL and GZSL on NUS-WIDE, then ZSL and GZSL on COCO."
)
CALIBRATION = (
    "The second table of each section has the ECE, with its noise floor in brackets, and the Brier "
    "skill of unseen and of seen classes."
)
DIFFERENCES = (
    "The third table has the differences from **{reference}** (row minus reference) in points, "
    "with paired 95 % intervals over seeds and over test images. **Bold**: both intervals exclude "
    "0."
)
COSTS = (
    "These measurements correspond to table 12 of the paper and use {timed} images. Speed is in "
    "images per second on one core, for training from cached features and for prediction with the "
    "encoder. Memory is the peak minus the memory in use at the start. Each row is measured in a "
    "separate process."
)
VOCABULARY_CHANGE = (
    "After training and calibration, labels are added to the {seen} seen classes, without another "
    "training or calibration. The table has the effect on the seen classes on {n_images:,} test "
    "images."
)
METRIC_TITLES = ("F1@3", "F1@5", "mAP")
COMPARED = ("zsl_map", "zsl_f1_at_3", "gzsl_map", "gzsl_f1_at_3", "unseen_ece", "seen_ece")
COMPARED_TITLES = ("ZSL mAP", "ZSL F1@3", "GZSL mAP", "GZSL F1@3", "unseen ECE", "seen ECE")


def open_vocabulary_page(results: OpenVocabularyResults) -> str:
    """Return the Markdown page of the results."""
    return "\n\n".join(_open_vocabulary_page_paragraphs(results)) + "\n"


def open_vocabulary_page_json(results: OpenVocabularyResults) -> dict[str, Any]:
    """Return the results as a JSON value, with null for undefined numbers."""
    return {key: _open_vocabulary_page_json_value(value) for key, value in asdict(results).items()}


def _open_vocabulary_page_paragraphs(results: OpenVocabularyResults) -> Iterator[str]:
    reference, protocols = results.reference, ("zsl", "gzsl")
    zero_filled = [reference.mean(f"{protocol}_map_zero_filled") for protocol in protocols]
    defined = [reference.mean(f"{protocol}_map") for protocol in protocols]
    yield f"## {results.dataset}"
    same = "are equal" if zero_filled == defined else "differ; the tables show the latter"
    yield INTRODUCTION.format(**results.counts, same=same)
    yield "\n".join(f"- {sentence}" for sentence in open_vocabulary_conclusions(results))
    ranking = RANKING.format(seeds=results.plan.seeds)
    yield f"{ranking} {CALIBRATION} {DIFFERENCES.format(reference=REFERENCE)}"
    for heading, rows in results.tables.items():
        yield f"### {heading}"
        yield markdown_table(
            _open_vocabulary_page_ranking_header(results),
            [_open_vocabulary_page_ranking_cells(r, heading) for r in rows],
        )
        yield markdown_table(
            ["", "unseen ECE (%)", "seen ECE (%)", "unseen Brier skill (%)", "seen (%)"],
            [_open_vocabulary_page_calibration_cells(row) for row in rows],
        )
        yield markdown_table(
            ["", *COMPARED_TITLES],
            [_open_vocabulary_page_difference_cells(row) for row in rows if row.differences],
        )
    yield "### Speed and memory"
    yield COSTS.format(timed=results.plan.timed_images)
    yield markdown_table(
        [
            *("", "trained parameters", "training (images/s)", "prediction (images/s)"),
            *("training (MiB)", "relative to prompts in all layers", "prediction (MiB)"),
        ],
        [_open_vocabulary_page_cost_cells(cost, results.costs) for cost in results.costs],
    )
    yield "### Change of the vocabulary"
    yield VOCABULARY_CHANGE.format(
        seen=results.counts["seen"], n_images=results.plan.vocabulary_change_images
    )
    yield markdown_table(
        [
            *("labels added", "with trained tokens", "ECE before (%)", "largest change (points)"),
            *("log-odds change, median", "95th percentile", "mAP before, after (%)"),
        ],
        [_page_cells_of_vocabulary_change(entry) for entry in results.vocabulary_change],
    )
    seconds = sum(sum(row.seconds) for row in _distinct_open_vocabulary_page_rows(results))
    yield f"All recognizers together took {seconds / 60:.1f} minutes of processor time."


def _open_vocabulary_page_ranking_header(results: OpenVocabularyResults) -> list[str]:
    header = []
    for protocol in ("zsl", "gzsl"):
        maxima = [results.perfect_ranking[f"{protocol}_f1_at_{k}"] for k in (3, 5)]
        suffixes = [*(f" of {100 * maximum:.1f}" for maximum in maxima), ""]
        for title, suffix in zip(METRIC_TITLES, suffixes, strict=True):
            header.append(f"{protocol.upper()} {title}{suffix} (%)")
    return ["", *header, "paper, F1@3 (%)"]


def _open_vocabulary_page_ranking_cells(row: OpenVocabularyRow, heading: str) -> list[str]:
    metrics = [
        f"{protocol}_{name}"
        for protocol in ("zsl", "gzsl")
        for name in ("f1_at_3", "f1_at_5", "map")
    ]
    cells = [
        open_vocabulary_conclusion_percent(row, metric)
        + _open_vocabulary_page_deviation(row, metric)
        for metric in metrics
    ]
    published = PUBLISHED.get(heading, {}).get(row.title, ())
    paper_cell = ", ".join("–" if isnan(value) else f"{value:.1f}" for value in published)
    return [row.title, *cells, paper_cell]


def _open_vocabulary_page_calibration_cells(row: OpenVocabularyRow) -> list[str]:
    errors = [
        f"{100 * row.mean(f'{group}_ece'):.2f}"
        f"{_open_vocabulary_page_deviation(row, f'{group}_ece', 2)} "
        f"[{100 * row.mean(f'{group}_ece_noise_floor'):.2f}]"
        for group in ("unseen", "seen")
    ]
    skills = [
        open_vocabulary_conclusion_percent(row, metric)
        + _open_vocabulary_page_deviation(row, metric)
        for metric in ("unseen_brier_skill", "seen_brier_skill")
    ]
    return [row.title, *errors, *skills]


def _open_vocabulary_page_difference_cells(row: OpenVocabularyRow) -> list[str]:
    cells = [row.title]
    for name in COMPARED:
        difference = row.differences[name]
        text = open_vocabulary_conclusion_difference(
            difference, decimals=2 if name.endswith("ece") else 1
        )
        cells.append(f"**{text}**" if difference.excludes_zero else text)
    return cells


def _open_vocabulary_page_cost_cells(
    cost: dict[str, Any], costs: list[dict[str, Any]]
) -> list[str]:
    reference = next(other for other in costs if other["title"] == ALL_LAYER_PROMPTS)
    share = cost["train_memory_mib"] / reference["train_memory_mib"]
    return [
        cost["title"],
        f"{cost['parameters']:,.0f}",
        f"{cost['train_images_per_second']:.0f}",
        f"{cost['predict_images_per_second']:.0f}",
        f"{cost['train_memory_mib']:.0f}",
        f"{100 * share:.0f} %",
        f"{cost['predict_memory_mib']:.0f}",
    ]


def _page_cells_of_vocabulary_change(entry: dict[str, Any]) -> list[str]:
    return [
        f"{entry['names']:,}",
        f"{entry['names_with_trained_tokens']:.0f}",
        f"{100 * entry['ece_before']:.2f}",
        f"{100 * entry['ece_change']:+.2f}",
        f"{entry['logit_change_median']:.2f}",
        f"{entry['logit_change_95th_percentile']:.2f}",
        f"{100 * entry['map_before']:.1f}, {100 * entry['map_after']:.1f}",
    ]


def _distinct_open_vocabulary_page_rows(results: OpenVocabularyResults) -> list[OpenVocabularyRow]:
    """Return the rows of all tables; rows with equal processor times are returned only once."""
    rows = [row for rows in results.tables.values() for row in rows]
    seconds = [row.seconds for row in rows]
    return [row for position, row in enumerate(rows) if row.seconds not in seconds[:position]]


def _open_vocabulary_page_deviation(row: OpenVocabularyRow, metric: str, decimals: int = 1) -> str:
    values = row.metrics[metric]
    return f" ± {100 * stdev(values):.{decimals}f}" if len(values) > 1 else ""


def _open_vocabulary_page_json_value(value: Any) -> Any:
    """Return a JSON value: lists for tuples, null for non-finite numbers."""
    if isinstance(value, dict):
        return {str(key): _open_vocabulary_page_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_open_vocabulary_page_json_value(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
