"""Search of all shards of an index for the images with the highest probability."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from surelabel.retrieval.conjunction_search import (
    Floats,
    QueryLiteral,
    RowNumbers,
    conjunction_search_top_k,
    merge_conjunction_search_rows,
)
from surelabel.retrieval.hits import Hit
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shards import Shard


def search_shards(
    shards: Sequence[Shard],
    literals: Sequence[QueryLiteral],
    k: int,
    names: Sequence[str],
    root: IndexRoot,
) -> list[Hit]:
    """Return the ``k`` images with the highest probability, by exact search.

    Images of equal probability are sorted by raw score, then by row number.

    Args:
        shards: Shards of the index, in row order.
        literals: Column of each label of the query, with +1 if wanted or -1 if unwanted.
        k: Number of images, >= 1. If the index has fewer images, all images are returned.
        names: Label names of the index, length c.
        root: Root folder of the stored paths.

    Raises:
        DataError: If the data of a queried label is damaged on disk, a file was truncated after it
            was opened, or the stored path of a hit leaves the root.
    """
    for shard in shards:
        shard.mapped_files.verify_checksums([column for column, _ in literals])
    starts = np.cumsum([0] + [shard.n_rows for shard in shards])
    parts = [conjunction_search_top_k(shard.sorted_logits, literals, k) for shard in shards]
    best = merge_conjunction_search_rows(parts, starts.tolist()).select_best(k)
    label_names = {column: names[column] for column, _ in literals}
    hits: dict[int, Hit] = {}
    for shard, start in zip(shards, starts, strict=False):
        in_shard = (best.rows >= start) & (best.rows < start + shard.n_rows)
        rows = best.rows[in_shard]
        shard_hits = _hits_of_shard(shard, rows - start, best.scores[in_shard], label_names, root)
        hits |= zip(rows.tolist(), shard_hits, strict=True)
    return [hits[row] for row in best.rows.tolist()]


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
