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
                f"The unseen mAP is {unseen_map(reference)} % with {REFERENCE} and "
                f"{unseen_map(row)} % with {row.title}. "
                f"{_reference_gain_conclusion(row, row.title)}"
            )
    for heading, title, description in REPORTED_DIFFERENCES:
        for row in results.tables[heading]:
            if row.title == title:
                yield _reference_gain_conclusion(row, description)
    yield (
        f"The ECE of {REFERENCE} is {unseen_ece(reference)} % on unseen classes and "
        f"{seen_ece(reference)} % on seen classes. The Brier skill is {unseen_skill(reference)} % "
        f"on unseen classes and {seen_skill(reference)} % on seen classes."
    )
    for entry in results.vocabulary_change:
        is_small = abs(entry["ece_change"]) <= MAX_ECE_CHANGE
        yield (
            f"With {entry['names']:,} more labels, the largest ECE change of the seen classes over "
            f"all seeds is {percent_text(entry['ece_change'], '+.2f')} points. The accepted limit "
            f"of one point is {'not exceeded' if is_small else 'exceeded'}. For seen classes, "
            f"the median absolute change of the log-odds is {entry['logit_change_median']:.2f}."
        )
    yield from _open_vocabulary_memory_conclusion(results)


def _reference_gain_conclusion(row: OpenVocabularyRow, description: str) -> str:
    """Return sentences on the change of the unseen mAP from a row to the reference."""
    difference = row.differences[UNSEEN_MAP]
    seeds, images = (
        f"{percent_text(-interval.high, '+.1f')} to {percent_text(-interval.low, '+.1f')}"
        for interval in (difference.over_seeds, difference.over_images)
    )
    gain = percent_text(-difference.value, "+.1f")
    verdict = "significant" if difference.excludes_zero else "not significant"
    return (
        f"Compared with {description}, {REFERENCE} changes the unseen mAP by {gain} points "
        f"(95 % intervals: {seeds} over seeds, {images} over images). This change is {verdict}."
    )


def _open_vocabulary_memory_conclusion(results: OpenVocabularyResults) -> Iterator[str]:
    memory = {entry["title"]: entry["train_memory_mib"] for entry in results.costs}
    matching = memory.get("with ladder and matching")
    if matching is not None and ALL_LAYER_PROMPTS in memory:
        share = matching / memory[ALL_LAYER_PROMPTS]
        yield (
            f"Training with ladder and matching uses {matching:.0f} MiB of memory, which is "
            f"{100 * share:.0f} % of the memory for prompts in all layers of both towers. "
            f"The goal of at most {100 * MEMORY_GOAL:.0f} % is "
            f"{'reached' if share <= MEMORY_GOAL else 'not reached'}."
        )
