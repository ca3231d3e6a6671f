"""Search of all shards of one index for the images with the highest probability."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from scipy.special import expit

from surelabel.retrieval.conjunction_search import (
    ConjunctionSearchRows,
    Floats,
    QueryLiteral,
    conjunction_search_log_probability_of_rows,
    conjunction_search_top_k,
    merge_conjunction_search_rows,
)
from surelabel.retrieval.hits import Hit
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.label_table import RowNumbers
from surelabel.retrieval.shards import Shard


def best_rows_of_shards(
    shards: Sequence[Shard], literals: Sequence[QueryLiteral], k: int
) -> ConjunctionSearchRows:
    """Return the ``k`` rows of an index with the highest probability, by exact search.

    Rows of equal probability are sorted by raw score, then by row number.

    Args:
        shards: Shards of the index, in row order.
        literals: Column of each label of the query, with +1 if wanted or -1 if unwanted.
        k: Number of rows, >= 1.

    Raises:
        DataError: If the data of a queried label is damaged on disk, or a file was truncated after
            it was opened.
    """
    for shard in shards:
        shard.mapped_files.verify_checksums([column for column, _ in literals])
    parts = [conjunction_search_top_k(shard.label_table, literals, k) for shard in shards]
    return merge_conjunction_search_rows(parts, _starts_of_shards(shards)).select_best(k)


def hits_of_shards(
    shards: Sequence[Shard],
    label_names: dict[int, str],
    root: IndexRoot,
    rows: RowNumbers,
    scores: Floats,
) -> list[Hit]:
    """Return the images of some rows of an index, with the probability of each label of a query.

    Args:
        shards: Shards of the index, in row order.
        label_names: Name of each label of the query, by column.
        root: Root folder of the stored paths.
        rows: Row numbers.
        scores: Log probability that each image matches the query.

    Raises:
        DataError: If the stored path of a hit leaves the root.
    """
    hits: dict[int, Hit] = {}
    for shard, start in zip(shards, _starts_of_shards(shards), strict=True):
        in_shard = (rows >= start) & (rows < start + shard.n_rows)
        shard_hits = _hits_of_shard(
            shard, rows[in_shard] - start, scores[in_shard], label_names, root
        )
        hits |= zip(rows[in_shard].tolist(), shard_hits, strict=True)
    return [hits[row] for row in rows.tolist()]


def probabilities_of_shards(shards: Sequence[Shard], literals: Sequence[QueryLiteral]) -> Floats:
    """Return the probability that each image matches a query, ``(n,)``, without removed rows.

    Args:
        shards: Shards of the index, in row order.
        literals: Column of each label of the query, with +1 if wanted or -1 if unwanted.

    Raises:
        DataError: If the data of a queried label is damaged on disk.
    """
    parts = [np.empty(0)]
    for shard in shards:
        shard.mapped_files.verify_checksums([column for column, _ in literals])
        table, is_active = shard.label_table, shard.is_active
        values = np.exp(conjunction_search_log_probability_of_rows(table, literals, slice(None)))
        parts.append(values if is_active is None else values[is_active])
    return np.concatenate(parts)


def _starts_of_shards(shards: Sequence[Shard]) -> list[int]:
    """Return the number of the first row of each shard."""
    return list(accumulate((shard.n_rows for shard in shards), initial=0))[: len(shards)]


def _hits_of_shard(
    shard: Shard, rows: RowNumbers, scores: Floats, label_names: dict[int, str], root: IndexRoot
) -> list[Hit]:
    """Return the images of some rows, with the probability of each label of the query."""
    lines = [shard.label_table.logits(column, rows) for column in label_names]
    probabilities = expit(np.stack(lines, axis=1).astype(np.float64))
    paths = shard.paths.of_rows(rows)
    return [
        Hit(
            root.resolve(path),
            probability,
            dict(zip(label_names.values(), label_probabilities, strict=True)),
        )
        for path, probability, label_probabilities in zip(
            paths, np.exp(scores).tolist(), probabilities.tolist(), strict=True
        )
    ]
