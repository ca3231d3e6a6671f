"""Relevant pairs without an annotation of their own that a model ranks below irrelevant pairs."""

from dataclasses import dataclass

import numpy as np

from surelabel.retrieval.caption_retrieval.relevant_ranks import RelevantRanks


@dataclass(frozen=True)
class FalseNegatives:
    """Relevant items of other images or captions, and how many of them are ranked as irrelevant.

    Attributes:
        relevant_items: Number of pairs of a query and a relevant item that is not its own.
        missed_items: Number of these pairs whose item is not among the first R items of the query.
            R is the number of all relevant items of the query, with its own items.
    """

    relevant_items: int
    missed_items: int

    @property
    def rate(self) -> float:
        """Fraction of missed items, in [0, 1], or NaN if there is no such relevant item."""
        return self.missed_items / self.relevant_items if self.relevant_items else float("nan")


def count_false_negatives(ranks: RelevantRanks) -> FalseNegatives:
    """Count the relevant items of other images or captions that a model ranks as irrelevant.

    A dataset with one image per caption calls every other pair negative, although some of these
    pairs match; they are its false negatives. An item at a rank above R has at least one irrelevant
    item above it, because fewer than R other items are relevant. A perfect ranking misses no item.

    Args:
        ranks: Ranks of all relevant items, such as ``ranks.at_least(1)``.
    """
    n_relevant = np.repeat(ranks.relevant_counts, ranks.relevant_counts)
    is_other = ~ranks.is_own
    return FalseNegatives(int(is_other.sum()), int((is_other & (ranks.ranks > n_relevant)).sum()))
