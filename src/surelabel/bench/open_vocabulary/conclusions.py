"""Conclusions of the open-vocabulary comparison, as sentences generated from the numbers."""

from collections.abc import Iterator

from surelabel.bench.open_vocabulary.plan import (
    ALL_LAYER_PROMPTS,
    MATCHING,
    MEMORY_GOAL,
    OTHER_METHODS,
    PARTS,
    REFERENCE,
)
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import OpenVocabularyRow, OpenVocabularyRowDifference

UNSEEN_MAP = "zsl_map"
MAX_ECE_CHANGE = 0.01  # accepted change of the ECE of the seen classes
REPORTED_DIFFERENCES = (
    (MATCHING, "average", "average pooling"),
    (MATCHING, "softmax re-weighting", "softmax re-weighting"),
    (MATCHING, "bipartite", "bipartite matching"),
    (MATCHING, "optimal transport", "optimal transport without knowledge and presence"),
    (PARTS, "both, transport, knowledge", "the reference without presence detection"),
    (PARTS, "both, transport, presence", "the reference without the frozen encoder's knowledge"),
)


def open_vocabulary_conclusions(results: OpenVocabularyResults) -> Iterator[str]:
    """Iterate over the sentences of the conclusions."""
    reference = results.reference
    for row in results.tables[OTHER_METHODS]:
        if row.differences:
            yield (
                f"mAP of unseen classes: {REFERENCE} "
                f"{open_vocabulary_conclusion_percent(reference, UNSEEN_MAP)} %, {row.title} "
                f"{open_vocabulary_conclusion_percent(row, UNSEEN_MAP)} %; "
                f"{_reference_gain_conclusion(row)}."
            )
    for heading, title, description in REPORTED_DIFFERENCES:
        for row in results.tables[heading]:
            if row.title == title:
                yield f"Against {description}: {_reference_gain_conclusion(row)}."
    yield (
        f"Probabilities of {REFERENCE}: the ECE is {100 * reference.mean('unseen_ece'):.2f} % on "
        f"unseen classes and {100 * reference.mean('seen_ece'):.2f} % on seen classes; the Brier "
        f"skill is {open_vocabulary_conclusion_percent(reference, 'unseen_brier_skill')} % and "
        f"{open_vocabulary_conclusion_percent(reference, 'seen_brier_skill')} %."
    )
    for entry in results.vocabulary_change:
        is_small = abs(entry["ece_change"]) <= MAX_ECE_CHANGE
        yield (
            f"With {entry['names']:,} more labels, the ECE of the seen classes changes by "
            f"{100 * entry['ece_change']:+.2f} points, "
            f"{'within' if is_small else 'more than'} one point; the median change of their "
            f"log-odds is {entry['logit_change_median']:.2f}."
        )
    yield from _open_vocabulary_memory_conclusion(results)


def open_vocabulary_conclusion_percent(row: OpenVocabularyRow, metric: str) -> str:
    """Return the mean of a metric over seeds, formatted in percent."""
    return f"{100 * row.mean(metric):.1f}"


def open_vocabulary_conclusion_difference(
    difference: OpenVocabularyRowDifference, *, decimals: int = 1
) -> str:
    """Return a difference with both intervals, formatted in points."""
    intervals = [
        f"{100 * interval.low:+.{decimals}f} to {100 * interval.high:+.{decimals}f}"
        for interval in (difference.over_seeds, difference.over_images)
    ]
    return f"{100 * difference.value:+.{decimals}f} ({'; '.join(intervals)})"


def _reference_gain_conclusion(row: OpenVocabularyRow) -> str:
    """Return the gain of the reference over a row, which is the negative difference of the row."""
    difference = row.differences[UNSEEN_MAP]
    seeds, images = (
        f"{-100 * interval.high:+.1f} to {-100 * interval.low:+.1f}"
        for interval in (difference.over_seeds, difference.over_images)
    )
    verdict = "significant" if difference.excludes_zero else "not significant"
    return (
        f"the reference gains {-100 * difference.value:+.1f} points of unseen mAP ({seeds} over "
        f"seeds, {images} over images), {verdict}"
    )


def _open_vocabulary_memory_conclusion(results: OpenVocabularyResults) -> Iterator[str]:
    memory = {entry["title"]: entry["train_memory_mib"] for entry in results.costs}
    matching = memory.get("with ladder and matching")
    if matching is not None and ALL_LAYER_PROMPTS in memory:
        share = matching / memory[ALL_LAYER_PROMPTS]
        yield (
            f"Training takes {matching:.0f} MiB, {100 * share:.0f} % of prompts in all layers of "
            f"both towers: {'within' if share <= MEMORY_GOAL else 'above'} the goal of "
            f"{100 * MEMORY_GOAL:.0f} %."
        )
