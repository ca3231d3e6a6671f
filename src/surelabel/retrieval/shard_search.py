"""Search of all shards of an index for the images with the highest probability."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from surelabel.retrieval.conjunction_search import (
    ConjunctionSearchRows,
    Floats,
    QueryLiteral,
    RowNumbers,
    conjunction_search_log_probability,
    conjunction_search_top_k,
    merge_conjunction_search_rows,
)
from surelabel.retrieval.hits import Hit
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.search_limits import FIRST_ROWS, SearchLimits
from surelabel.retrieval.shards import Shard


def search_shards(
    shards: Sequence[Shard],
    literals: Sequence[QueryLiteral],
    limits: SearchLimits,
    names: Sequence[str],
    root: IndexRoot,
) -> list[Hit]:
    """Return the images with the highest probability, by exact search.

    Images of equal probability are sorted by raw score, then by row number.

    Args:
        shards: Shards of the index, in row order.
        literals: Column of each label of the query, with +1 if wanted or -1 if unwanted.
        limits: Limits of the number of images, of their probability and of their precision.
        names: Label names of the index, length c.
        root: Root folder of the stored paths.

    Raises:
        DataError: If the data of a queried label is damaged on disk, a file was truncated after it
            was opened, or the stored path of a hit leaves the root.
    """
    for shard in shards:
        shard.mapped_files.verify_checksums([column for column, _ in literals])
    starts = np.cumsum([0] + [shard.n_rows for shard in shards])
    best = _best_rows_within_limits(shards, starts.tolist(), literals, limits)
    label_names = {column: names[column] for column, _ in literals}
    hits: dict[int, Hit] = {}
    for shard, start in zip(shards, starts, strict=False):
        in_shard = (best.rows >= start) & (best.rows < start + shard.n_rows)
        rows = best.rows[in_shard]
        shard_hits = _hits_of_shard(shard, rows - start, best.scores[in_shard], label_names, root)
        hits |= zip(rows.tolist(), shard_hits, strict=True)
    return [hits[row] for row in best.rows.tolist()]


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
        logits, is_active = shard.sorted_logits.logits, shard.is_active
        values = np.exp(conjunction_search_log_probability(logits, literals, slice(None)))
        parts.append(values if is_active is None else values[is_active])
    return np.concatenate(parts)


def _best_rows_within_limits(
    shards: Sequence[Shard],
    starts: Sequence[int],
    literals: Sequence[QueryLiteral],
    limits: SearchLimits,
) -> ConjunctionSearchRows:
    """Return the best rows of all shards that satisfy the limits of a search.

    If the number of images has no limit, ten times as many rows are ranked until the last rows
    exceed another limit.
    """
    k = limits.k or FIRST_ROWS
    while True:
        parts = [conjunction_search_top_k(shard.sorted_logits, literals, k) for shard in shards]
        best = merge_conjunction_search_rows(parts, starts).select_best(k)
        n_valid = limits.count_images(np.exp(best.scores))
        if limits.k is not None or n_valid < k:
            return best.select_best(n_valid)
        k *= 10


def _hits_of_shard(
    shard: Shard, rows: RowNumbers, scores: Floats, label_names: dict[int, str], root: IndexRoot
) -> list[Hit]:
    """Return the images of some rows, with the probability of each label of the query."""
    lines = [shard.sorted_logits.logits[column, rows] for column in label_names]
    probabilities = expit(np.stack(lines, axis=1).astype(np.float64))
    paths = shard.file_states["path"].take(rows).to_pylist()
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
