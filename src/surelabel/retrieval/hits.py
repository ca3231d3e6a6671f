"""Results of a search: the images, and a list of images that is shown as a table."""

from collections.abc import Iterable
from dataclasses import dataclass

from surelabel.retrieval.query import Query
from surelabel.summaries import Summary

N_SUMMARY_HITS = 20  # images in the summary of a result
N_SUMMARY_TERMS = 8  # terms of the query in the summary of a result


@dataclass(frozen=True)
class Hit:
    """One image in a search result.

    Attributes:
        path: Absolute path of the image.
        probability: Probability that the image matches the query: the product of the probabilities
            of the terms. The terms are treated as independent given the image.
        terms: Probability that each label of the query, wanted or unwanted, is positive in the
            image, by label name.
    """

    path: str
    probability: float
    terms: dict[str, float]

    def __repr__(self) -> str:
        """Return the path, the probability and the probability of each label."""
        return Summary("Hit", vars(self)).as_text()

    def _repr_html_(self) -> str:
        return Summary("Hit", vars(self)).as_markup()


class HitList(list[Hit]):
    """Images of a search, sorted by decreasing probability; a list that is shown as a table.

    Attributes:
        query: Query of the search. If None, only the probability of the images is shown.

    Example:
        >>> hits = [Hit("a.jpg", 0.72, {"fork": 0.9, "knife": 0.2})]
        >>> HitList(hits, Query(("fork",), ("knife",)))
        HitList(query='fork & !knife', images=1)
          image  probability  fork  !knife
          a.jpg  0.72         0.9   0.8
    """

    def __init__(self, hits: Iterable[Hit] = (), query: Query | None = None) -> None:
        super().__init__(hits)
        self.query = query

    def __repr__(self) -> str:
        """Return the query, and the first images with the probability of each term."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        """Return the summary, with a column for the probability of each term of the query."""
        query = self.query
        wanted, unwanted = (query.wanted, query.unwanted) if query else ((), ())
        terms = [*wanted, *(f"!{name}" for name in unwanted)][:N_SUMMARY_TERMS]
        rows = []
        for hit in self[:N_SUMMARY_HITS]:
            cells = [f"{p:.3g}" for p in _hit_term_probabilities(hit, len(wanted))]
            n_missing = max(len(terms) - len(cells), 0)  # of hits that were added by the user
            rows.append(
                (hit.path, f"{hit.probability:.3g}", *cells[: len(terms)], *[""] * n_missing)
            )
        header = ("image", "probability", *terms)
        properties = {"query": str(query or ""), "images": len(self)}
        return Summary("HitList", properties, header, rows, len(self))


def _hit_term_probabilities(hit: Hit, n_wanted: int) -> list[float]:
    """Return the probability of each term of a query: p for wanted, 1 - p for unwanted labels."""
    return [p if i < n_wanted else 1 - p for i, p in enumerate(hit.terms.values())]
