"""Conclusions of the open-vocabulary comparison, as sentences generated from the results."""

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
    (
        MATCHING,
        "optimal transport",
        "optimal transport without knowledge constraint and presence weights",
    ),
    (PARTS, "both, transport, knowledge", f"{REFERENCE} without presence weights"),
    (PARTS, "both, transport, presence", f"{REFERENCE} without the knowledge constraint"),
)


def open_vocabulary_conclusions(results: OpenVocabularyResults) -> Iterator[str]:
    """Iterate over the conclusions, each of one or more sentences."""
    reference = results.reference
    for row in results.tables[OTHER_METHODS]:
        if row.differences:
            yield (
                f"The mAP of unseen classes with {REFERENCE} is "
                f"{open_vocabulary_conclusion_percent(reference, UNSEEN_MAP)} %, with {row.title} "
                f"{open_vocabulary_conclusion_percent(row, UNSEEN_MAP)} %; "
                f"{_reference_gain_conclusion(row)}."
            )
    for heading, title, description in REPORTED_DIFFERENCES:
        for row in results.tables[heading]:
            if row.title == title:
                yield f"Compared with {description}, {_reference_gain_conclusion(row)}."
    yield (
        f"Probabilities of {REFERENCE}: the ECE is {100 * reference.mean('unseen_ece'):.2f} % on "
        f"unseen classes and {100 * reference.mean('seen_ece'):.2f} % on seen classes. The Brier "
        f"skill is {open_vocabulary_conclusion_percent(reference, 'unseen_brier_skill')} % on "
        "unseen classes and "
        f"{open_vocabulary_conclusion_percent(reference, 'seen_brier_skill')} % on seen classes."
    )
    for entry in results.vocabulary_change:
        is_small = abs(entry["ece_change"]) <= MAX_ECE_CHANGE
        yield (
            f"With {entry['names']:,} more labels, the ECE of the seen classes changes by "
            f"{100 * entry['ece_change']:+.2f} points, which is "
            f"{'at most' if is_small else 'more than'} one point. The median change of the "
            f"log-odds of the seen classes is {entry['logit_change_median']:.2f}."
        )
    yield from _open_vocabulary_memory_conclusion(results)


def open_vocabulary_conclusion_percent(row: OpenVocabularyRow, metric: str) -> str:
    """Return the mean of a metric over seeds, formatted in percent."""
    return f"{100 * row.mean(metric):.1f}"


def open_vocabulary_conclusion_difference(
    difference: OpenVocabularyRowDifference, *, decimals: int = 1
) -> str:
    """Return a difference in points with its intervals over seeds and over images, as a string."""
    intervals = [
        f"{100 * interval.low:+.{decimals}f} to {100 * interval.high:+.{decimals}f}"
        for interval in (difference.over_seeds, difference.over_images)
    ]
    return f"{100 * difference.value:+.{decimals}f} ({'; '.join(intervals)})"


def _reference_gain_conclusion(row: OpenVocabularyRow) -> str:
    """Return a clause with the gain in unseen mAP of the reference over a row."""
    difference = row.differences[UNSEEN_MAP]
    seeds, images = (
        f"{-100 * interval.high:+.1f} to {-100 * interval.low:+.1f}"
        for interval in (difference.over_seeds, difference.over_images)
    )
    verdict = "significant" if difference.excludes_zero else "not significant"
    return (
        f"the gain of {REFERENCE} in unseen mAP is {-100 * difference.value:+.1f} points ({seeds} "
        f"over seeds, {images} over images) and is {verdict}"
    )


def _open_vocabulary_memory_conclusion(results: OpenVocabularyResults) -> Iterator[str]:
    memory = {entry["title"]: entry["train_memory_mib"] for entry in results.costs}
    matching = memory.get("with ladder and matching")
    if matching is not None and ALL_LAYER_PROMPTS in memory:
        share = matching / memory[ALL_LAYER_PROMPTS]
        yield (
            f"Training with ladder and matching takes {matching:.0f} MiB. This is "
            f"{100 * share:.0f} % of the memory for training prompts in all layers of both towers; "
            f"the goal of at most {100 * MEMORY_GOAL:.0f} % is "
            f"{'reached' if share <= MEMORY_GOAL else 'not reached'}."
        )
