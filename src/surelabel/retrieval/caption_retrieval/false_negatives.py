"""Count the false negatives of caption datasets: relevant pairs that are annotated as negative."""

from dataclasses import dataclass

import numpy as np

from surelabel.retrieval.caption_retrieval.relevant_ranks import RelevantRanks


@dataclass(frozen=True)
class FalseNegatives:
    """Number of relevant items that were annotated for other queries, and number of missed ones.

    Attributes:
        relevant_items: Number of pairs of a query and a relevant item that was annotated for
            another query.
        missed_items: Number of these pairs whose item is not among the first R items of the query.
            R is the number of all relevant items of the query, including its own items.
    """

    relevant_items: int
    missed_items: int

    @property
    def rate(self) -> float:
        """Return the fraction of missed items, in [0, 1], or NaN if ``relevant_items`` is 0."""
        return self.missed_items / self.relevant_items if self.relevant_items else float("nan")


def count_false_negatives(ranks: RelevantRanks) -> FalseNegatives:
    """Count the relevant items that were annotated for other queries, and those ranked too low.

    In a dataset with one image per caption, every other pair is negative. Some of the negative
    pairs match; they are the false negatives of the dataset. A relevant item is missed if its rank
    is greater than R, the number of relevant items of the query. At least one irrelevant item is
    then ranked above it, because only R - 1 other items are relevant. A perfect ranking misses no
    item.

    Args:
        ranks: Ranks of all relevant items, such as ``ranks.at_least(1)``.
    """
    n_relevant = np.repeat(ranks.relevant_counts, ranks.relevant_counts)
    is_other = ~ranks.is_own
    return FalseNegatives(int(is_other.sum()), int((is_other & (ranks.ranks > n_relevant)).sum()))
