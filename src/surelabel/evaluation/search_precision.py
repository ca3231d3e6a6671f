"""Evaluate a search on annotated images."""

from dataclasses import dataclass

import numpy as np

from surelabel.errors import InputError
from surelabel.evaluation.evaluation_result import Evaluation
from surelabel.metrics.arrays.input_validation import validate_ranking_metric_inputs
from surelabel.retrieval import Hit, Query, parse
from surelabel.retrieval.formula import is_formula_true, polarities_of_formula
from surelabel.retrieval.formula_probability import formula_log_probability, read_logits_of_columns
from surelabel.retrieval.formula_search import RankedRows
from surelabel.retrieval.literal_scores import average_precision_of_literal_scores
from surelabel.retrieval.query_resolution import resolve_label_query


@dataclass(frozen=True)
class SearchEvaluation:
    """Results of a query on annotated images.

    Attributes:
        query: Text of the query, such as ``fork & apple & !knife``.
        hits: Top-ranked images, in decreasing order of probability.
        is_relevant: Whether each hit fulfils the query.
        images: Number of ranked images. An image is left out if a target of the query is unknown.
        relevant_images: Number of ranked images that fulfil the query.
        average_precision: Average precision of the whole ranking, in (0, 1]. If no image fulfils
            the query, the value is NaN.
    """

    query: str
    hits: tuple[Hit, ...]
    is_relevant: tuple[bool, ...]
    images: int
    relevant_images: int
    average_precision: float

    @property
    def precision(self) -> float:
        """Return the fraction of relevant images among the hits, or NaN if there is no hit."""
        return float(np.mean(self.is_relevant)) if self.is_relevant else np.nan

    @property
    def prevalence(self) -> float:
        """Return the fraction of relevant images: the expected precision of a random ranking."""
        return self.relevant_images / self.images if self.images else np.nan


def evaluate_search_precision(
    evaluation: Evaluation, query: str | Query, *, k: int = 10
) -> SearchEvaluation:
    """Search the images of an evaluation and compare the hits with the targets.

    Images are ranked by the same scores as in an image index. An image is left out if its target is
    unknown for a label of the query.

    Args:
        evaluation: Evaluation of calibrated predictions.
        query: Query of labels such as ``"fork & (apple | pear) & !knife"``.
        k: Number of hits, >= 1.

    Returns:
        The search results, with the ``k`` top-ranked images, or all images if there are fewer than
        ``k``. Ties are broken by raw score, then by row.

    Raises:
        InputError: If the query has a syntax error or contains sentences or filters, if ``k`` is
            below 1, or if a known target of the query is neither 0 nor 1.
        UnknownName: If a label of the query is not in the evaluation.
        NotFitted: If the predictions are uncalibrated.
    """
    if k < 1:
        raise InputError(f"k, the number of hits, must be at least 1; got {k}.")
    parsed = parse(query) if isinstance(query, str) else query
    predictions = evaluation.predictions
    resolved = resolve_label_query(parsed, predictions.names)
    columns = list(resolved.titles)
    probabilities = predictions.probabilities[:, columns]
    scores, positive, known = validate_ranking_metric_inputs(
        predictions.scores[:, columns],
        evaluation.targets[:, columns],
        evaluation.known[:, columns],
    )
    rows = np.flatnonzero(known.all(axis=1))
    is_positive = np.zeros((len(predictions.names), len(positive)), bool)
    is_positive[columns] = positive.T
    is_relevant = is_formula_true(resolved.formula, is_positive)
    read_logits = read_logits_of_columns(np.asarray(predictions.logits).T)
    log_p = formula_log_probability(resolved.formula, read_logits, rows)
    polarities = polarities_of_formula(resolved.formula)
    signs = np.array([polarities[column] for column in columns])
    best = RankedRows(rows, log_p, (scores[rows] * signs).sum(axis=1)).select_best(k)
    hits = [
        Hit(
            str(predictions.paths[row]),
            float(np.exp(log_probability)),
            dict(zip(resolved.titles.values(), probabilities[row].tolist(), strict=True)),
        )
        for row, log_probability in zip(best.rows, best.scores, strict=True)
    ]
    return SearchEvaluation(
        query=str(parsed),
        hits=tuple(hits),
        is_relevant=tuple(is_relevant[best.rows].tolist()),
        images=len(rows),
        relevant_images=int(is_relevant[rows].sum()),
        average_precision=(
            average_precision_of_literal_scores(log_p.astype(np.float32), is_relevant[rows])
            if is_relevant[rows].any()
            else np.nan
        ),
    )
