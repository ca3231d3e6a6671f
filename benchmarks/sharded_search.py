"""Compare the speed of exact search in one index with that in several indexes of the same rows.

    python benchmarks/sharded_search.py [--quick] [--cluster] [--folder FOLDER]

The indexes contain a million images. The log-odds are simulated as in ``search.py``, for 16 labels.
The queries have 1 to 5 literals, and return 100 images. Each index is opened once. With --cluster,
actors of a local Ray cluster search the indexes too. The script prints medians, with the range of
the medians of three rounds, and checks that all searches return the same images, probabilities and
order.
"""

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from search import K, milliseconds, simulated_blocks

from surelabel.cluster.sharded_search import open_cluster_index
from surelabel.records import Predictions
from surelabel.retrieval import Index, Query, ShardedIndex

LABELS, COUNTS, QUERIES, ROUNDS, REPEATS = 16, (1, 4, 16), 3, 3, 5
SHAPES = [(1, 0), (1, 1), (3, 2), (0, 5)]  # numbers of wanted and unwanted labels
NAMES = [f"label{column:02}" for column in range(LABELS)]


def write_indexes(folder: Path, logits: np.ndarray, count: int) -> list[Path]:
    """Write the rows in order to ``count`` indexes, and return the folders of the indexes."""
    folders = [folder / f"{count}-{part}" for part in range(count)]
    for path, rows in zip(folders, np.array_split(np.arange(len(logits)), count), strict=True):
        values = logits[rows]
        made = Predictions([f"/x/{row}.jpg" for row in rows], NAMES, values, values, "p", "m")
        Index.create(path, made, root="/x")
    return folders


def sampled_queries(shape: tuple[int, int], seed: int = 1) -> list[Query]:
    """Return queries of random labels with the given numbers of wanted and unwanted labels."""
    random = np.random.default_rng([seed, *shape])
    names = [[NAMES[c] for c in random.permutation(LABELS)[: sum(shape)]] for _ in range(QUERIES)]
    return [Query.of_labels(tuple(n[: shape[0]]), tuple(n[shape[0] :])) for n in names]


def main() -> None:
    """Write the indexes, compare their results, and time their searches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 images instead of a million")
    parser.add_argument("--cluster", action="store_true", help="also time actors of Ray")
    parser.add_argument("--folder", type=Path, help="folder for the indexes (1 GB)")
    options = parser.parse_args()
    rows = 100_000 if options.quick else 1_000_000
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        logits = np.concatenate([block[:, :LABELS] for _, block in simulated_blocks(rows)])
        searched: dict[str, Index | ShardedIndex] = {}
        for count in COUNTS:
            folders = write_indexes(folder, logits, count)
            searched[f"{count}"] = (
                Index.open(folders[0]) if count == 1 else ShardedIndex.open(folders)
            )
            if options.cluster:
                cluster = stack.enter_context(open_cluster_index(folders))
                searched[f"{count}, Ray actors"] = cluster
        queries = {shape: sampled_queries(shape) for shape in SHAPES}
        for query in (query for some in queries.values() for query in some):
            expected = searched["1"].search(query, K)
            assert all(index.search(query, K) == expected for index in searched.values())
        print(f"{rows:,} images, top {K}, milliseconds per query (range of {ROUNDS} rounds)\n")
        print("| wanted, unwanted | " + " | ".join(searched) + " |")
        print("|---|" + "---|" * len(searched))
        for shape, some in queries.items():
            print(f"| {shape[0]}, {shape[1]} | " + " | ".join(_cells(searched, some)) + " |")


def _cells(searched, queries) -> list[str]:
    """Return the median time of each index, with its range over interleaved rounds."""
    times = {name: [] for name in searched}
    for _ in range(ROUNDS):
        for name, index in searched.items():
            medians = [
                statistics.median(
                    milliseconds(lambda query=query, index=index: index.search(query, K))
                    for _ in range(REPEATS)
                )
                for query in queries
            ]
            times[name].append(statistics.median(medians))
    return [
        f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"
        for values in times.values()
    ]


if __name__ == "__main__":
    main()
