"""Define the results of a search: an image, and a list of images that is shown as a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from surelabel.retrieval.query import Query
from surelabel.retrieval.query_terms import LabelTerm, QueryTerm
from surelabel.summaries import Summary

N_SUMMARY_HITS = 20  # images in the summary of a result
N_SUMMARY_TERMS = 8  # terms of the query in the summary of a result


@dataclass(frozen=True)
class Hit:
    """One image in a search result.

    Attributes:
        path: Absolute path of the image.
        probability: Probability that the image matches the query. Labels and sentences are treated
            as independent given the image.
        terms: Probability that each label of the query, wanted or unwanted, is positive in the
            image, by label name. Also the probability that the image matches each sentence, by the
            text of the sentence in the query language.
        uncertainties: Variance of the score of each sentence, by its text in the query language. A
            lower variance means a more reliable probability. If the method of the index does not
            estimate variances, the mapping is empty.
        similarity: Cosine of the image and the example of ``like:``, in [-1, 1]. If the query has
            no example, the value is None.
    """

    path: str
    probability: float
    terms: dict[str, float]
    uncertainties: dict[str, float] = field(default_factory=dict)
    similarity: float | None = None

    def __repr__(self) -> str:
        """Return the values of `as_dict` as text."""
        return Summary("Hit", self.as_dict()).as_text()

    def _repr_html_(self) -> str:
        return Summary("Hit", self.as_dict()).as_markup()

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes as a JSON object, without empty ``uncertainties`` and None."""
        values: dict[str, Any] = {"path": self.path, "probability": self.probability}
        values["terms"] = self.terms
        if self.uncertainties:
            values["uncertainties"] = self.uncertainties
        if self.similarity is not None:
            values["similarity"] = self.similarity
        return values


class HitList(list[Hit]):
    """List of the images of a search result, in order, which is shown as a table.

    Attributes:
        query: Query of the search. If None, only the probability of the images is shown.
        rows: Row number of each image in the searched indexes, counted with the rows of removed
            images. If the images are not the result of a search, the list is empty.

    Example:
        >>> hits = [Hit("a.jpg", 0.72, {"fork": 0.9, "knife": 0.2})]
        >>> HitList(hits, Query.of_labels(["fork"], ["knife"]))
        HitList(query='fork & !knife', images=1)
          image  probability  fork  !knife
          a.jpg  0.72         0.9   0.8
    """

    def __init__(
        self, hits: Iterable[Hit] = (), query: Query | None = None, rows: Sequence[int] = ()
    ) -> None:
        super().__init__(hits)
        self.query, self.rows = query, list(rows)

    def __repr__(self) -> str:
        """Return the query, and the first images with the probability of each term."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        """Return the summary, with a column for the probability of each term of the query."""
        signs = self.query.signed_terms if self.query else []
        titles = [_signed_title(term, sign) for term, sign in signs][:N_SUMMARY_TERMS]
        rows = []
        for hit in self[:N_SUMMARY_HITS]:
            cells = [f"{p:.3g}" for p in hit_term_probabilities(hit, self.query)]
            n_missing = max(len(titles) - len(cells), 0)  # for hits that the user added
            rows.append(
                (hit.path, f"{hit.probability:.3g}", *cells[: len(titles)], *[""] * n_missing)
            )
        header = ("image", "probability", *titles)
        properties = {"query": str(self.query or ""), "images": len(self)}
        return Summary("HitList", properties, header, rows, len(self))


def hit_term_probabilities(hit: Hit, query: Query | None) -> list[float]:
    """Return the probability of each term of a query, p for wanted and 1 - p for unwanted terms.

    A term that is both wanted and unwanted has the probability p. Without a query, the list is
    empty.

    Args:
        hit: Image of a search result, whose terms are in the order of ``query.signed_terms``.
        query: Query of the search, or None.
    """
    signs = [sign for _, sign in query.signed_terms] if query else []
    return [1 - p if sign < 0 else p for p, sign in zip(hit.terms.values(), signs, strict=False)]


def _signed_title(term: QueryTerm, sign: int) -> str:
    title = term.name if isinstance(term, LabelTerm) else str(term)
    return f"!{title}" if sign < 0 else title
