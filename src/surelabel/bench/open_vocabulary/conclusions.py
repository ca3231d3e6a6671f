"""Generate the conclusions of the open-vocabulary comparison from the results."""

from collections.abc import Iterator

from surelabel.bench.metric_cells import percent_column, percent_text
from surelabel.bench.open_vocabulary.plan import (
    ALL_LAYER_PROMPTS,
    MATCHING,
    MEMORY_GOAL,
    OTHER_METHODS,
    PARTS,
    REFERENCE,
)
from surelabel.bench.open_vocabulary.results import OpenVocabularyResults
from surelabel.bench.open_vocabulary.rows import OpenVocabularyRow

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
    reference, unseen_map = results.reference, percent_column(UNSEEN_MAP)
    seen_skill, unseen_skill = map(percent_column, ("seen_brier_skill", "unseen_brier_skill"))
    seen_ece, unseen_ece = (percent_column(name, ".2f") for name in ("seen_ece", "unseen_ece"))
    for row in results.tables[OTHER_METHODS]:
        if row.differences:
            yield (
                f"The mAP of unseen classes with {REFERENCE} is {unseen_map(reference)} %, with "
                f"{row.title} {unseen_map(row)} %; {_reference_gain_conclusion(row)}."
            )
    for heading, title, description in REPORTED_DIFFERENCES:
        for row in results.tables[heading]:
            if row.title == title:
                yield f"Compared with {description}, {_reference_gain_conclusion(row)}."
    yield (
        f"The ECE of {REFERENCE} is {unseen_ece(reference)} % on unseen classes and "
        f"{seen_ece(reference)} % on seen classes. The Brier skill is {unseen_skill(reference)} % "
        f"on unseen classes and {seen_skill(reference)} % on seen classes."
    )
    for entry in results.vocabulary_change:
        is_small = abs(entry["ece_change"]) <= MAX_ECE_CHANGE
        yield (
            f"With {entry['names']:,} more labels, the ECE of the seen classes changes by "
            f"{percent_text(entry['ece_change'], '+.2f')} points, which is "
            f"{'at most' if is_small else 'more than'} one point. The median change of the "
            f"log-odds of the seen classes is {entry['logit_change_median']:.2f}."
        )
    yield from _open_vocabulary_memory_conclusion(results)


def _reference_gain_conclusion(row: OpenVocabularyRow) -> str:
    """Return a clause with the gain in unseen mAP of the reference over a row."""
    difference = row.differences[UNSEEN_MAP]
    seeds, images = (
        f"{percent_text(-interval.high, '+.1f')} to {percent_text(-interval.low, '+.1f')}"
        for interval in (difference.over_seeds, difference.over_images)
    )
    gain = percent_text(-difference.value, "+.1f")
    verdict = "significant" if difference.excludes_zero else "not significant"
    return (
        f"the gain of {REFERENCE} in unseen mAP is {gain} points ({seeds} over seeds, {images} "
        f"over images) and is {verdict}"
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
