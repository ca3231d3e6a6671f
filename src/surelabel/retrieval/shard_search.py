"""Search all shards of one index for the images with the highest probability."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.retrieval.formula import FALSE, Formula, restrict_filters
from surelabel.retrieval.formula_probability import LogProbability
from surelabel.retrieval.formula_scores import score_rows
from surelabel.retrieval.formula_search import (
    FormulaSearchPlan,
    RankedRows,
    merge_ranked_rows,
    plan_formula_search,
    search_formula,
)
from surelabel.retrieval.hits import Hit
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import IndexLabelTable, RowMask, RowNumbers
from surelabel.retrieval.nearest_rows import (
    NearestRows,
    row_blocks_for_search,
    starts_of_shards,
)
from surelabel.retrieval.query import format_formula
from surelabel.retrieval.query_encoding import SentenceScoring
from surelabel.retrieval.query_resolution import ResolvedQuery
from surelabel.retrieval.query_terms import quote_label
from surelabel.retrieval.row_filters import filter_mask
from surelabel.retrieval.sentence_label_table import SentenceLabelTable
from surelabel.retrieval.shards import Shard


@dataclass(frozen=True)
class SearchStep:
    """Step of a search: one formula without filters in one shard.

    Attributes:
        folder: Folder of the index.
        shard: Number of the shard.
        formula: Formula in the query language, without filters.
        plan: Plan of the search for the best rows that match the formula.
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

        Rows of equal probability are sorted by raw score, then by row number. If the query has an
        example and neither labels nor sentences, rows are sorted by their cosine. Rows are left out
        if the filters make a match impossible.

        Args:
            shards: Shards of the index, in row order.
            k: Number of rows, >= 1.
            nearest: Rows to which the search is restricted. If None, all rows are searched.

        Raises:
            InputError: If a filter needs dates or sizes, or a sentence needs image vectors, and the
                index has none.
            DataError: If the data of a queried label are damaged on disk, or if a file was
                truncated after it was opened.
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

        Raises:
            InputError, DataError: As for `best_rows`.
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

        Removed rows are left out. Images have the probability 0 if the filters make a match
        impossible.

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
        """Return the images of the given rows, with the probability of each term.

        Args:
            shards: Shards of the index, in row order.
            rows: Row numbers.
            scores: Log probability that each image matches the query.
            cosines: Cosine of each image and the example of the query, or None.

        Raises:
            DataError: If the stored path of a hit leaves the root, or the table of the paths is
                damaged.
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
        """Yield formula, label table and row mask for each combination of filter values.

        The formula contains no filters. Removed rows are not in the mask. Combinations without a
        row, or whose formula is always false, are left out. If the mask is None, all rows of the
        shard are searched.
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
        masks = [filter_mask(shard, table, self.root, query_filter) for query_filter in filters]
        for formula, mask in _combine_filters(self.query.formula, masks, allowed):
            yield formula, table, mask

    def _table_of(self, shard: Shard) -> IndexLabelTable:
        """Return the label table of a shard, with the sentences of the query."""
        table = shard.label_table
        if self.scoring is None:
            return table
        n_sentences = len(self.query.sentences)
        logits = np.full((n_sentences, shard.n_rows), -np.inf, np.float32)
        for rows, vectors in row_blocks_for_search(shard):
            logits[:, rows] = self.scoring.logits(vectors).T
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
                dict(zip(sentence_titles, row_variances, strict=False)) if row_variances else {},
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


def _combine_filters(
    formula: Formula, masks: Sequence[RowMask], allowed: RowMask | None
) -> Iterator[tuple[Formula, RowMask]]:
    """Yield the formula for each combination of filters that occurs, and the mask of its rows.

    Args:
        formula: Formula, which is not yielded if it is false.
        masks: Mask of each filter, by number.
        allowed: Mask of the rows that are searched. If None, all rows are searched.
    """
    if formula == FALSE:
        return
    if not masks:
        if allowed is not None:
            yield formula, allowed
        return
    for value in (False, True):
        mask = masks[-1] if value else ~masks[-1]
        mask = mask if allowed is None else mask & allowed
        if mask.any():
            restricted = restrict_filters(formula, {len(masks) - 1: value})
            yield from _combine_filters(restricted, masks[:-1], mask)
