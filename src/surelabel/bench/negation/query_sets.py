"""Select pairs (a, b) for the query `a & !b`, and sample conjunctions of literals."""

from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags


@dataclass(frozen=True)
class NegationQuery:
    """A conjunction of literals.

    Attributes:
        wanted: Columns of the labels that must be positive, at least one.
        unwanted: Columns of the labels that must be negative.
    """

    wanted: tuple[int, ...]
    unwanted: tuple[int, ...] = ()

    def matches(self, is_positive: Flags) -> Flags:
        """Return whether each image matches the conjunction, ``(n,)``.

        Args:
            is_positive: True for positive targets, ``(n, c)``.
        """
        matches = is_positive[:, list(self.wanted)].all(axis=1)
        return np.asarray(matches & ~is_positive[:, list(self.unwanted)].any(axis=1))

    def probability(self, p: Array) -> Array:
        """Return the product of the probabilities of all literals, ``(n,)``.

        Args:
            p: Probabilities of the labels in [0, 1], ``(n, c)``.
        """
        product = p[:, list(self.wanted)].prod(axis=1)
        return np.asarray(product * (1 - p[:, list(self.unwanted)]).prod(axis=1))


def negation_query_pairs(is_positive: Flags, *, min_relevant: int, min_both: int) -> ColumnIndices:
    """Return the ordered pairs (a, b) of labels with enough images for `a & !b`, ``(q, 2)``.

    Args:
        is_positive: True for positive targets, ``(n, c)``.
        min_relevant: Minimum number of images on which a is positive and b is negative.
        min_both: Minimum number of images on which a and b are positive.
    """
    y = is_positive.astype(float)
    both = y.T @ y
    only_first = y.sum(axis=0)[:, None] - both
    is_query = (only_first >= min_relevant) & (both >= min_both)
    np.fill_diagonal(is_query, False)
    return np.argwhere(is_query)


def sample_conjunctions(
    is_positive: Flags, length: int, count: int, *, with_unwanted: bool, seed: int = 0
) -> list[NegationQuery]:
    """Sample distinct conjunctions of ``length`` literals that annotated images match.

    An image with enough positive labels is sampled, and the wanted labels are sampled from its
    positive labels. The unwanted labels are sampled from the other labels, with a probability
    proportional to the number of images that also have the first wanted label.

    Args:
        is_positive: True for positive targets, ``(n, c)``.
        length: Number of literals, >= 1.
        count: Number of samples. Repeated conjunctions are left out.
        with_unwanted: Whether at least one literal is unwanted, for ``length`` >= 2. If True, the
            number of wanted labels is uniform from 1 to ``length`` - 1. If False, all labels are
            wanted.
        seed: Seed of the sampling.

    Returns:
        At most ``count`` conjunctions, sorted. If no image has enough positive labels, the list is
        empty.
    """
    rng = np.random.default_rng([seed, length, with_unwanted])
    y = is_positive.astype(float)
    both = y.T @ y
    n_labels = is_positive.sum(axis=1)
    conjunctions = set[NegationQuery]()
    for _ in range(count):
        n_wanted = int(rng.integers(1, length)) if with_unwanted else length
        rows = np.flatnonzero(n_labels >= n_wanted)
        if not rows.size:
            continue
        labels = is_positive[rng.choice(rows)]
        wanted = rng.choice(np.flatnonzero(labels), n_wanted, replace=False)
        chances = np.where(labels, 0, both[wanted[0]])
        n_unwanted = length - n_wanted
        if (chances > 0).sum() < n_unwanted:
            continue
        unwanted = (
            rng.choice(len(chances), n_unwanted, replace=False, p=chances / chances.sum())
            if n_unwanted
            else np.empty(0, int)
        )
        conjunctions.add(
            NegationQuery(tuple(sorted(wanted.tolist())), tuple(sorted(unwanted.tolist())))
        )
    return sorted(conjunctions, key=lambda c: (c.wanted, c.unwanted))
