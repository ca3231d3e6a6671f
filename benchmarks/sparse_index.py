"""Measure the size of an index in sparse form, and the change of its probabilities and results.

    python benchmarks/sparse_index.py [--rows N] [--labels N] [--drop-below P ...] [--folder FOLDER]

The first table is for the test images of the bundled collection scenes-80 and zero-shot predictions
of tiny-vit. Each query is searched in an index with all probabilities and in the same index in
sparse form, and the shares of the 100 best images that are in both results are averaged. The
queries are all single labels, 200 sampled pairs of labels (2 + 0), and 200 sampled pairs of a
wanted and an unwanted label (1 + 1). The second table has the sizes of an index with simulated
log-odds, normally distributed for each label with a standard deviation of 2.5, and a mean such that
0.1 to 2 % of the images are positive. Image vectors are not stored. The script prints Markdown
tables; 100,000 images and 1,000 labels need 2 GB of memory and 1 GB of disk space.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

import surelabel as sl
from surelabel.retrieval import Index

K, N_PAIRS, DEVIATION, BLOCK_ROWS = 100, 200, 2.5, 10_000
SHAPES = ("1 + 0", "2 + 0", "1 + 1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--drop-below", type=float, nargs="+", default=[0.001, 0.01, 0.05])
    parser.add_argument("--folder", help="parent of the temporary folders of the indexes")
    settings = parser.parse_args()
    images = sl.collection("scenes-80", split="test")
    predictions = sl.Recognizer.zero_shot("tiny-vit", images.names).predict(images)
    predictions = replace(predictions, features=None)
    print(f"scenes-80, {len(images):,} test images, tiny-vit, {predictions.calibration}\n")
    header = ["form", "bytes per value", "stored", *(f"top {K}, {shape}" for shape in SHAPES)]
    print_table(
        [*header, "largest change"],
        changes_of_scenes(predictions, settings.drop_below, settings.folder),
    )
    print(f"\n{settings.rows:,} simulated images, {settings.labels:,} labels\n")
    print_table(
        ["form", "bytes", "bytes per value", "stored", "seconds"],
        sizes_of_simulation(settings.rows, settings.labels, settings.drop_below, settings.folder),
    )


def changes_of_scenes(
    predictions: sl.Predictions, limits: Sequence[float], parent: str | None
) -> list[list[str]]:
    """Return a row for the dense form, and one with the changes for each limit."""
    random, rows = np.random.default_rng(0), []
    queries = sample_queries(list(predictions.names), random)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        dense = Index.create(Path(folder, "dense"), predictions)
        n_values = len(dense) * len(dense.names)
        label_bytes = dense.n_bytes - rows_bytes(dense)
        rows.append(["all", f"{label_bytes / n_values:.2f}", "100 %", *["1"] * len(SHAPES), "0"])
        expected = {query: top_paths(dense, query) for shape in SHAPES for query in queries[shape]}
        for limit in limits:
            sparse = Index.create(Path(folder, "sparse"), predictions)
            sparse.compact(drop_below=limit)
            overlaps = []
            for shape in SHAPES:
                shares = [
                    len(expected[query] & top_paths(sparse, query)) / K for query in queries[shape]
                ]
                overlaps.append(f"{np.mean(shares):.3f} ({min(shares):.2f})")
            change = max(
                np.abs(dense.probabilities(query) - sparse.probabilities(query)).max()
                for query in queries["1 + 0"]
            )
            label_bytes = sparse.n_bytes - rows_bytes(sparse)
            share = f"{100 * (sparse.stored_share or 0):.1f} %"
            size = f"{label_bytes / n_values:.2f}"
            rows.append([f"P = {limit:g}", size, share, *overlaps, f"{change:.2g}"])
    return rows


def sample_queries(names: list[str], random: np.random.Generator) -> dict[str, list[str]]:
    """Return the queries of each shape in the query language."""
    quoted = [f'"{name}"' for name in names]
    pairs = [random.choice(len(names), 2, replace=False) for _ in range(2 * N_PAIRS)]
    return {
        "1 + 0": quoted,
        "2 + 0": [f"{quoted[first]} & {quoted[second]}" for first, second in pairs[:N_PAIRS]],
        "1 + 1": [f"{quoted[first]} & !{quoted[second]}" for first, second in pairs[N_PAIRS:]],
    }


def top_paths(index: Index, query: str) -> set[str]:
    """Return the paths of the best images of a query."""
    return {hit.path for hit in index.search(query, K)}


def rows_bytes(index: Index) -> int:
    """Return the size of the tables of paths."""
    return sum(file.stat().st_size for file in index.folder.glob("rows-*.parquet"))


def sizes_of_simulation(
    n_rows: int, n_labels: int, limits: Sequence[float], parent: str | None
) -> list[list[str]]:
    """Return a row for the dense form, and one with the size for each limit."""
    logits = simulated_logits(n_rows, n_labels)
    predictions = sl.Predictions(
        [f"/nowhere/{row:08}.jpg" for row in range(n_rows)],
        [f"label{column:04}" for column in range(n_labels)],
        logits,
        logits,
        "simulated",
    )
    rows = []
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        start = time.perf_counter()
        index = Index.create(folder, predictions)
        for limit in [None, *limits]:
            if limit is not None:
                start = time.perf_counter()
                index.compact(drop_below=limit)
            seconds = time.perf_counter() - start
            size = index.n_bytes - rows_bytes(index)
            rows.append(
                [
                    "all" if limit is None else f"P = {limit:g}",
                    f"{size:,}",
                    f"{size / logits.size:.3f}",
                    f"{100 * (index.stored_share or 0):.1f} %",
                    f"{seconds:.1f}",
                ]
            )
    return rows


def simulated_logits(n_rows: int, n_labels: int) -> npt.NDArray[np.float32]:
    """Return random log-odds, ``(n, c)``."""
    random = np.random.default_rng(0)
    grid = np.linspace(-20, 5, 2501)
    noise = DEVIATION * random.standard_normal(20_000)
    prevalence = np.array([expit(mean + noise).mean() for mean in grid[::25]])
    wanted = np.exp(random.uniform(np.log(0.001), np.log(0.02), n_labels))
    means = np.interp(logit(wanted), logit(prevalence), grid[::25]).astype(np.float32)
    logits = np.empty((n_rows, n_labels), np.float32)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = logits[start : start + BLOCK_ROWS]
        block[:] = means + DEVIATION * random.standard_normal(block.shape, np.float32)
    return np.clip(logits, -40, 40, out=logits)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    for line in (header, ["---"] * len(header), *rows):
        print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
