"""Search of all shards of one index for the images with the highest probability."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.errors import InputError
from surelabel.retrieval.formula import FALSE, Formula, restrict_filters
from surelabel.retrieval.formula_probability import LogProbability
from surelabel.retrieval.formula_search import (
    FormulaSearchPlan,
    RankedRows,
    merge_ranked_rows,
    plan_formula_search,
    score_rows,
    search_formula,
)
from surelabel.retrieval.hits import Hit
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import IndexLabelTable, RowMask, RowNumbers
from surelabel.retrieval.query import format_formula
from surelabel.retrieval.query_encoding import SentenceScoring
from surelabel.retrieval.query_resolution import ResolvedQuery
from surelabel.retrieval.query_terms import quote_label
from surelabel.retrieval.row_filters import filter_mask
from surelabel.retrieval.sentence_label_table import SentenceLabelTable
from surelabel.retrieval.shards import Shard


@dataclass(frozen=True)
class NearestRows:
    """Rows that are most similar to an example, to which a search is restricted.

    Attributes:
        rows: Row numbers.
        cosines: Cosine of each row and the example, in [-1, 1].
    """

    rows: RowNumbers
    cosines: npt.NDArray[np.float64]

    def between(self, start: int, stop: int) -> "NearestRows":
        """Return the rows in [start, stop), counted from ``start``."""
        is_inside = (self.rows >= start) & (self.rows < stop)
        return NearestRows(self.rows[is_inside] - start, self.cosines[is_inside])

    def cosines_of(self, rows: RowNumbers) -> npt.NDArray[np.float64]:
        """Return the cosines of some of the rows."""
        order = np.argsort(self.rows)
        return self.cosines[order[np.searchsorted(self.rows[order], rows)]]


@dataclass(frozen=True)
class SearchStep:
    """Step of a search: one formula without filters in one shard.

    Attributes:
        folder: Folder of the index.
        shard: Number of the shard.
        formula: Formula in the query language, without filters.
        plan: How the rows are found.
    """

    folder: str
    shard: int
    formula: str
    plan: FormulaSearchPlan

    def __str__(self) -> str:
        """Return a line that describes the step."""
        plan = self.plan
        floor = ""
        if plan.floor > -np.inf:
            floor = f", probability of each hit at least {np.exp(plan.floor):.3g}"
        return (
            f"{self.folder}, shard {self.shard}: {self.formula}: {plan.n_allowed:,} images, "
            f"{plan.method}, {plan.n_read:,} rows{floor}"
        )


@dataclass(frozen=True)
class ShardQuery:
    """Query that is searched in the shards of one index.

    Attributes:
        query: Query whose labels are columns.
        n_labels: Number of labels of the index, c.
        root: Root folder of the stored paths.
        scoring: Log-odds of the sentences of the query. If there is no sentence, the value is None.
    """

    query: ResolvedQuery
    n_labels: int
    root: IndexRoot
    scoring: SentenceScoring | None = None

    def best_rows(
        self, shards: Sequence[Shard], k: int, nearest: NearestRows | None = None
    ) -> RankedRows:
        """Return the ``k`` rows of an index with the highest probability, by exact search.

        Rows of equal probability are sorted by raw score, then by row number; if the query has
        neither labels nor sentences, they are sorted by their cosine before. Rows that do not match
        because of the filters alone are left out.

        Args:
            shards: Shards of the index, in row order.
            k: Number of rows, >= 1.
            nearest: Rows to which the search is restricted. If None, all rows are searched.

        Raises:
            InputError: If a filter needs dates or sizes, or a sentence needs image vectors, that
                the index does not have.
            DataError: If the data of a queried label is damaged on disk, or a file was truncated
                after it was opened.
        """
        parts, starts = list[RankedRows](), list[int]()
        for shard, start in zip(shards, starts_of_shards(shards), strict=True):
            near = None if nearest is None else nearest.between(start, start + shard.n_rows)
            for formula, table, mask in self._restricted_formulas(shard, near):
                if near is not None and mask is not None and not self.query.titles:
                    rows = np.flatnonzero(mask)
                    parts.append(RankedRows(rows, np.zeros(len(rows)), near.cosines_of(rows)))
                else:
                    parts.append(search_formula(table, formula, k, mask))
                starts.append(start)
        return merge_ranked_rows(parts, starts).select_best(k)

    def plan(
        self, shards: Sequence[Shard], k: int, nearest: NearestRows | None = None
    ) -> list[SearchStep]:
        """Return the steps of a search, one for each shard and combination of filters.

        Args:
            shards: Shards of the index, in row order.
            k: Number of rows, >= 1.
            nearest: Rows to which the search is restricted. If None, all rows are searched.
        """
        terms = {
            column: quote_label(title) if column < self.n_labels else title
            for column, title in self.query.titles.items()
        }
        steps = []
        for shard, start in zip(shards, starts_of_shards(shards), strict=True):
            near = None if nearest is None else nearest.between(start, start + shard.n_rows)
            for formula, table, mask in self._restricted_formulas(shard, near):
                plan = plan_formula_search(table, formula, k, mask)
                text = format_formula(formula, terms)
                steps.append(SearchStep(str(shard.folder), shard.number, text, plan))
        return steps

    def probabilities(self, shards: Sequence[Shard]) -> LogProbability:
        """Return the probability that each image matches the query, ``(n,)``, in row order.

        Removed rows are left out. Images that do not match because of the filters alone have the
        probability 0.

        Args:
            shards: Shards of the index, in row order.

        Raises:
            InputError, DataError: As for `best_rows`.
        """
        parts = [np.empty(0)]
        for shard in shards:
            values = np.zeros(shard.n_rows)
            for formula, table, mask in self._restricted_formulas(shard, None):
                rows = slice(None) if mask is None else np.flatnonzero(mask)
                values[rows] = np.exp(score_rows(table, formula, rows))
            parts.append(values if shard.is_active is None else values[shard.is_active])
        return np.concatenate(parts)

    def hits(
        self,
        shards: Sequence[Shard],
        rows: RowNumbers,
        scores: LogProbability,
        cosines: npt.NDArray[np.float64] | None = None,
    ) -> list[Hit]:
        """Return the images of some rows, with the probability of each term.

        Args:
            shards: Shards of the index, in row order.
            rows: Row numbers.
            scores: Log probability that each image matches the query.
            cosines: Cosine of each image and the example of the query, or None.

        Raises:
            DataError: If the stored path of a hit leaves the root.
        """
        hits: dict[int, Hit] = {}
        for shard, start in zip(shards, starts_of_shards(shards), strict=True):
            in_shard = (rows >= start) & (rows < start + shard.n_rows)
            if not in_shard.any():
                continue
            shard_hits = self._hits_of_shard(
                shard,
                rows[in_shard] - start,
                np.exp(scores[in_shard]).tolist(),
                [None] * in_shard.sum() if cosines is None else cosines[in_shard].tolist(),
            )
            hits |= zip(rows[in_shard].tolist(), shard_hits, strict=True)
        return [hits[row] for row in rows.tolist()]

    def _restricted_formulas(
        self, shard: Shard, nearest: NearestRows | None
    ) -> Iterator[tuple[Formula, IndexLabelTable, RowMask | None]]:
        """Yield the formula without filters for each combination of filters, and its rows.

        Rows that were removed, and rows that match no formula, are left out. If the mask of the
        rows is None, they are all rows that were not removed.
        """
        labels = [column for column in self.query.columns if column < self.n_labels]
        shard.mapped_files.verify_checksums(labels)
        allowed = shard.is_active
        if nearest is not None:
            is_near = np.zeros(shard.n_rows, bool)
            is_near[nearest.rows] = True
            allowed = is_near if allowed is None else is_near & allowed
        table = self._table_of(shard)
        filters = self.query.filters
        if not filters:
            yield self.query.formula, table, allowed
            return
        combination = np.zeros(shard.n_rows, np.uint16)  # bit i is the value of filter i
        for number, query_filter in enumerate(filters):
            mask = filter_mask(shard, table, self.root, query_filter)
            combination |= mask.astype(np.uint16) << np.uint16(number)
        for bits in np.flatnonzero(np.bincount(combination)).tolist():
            values = [bool(bits >> number & 1) for number in range(len(filters))]
            formula = restrict_filters(self.query.formula, values)
            if formula != FALSE:
                mask = combination == bits
                yield formula, table, mask if allowed is None else mask & allowed

    def _table_of(self, shard: Shard) -> IndexLabelTable:
        """Return the label table of a shard, with the sentences of the query."""
        table = shard.label_table
        if self.scoring is None:
            return table
        n_sentences = len(self.query.sentences)
        logits = np.full((n_sentences, shard.n_rows), -np.inf, np.float32)
        rows = np.arange(shard.n_rows)
        rows, start = rows if shard.is_active is None else rows[shard.is_active], 0
        for vectors in feature_blocks_for_search(shard):
            block = rows[start : start + len(vectors)]
            logits[:, block] = self.scoring.logits(vectors).T
            start += len(vectors)
        return SentenceLabelTable(table, self.n_labels, logits)

    def _hits_of_shard(
        self,
        shard: Shard,
        rows: RowNumbers,
        probabilities: list[float],
        cosines: Sequence[float | None],
    ) -> list[Hit]:
        titles = self.query.titles
        sentence_logits = np.empty((0, len(rows)), np.float32)
        variances = None
        if self.scoring is not None:
            vectors = np.asarray(shard.mapped_files.arrays["features"][rows])
            sentence_logits = self.scoring.logits(vectors).T
            variances = self.scoring.variances(vectors)
        lines = [
            shard.label_table.logits(column, rows)
            if column < self.n_labels
            else sentence_logits[column - self.n_labels]
            for column in titles
        ]
        logits = np.reshape(lines, (len(lines), len(rows))).astype(np.float64)
        sentence_titles = [title for column, title in titles.items() if column >= self.n_labels]
        columns = [column - self.n_labels for column in titles if column >= self.n_labels]
        term_values = expit(logits).T.tolist()
        uncertainties = [[]] * len(rows) if variances is None else variances[:, columns].tolist()
        return [
            Hit(
                self.root.resolve(path),
                probability,
                dict(zip(titles.values(), values, strict=True)),
                dict(zip(sentence_titles, row_variances, strict=False)),
                cosine,
            )
            for path, probability, values, row_variances, cosine in zip(
                shard.paths.of_rows(rows),
                probabilities,
                term_values,
                uncertainties,
                cosines,
                strict=True,
            )
        ]


def feature_blocks_for_search(shard: Shard) -> Iterator[npt.NDArray[np.float16]]:
    """Yield the image vectors of the rows that were not removed, in blocks, ``(b, d)``.

    Raises:
        InputError: If the shard has no image vectors.
        DataError: If the image vectors are damaged or not finite.
    """
    if shard.feature_width is None and len(shard):
        raise InputError(
            f"Sentences and like: need image vectors; {shard.folder} has none. Build the index "
            "again from images (`surelabel index`)."
        )
    for vectors in shard.active_feature_blocks():
        if not np.isfinite(vectors).all():
            raise shard.mapped_files.damage_error("features", "an image vector is not finite")
        yield vectors


def nearest_rows_of_shards(
    shards: Sequence[Shard], vector: npt.NDArray[np.floating], count: int
) -> NearestRows:
    """Return the rows whose image vectors have the largest cosines with a vector, in order.

    Rows of equal cosine are sorted by row number. Removed rows are left out.

    Args:
        shards: Shards of the index, in row order.
        vector: Vector of an image, ``(d,)``.
        count: Number of rows, >= 1.

    Raises:
        InputError: If the index has no image vectors, or vectors of another width.
        DataError: If the image vectors are damaged.
    """
    best = NearestRows(np.empty(0, np.int64), np.empty(0))
    direction = _unit_vectors(np.asarray(vector, np.float32)[None])[0]
    for shard, start in zip(shards, starts_of_shards(shards), strict=True):
        width = shard.feature_width
        if width is not None and width != len(direction):
            raise InputError(
                f"The vector of the example must have the width of those in {shard.folder}, "
                f"{width}; got {len(direction)}. Use the recognizer of the index."
            )
        rows = np.arange(shard.n_rows) + start
        rows, position = rows if shard.is_active is None else rows[shard.is_active], 0
        for vectors in feature_blocks_for_search(shard):
            cosines = (_unit_vectors(vectors.astype(np.float32)) @ direction).astype(np.float64)
            block = rows[position : position + len(vectors)]
            position += len(vectors)
            best = select_nearest_rows(
                np.append(best.rows, block), np.append(best.cosines, cosines), count
            )
    return best


def select_nearest_rows(
    rows: RowNumbers, cosines: npt.NDArray[np.float64], count: int
) -> NearestRows:
    """Return the rows with the largest cosines, in order; equal ones are sorted by row number."""
    order = np.lexsort((rows, -cosines))[:count]
    return NearestRows(rows[order], cosines[order])


def starts_of_shards(shards: Sequence[Shard]) -> list[int]:
    """Return the number of the first row of each shard."""
    return list(accumulate((shard.n_rows for shard in shards), initial=0))[: len(shards)]


def _unit_vectors(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return vectors ``(n, d)`` of length 1; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit
