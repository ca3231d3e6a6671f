"""Describe the approximations of an index that affect the result of a search."""

from dataclasses import dataclass

from surelabel.retrieval.query import Query
from surelabel.retrieval.query_terms import LabelTerm, LabelThreshold


@dataclass(frozen=True)
class SearchApproximation:
    """Approximations of an index that affect a search; if both are None, the search is exact.

    Attributes:
        drop_below: Limit below which probabilities of the queried labels were replaced by their
            mean. If they were not replaced, or no label is queried, the value is None.
        ann_recall: Mean recall@100 of the graphs that are searched for ``like:``, or None if all
            image vectors are compared.
    """

    drop_below: float | None = None
    ann_recall: float | None = None

    @property
    def sentences(self) -> list[str]:
        """Return one or two sentences for each approximation, for display."""
        notes = []
        if self.drop_below is not None:
            notes.append(f"{describe_sparse_form(self.drop_below)} Search results are approximate.")
        if self.ann_recall is not None:
            notes.append(
                "The nearest images of like: are approximate; the measured recall@100 is "
                f"{self.ann_recall:.3f}."
            )
        return notes


def describe_sparse_form(drop_below: float) -> str:
    """Return a sentence on the probabilities that an index in sparse form stores.

    Example:
        >>> print(describe_sparse_form(0.01)[:58])
        The index stores only probabilities of at least 0.01; smal
    """
    return (
        f"The index stores only probabilities of at least {drop_below:g}; smaller probabilities "
        "are replaced by their mean for each label."
    )


def approximation_of_search(
    query: Query, drop_below: float | None, ann_recall: float | None
) -> SearchApproximation:
    """Return the approximations that affect a query.

    Args:
        query: Query of the search.
        drop_below: Value of ``Index.drop_below``.
        ann_recall: Mean recall@100 of the graphs that the search for the example of the query
            reads, or None if it reads no graph.
    """
    has_label = any(isinstance(term, LabelTerm) for term in query.terms)
    has_label |= any(isinstance(item, LabelThreshold) for item in query.filters)
    return SearchApproximation(
        drop_below if has_label else None, None if query.like is None else ann_recall
    )
