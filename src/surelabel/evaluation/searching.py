"""A search held against the truth: how many of the first pictures fulfil it."""

from dataclasses import dataclass

import numpy as np

from surelabel.errors import InputError
from surelabel.evaluation.judging import Evaluation
from surelabel.metrics.checked import checked_scores
from surelabel.retrieval import Hit, Query, parse
from surelabel.retrieval.judged import precision_of
from surelabel.retrieval.query import resolve
from surelabel.retrieval.search import Found, conjunction


@dataclass(frozen=True)
class Searched:
    """What a query found among pictures whose labels are known.

    Attributes:
        query: As it was asked, such as ``fork & apple & !knife``.
        hits: The pictures ranked first, the best first.
        right: Whether all of the query is true of each of them.
        pictures: How many were ranked: those of which all labels of the query are known.
        fulfilled: Of how many of these all of it is true.
        average_precision: Of the whole ranking, in (0, 1]; NaN where no picture fulfils it.
    """

    query: str
    hits: tuple[Hit, ...]
    right: tuple[bool, ...]
    pictures: int
    fulfilled: int
    average_precision: float

    @property
    def precision(self) -> float:
        """Share of right ones among the hits; NaN without any."""
        return float(np.mean(self.right)) if self.right else np.nan

    @property
    def prevalence(self) -> float:
        """Share of right ones among all pictures: what as many drawn blindly would reach."""
        return self.fulfilled / self.pictures if self.pictures else np.nan


def search_labelled(evaluation: Evaluation, query: str | Query, *, k: int = 10) -> Searched:
    """Search the judged pictures, as an index of them would, and look whether it is true.

    Pictures of which a label of the query is unknown are left out.

    Args:
        evaluation: Calibrated predictions and the truth.
        query: As in ``"fork & apple & !knife"``.
        k: How many pictures to look at, >= 1.

    Returns:
        The first ``k``, fewer where there are not so many; equal ones by raw score, then by row.

    Raises:
        InputError: the query breaks the grammar, or ``k`` is below 1.
        UnknownName: the query names a label that was not judged.
        NotFitted: nothing calibrated the predictions.
    """
    if k < 1:
        raise InputError(f"k is how many pictures to look at, at least 1. Got {k}.")
    asked = parse(query) if isinstance(query, str) else query
    predictions = evaluation.predictions
    literals = resolve(asked, predictions.names)
    columns, signs = (np.array(part) for part in zip(*literals, strict=True))
    names = [predictions.names[column] for column in columns]
    probabilities = predictions.probabilities[:, columns]
    scores, present, known = checked_scores(
        predictions.scores[:, columns],
        evaluation.targets[:, columns],
        evaluation.known[:, columns],
    )
    rows = np.flatnonzero(known.all(axis=1))
    true = (present == (signs > 0)).all(axis=1)
    logs = conjunction(np.asarray(predictions.logits).T, literals, rows)
    best = Found(rows, logs, (scores[rows] * signs).sum(axis=1)).best(k)
    hits = [
        Hit(
            str(predictions.paths[row]),
            float(np.exp(log)),
            dict(zip(names, probabilities[row].tolist(), strict=True)),
        )
        for row, log in zip(best.rows, best.scores, strict=True)
    ]
    return Searched(
        query=str(asked),
        hits=tuple(hits),
        right=tuple(true[best.rows].tolist()),
        pictures=len(rows),
        fulfilled=int(true[rows].sum()),
        average_precision=(
            precision_of(logs.astype(np.float32), true[rows]) if true[rows].any() else np.nan
        ),
    )
