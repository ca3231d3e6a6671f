"""Compare the speed of exact search in up to ten million images with DuckDB and numpy.

    python benchmarks/search.py [--rows N ...] [--queries N] [--folder FOLDER]

All programs search the same log-odds, and their scores are compared. The log-odds of 80 labels are
random, and correlated through a few latent themes; each label is positive in 1 to 20 % of the
images. Every query returns the best 100 images. DuckDB uses one thread and receives its fastest
form of each query: the top rows of a sum of log sigmoids, over the queried columns of a Parquet
file, and over a table in memory with these log sigmoids. numpy computes the log sigmoids of all
rows in float32, and selects the best rows. Times are medians and 99th percentiles over all queries
and five repetitions in an opened index, which has the masks of path patterns in its cache. *First*
times are medians of opening an index and searching it once, with the pages of the files in memory.
A first search also reads the checksums of the labels, and all paths for a path filter. *Cold* times
are medians of opening and searching without file pages in memory. The script prints Markdown
tables. It needs duckdb, which is not a dependency of the package; without duckdb, only surelabel
and numpy are measured.

10,000,000 images need 20 GB of disk space in the folder, 5 GB of memory and 10 to 30 minutes:

    python benchmarks/search.py --rows 10000000 --queries 8 --folder FOLDER
"""

import argparse
import gc
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.records import Predictions
from surelabel.retrieval import Index

LABELS, THEMES, K, BLOCK_ROWS, N_FOLDERS = 80, 12, 100, 250_000, 20
NAMES = [f"label{column:02}" for column in range(LABELS)]
COLD_REPEATS, SLOW_REPEATS = 3, 3
DUCKDB_SETTINGS = {"threads": 1, "memory_limit": "4GB"}


@dataclass(frozen=True)
class Shape:
    """Kind of query: numbers of wanted, unwanted and alternative (``|``) labels."""

    n_wanted: int = 0
    n_unwanted: int = 0
    n_alternatives: int = 0
    has_path: bool = False

    def __str__(self) -> str:
        text = f"{self.n_wanted} + {self.n_unwanted}"
        if self.n_alternatives:
            text = f"OR of {self.n_alternatives}"
        return text + " in a folder" * self.has_path

    def sample(self, random: np.random.Generator) -> "SampledQuery":
        """Return a query of this kind with random labels."""
        columns = random.permutation(LABELS)[
            : self.n_wanted + self.n_unwanted + self.n_alternatives
        ]
        folder = int(random.integers(N_FOLDERS)) if self.has_path else None
        signs = [1] * self.n_wanted + [-1] * self.n_unwanted + [1] * self.n_alternatives
        literals = list(zip(columns.tolist(), signs, strict=True))
        return SampledQuery(literals, bool(self.n_alternatives), folder)


SHAPES = [Shape(*pair) for pair in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 2), (1, 4)]]
SHAPES += [Shape(n_alternatives=3), Shape(1, 0, has_path=True), Shape(2, 1, has_path=True)]


@dataclass(frozen=True)
class SampledQuery:
    """Literals of a query as columns and signs, and the number of a folder, or None."""

    literals: list[tuple[int, int]]
    is_disjunction: bool
    folder: int | None

    def text(self) -> str:
        """Return the query in the language of surelabel."""
        terms = [("" if sign > 0 else "!") + NAMES[column] for column, sign in self.literals]
        text = (" | " if self.is_disjunction else " & ").join(terms)
        return text if self.folder is None else f"{text} & path:{self.folder:02}/*"

    def sql(self, table: str, *, is_precomputed: bool) -> str:
        """Return the SQL statement that selects the best ``K`` rows and their scores."""
        row = "row" if is_precomputed else "file_row_number"
        where = "" if self.folder is None else f"WHERE path LIKE '{self.folder:02}/%'"
        sign = -1 if self.is_disjunction else 1
        terms = [
            f"{'p' if s * sign > 0 else 'q'}_{NAMES[c]}"
            if is_precomputed
            else log_sigmoid_sql(NAMES[c], s * sign)
            for c, s in self.literals
        ]
        order = "ASC" if self.is_disjunction else "DESC"
        return (
            f"SELECT {row}, {' + '.join(terms)} AS s FROM {table} {where} "
            f"ORDER BY s {order} LIMIT {K}"
        )

    def probabilities(self, sums: np.ndarray) -> np.ndarray:
        """Return probabilities from the sums that SQL and numpy sort."""
        return -np.expm1(sums) if self.is_disjunction else np.exp(sums)


def log_sigmoid_sql(column: str, sign: int) -> str:
    """Return the SQL expression of the log probability of one literal."""
    z = f"({'' if sign > 0 else '-'}{column}::DOUBLE)"
    return f"least({z}, 0) - ln(1 + exp(-abs({z})))"


def simulated_blocks(rows: int, seed: int = 0):
    """Yield the first row and the log-odds of blocks of images, ``(b, LABELS)``."""
    random = np.random.default_rng(seed)
    prevalence = np.geomspace(0.01, 0.2, LABELS)
    themes = random.standard_normal((THEMES, LABELS)).astype(np.float32)
    levels = np.log(prevalence / (1 - prevalence)).astype(np.float32)
    for start in range(0, rows, BLOCK_ROWS):
        n = min(BLOCK_ROWS, rows - start)
        hidden = random.standard_normal((n, THEMES), dtype=np.float32)
        logits = 0.5 * hidden @ themes + levels
        logits += 1.5 * random.standard_normal((n, LABELS), np.float32)
        yield start, np.clip(logits, -40, 40).astype(np.float32)


def stored_paths(start: int, n: int) -> list[str]:
    """Return the paths of images, relative to the root, in ``N_FOLDERS`` folders."""
    return [f"{row % N_FOLDERS:02}/{row:08}.jpg" for row in range(start, start + n)]


class Collection:
    """Index, Parquet file and array of the same simulated log-odds."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.rows, self.index_folder = rows, folder / "index"
        self.parquet, self.lines_file = folder / "logits.parquet", folder / "lines.npy"
        np.lib.format.open_memmap(self.lines_file, "w+", np.float32, (LABELS, rows))
        header = self.lines_file.stat().st_size - 4 * LABELS * rows
        schema = pa.schema({"path": pa.string()} | dict.fromkeys(NAMES, pa.float32()))
        index, seconds = None, 0.0
        with pq.ParquetWriter(self.parquet, schema) as writer, self.lines_file.open("r+b") as file:
            for start, logits in simulated_blocks(rows):
                paths = stored_paths(start, len(logits))
                columns = [np.ascontiguousarray(line) for line in logits.T]
                for column, line in enumerate(columns):  # a mapping would stay in memory
                    file.seek(header + 4 * (column * rows + start))
                    file.write(line.data)
                writer.write_table(pa.table([pa.array(paths), *columns], schema=schema))
                del columns
                absolute = [f"/images/{path}" for path in paths]
                made = Predictions(absolute, NAMES, logits, logits, "simulated", "none")
                begin = time.perf_counter()
                if index is None:
                    index = Index.create(self.index_folder, made, root="/images")
                else:
                    index.add(made)
                seconds += time.perf_counter() - begin
        begin = time.perf_counter()
        assert index is not None
        index.compact()
        self.build_seconds, self.compact_seconds = seconds, time.perf_counter() - begin
        self.lines = np.load(self.lines_file, mmap_mode="r")
        self.folders = (np.arange(rows) % N_FOLDERS).astype(np.uint8)

    def describe(self) -> str:
        """Return the bytes, the build time and the memory as lines of text."""
        sizes = {file.name: file.stat().st_size for file in self.index_folder.iterdir()}
        rows_bytes = sum(size for name, size in sizes.items() if name.startswith("rows"))
        label_bytes = sum(sizes.values()) - rows_bytes
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (
            f"{self.rows:,} images x {LABELS} labels: {label_bytes / self.rows / LABELS:.3f} bytes "
            f"per image and label, {rows_bytes / self.rows:.1f} bytes per path and file state; "
            f"written in {self.build_seconds:.1f} s in blocks of {BLOCK_ROWS:,}, compacted in "
            f"{self.compact_seconds:.1f} s; Parquet file {self.parquet.stat().st_size / 1e6:.0f} "
            f"MB; maximum resident memory {peak:.0f} MB"
        )

    def drop_from_page_cache(self) -> None:
        """Write all files to disk and remove their pages from memory."""
        gc.collect()
        for file in (*self.index_folder.iterdir(), self.parquet):
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def numpy_search(collection: Collection, query: SampledQuery) -> np.ndarray:
    """Return the highest probabilities of a query, from log sigmoids of all rows in float32."""
    sums = np.zeros(collection.rows, np.float32)
    for column, sign in query.literals:
        z = collection.lines[column] * np.float32(-sign if query.is_disjunction else sign)
        sums += np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))
    ranking = -sums if query.is_disjunction else sums
    if query.folder is not None:
        ranking = np.where(collection.folders == query.folder, ranking, -np.inf)
    best = np.argpartition(ranking, -K)[-K:]
    best = best[np.argsort(-ranking[best])]
    return query.probabilities(sums[best].astype(np.float64))


def milliseconds(task: Callable[[], Any]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    task()
    return 1e3 * (time.perf_counter() - start)


def cold_milliseconds(collection: Collection, tasks: list[Callable[[], Any]]) -> float:
    """Return the median time of tasks that start without file pages in memory."""
    times = []
    for task in tasks:
        collection.drop_from_page_cache()
        times.append(milliseconds(task))
    return statistics.median(times)


def measure_shape(
    collection: Collection, index: Index, shape: Shape, n_queries: int, duckdb: Any
) -> str:
    """Return one line of the table for a kind of query."""
    random = np.random.default_rng([1, *map(ord, str(shape))])
    queries = [shape.sample(random) for _ in range(n_queries)]
    times = []
    for query in queries:
        found = index.search(query.text(), K)  # loads the arrays for later searches
        np.testing.assert_allclose(
            [hit.probability for hit in found],
            numpy_search(collection, query),
            rtol=1e-4,
            atol=1e-30,
        )
        times += [milliseconds(lambda q=query: index.search(q.text(), K)) for _ in range(5)]
    median, p99 = statistics.median(times), float(np.percentile(times, 99))
    searches = [
        lambda q=query: Index.open(collection.index_folder).search(q.text(), K)
        for query in queries[:COLD_REPEATS]
    ]
    first = statistics.median(milliseconds(search) for search in searches)
    cold = cold_milliseconds(collection, searches)
    slow = [
        milliseconds(lambda q=query: numpy_search(collection, q))
        for query in queries[:SLOW_REPEATS]
        for _ in range(2)
    ]
    cells = [str(shape), f"{median:.2f}", f"{p99:.2f}", f"{first:.1f}", f"{cold:.1f}"]
    cells.append(ratio(statistics.median(slow), median))
    if duckdb:
        cells += duckdb_cells(collection, index, duckdb, queries[:SLOW_REPEATS], median)
    return f"| {' | '.join(cells)} |"


def ratio(time_of_other: float, reference: float) -> str:
    """Return a time, and this time divided by the reference, as text."""
    return f"{time_of_other:.1f} ({time_of_other / reference:.1f}x)"


def duckdb_cells(
    collection: Collection, index: Index, duckdb: Any, queries: list[SampledQuery], median: float
) -> list[str]:
    """Return the times of DuckDB: from Parquet, cold from Parquet, and from memory."""
    source = f"read_parquet('{collection.parquet}', file_row_number = true)"
    from_parquet, from_memory = [], []
    with duckdb.connect(config=DUCKDB_SETTINGS) as database:
        for query in queries:
            sql = query.sql(source, is_precomputed=False)
            check_equal_scores(index, query, database.execute(sql).fetchall())
            run = lambda sql=sql: database.execute(sql).fetchall()  # noqa: E731
            from_parquet += [milliseconds(run) for _ in range(SLOW_REPEATS)]
            create_log_sigmoids(database, query, source)
            sql = query.sql("precomputed", is_precomputed=True)
            check_equal_scores(index, query, database.execute(sql).fetchall())
            run = lambda sql=sql: database.execute(sql).fetchall()  # noqa: E731
            from_memory += [milliseconds(run) for _ in range(SLOW_REPEATS)]

    def search_cold(query: SampledQuery) -> None:
        with duckdb.connect(config=DUCKDB_SETTINGS) as new_database:
            new_database.execute(query.sql(source, is_precomputed=False)).fetchall()

    cold = cold_milliseconds(collection, [lambda q=query: search_cold(q) for query in queries])
    times = (statistics.median(from_parquet), statistics.median(from_memory))
    return [ratio(times[0], median), f"{cold:.0f}", ratio(times[1], median)]


def create_log_sigmoids(database: Any, query: SampledQuery, source: str) -> None:
    """Create a table in memory with the log sigmoids of the columns of one query."""
    sign = -1 if query.is_disjunction else 1
    columns = [
        f"{log_sigmoid_sql(NAMES[c], s * sign)} AS {'p' if s * sign > 0 else 'q'}_{NAMES[c]}"
        for c, s in query.literals
    ]
    path = [] if query.folder is None else ["path"]
    database.execute(
        "CREATE OR REPLACE TABLE precomputed AS SELECT file_row_number AS row, "
        f"{', '.join([*path, *columns])} FROM {source}"
    )


def check_equal_scores(index: Index, query: SampledQuery, rows: list[tuple[int, float]]) -> None:
    """Raise AssertionError if index and DuckDB return different probabilities."""
    expected = query.probabilities(np.array([score for _, score in rows]))
    probabilities = [hit.probability for hit in index.search(query.text(), K)]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6, atol=1e-30)


def main() -> None:
    """Create an index and a Parquet file of the same log-odds, and time all kinds of queries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=20, help="random queries of each kind")
    parser.add_argument("--folder", type=Path, help="folder for the files; temporary if omitted")
    arguments = parser.parse_args()
    try:
        import duckdb
    except ImportError:
        duckdb = None
    others = f"DuckDB {duckdb.__version__} with one thread" if duckdb else "no DuckDB"
    print(f"numpy {np.__version__}, {others}; k = {K}; times in ms")
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            collection = Collection(Path(folder), rows)
            print(f"\n{collection.describe()}\n")
            columns = ["query", "median", "p99", "first", "cold", "numpy"]
            if duckdb:
                columns += ["DuckDB, Parquet", "DuckDB, cold", "DuckDB, memory"]
            print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
            index = Index.open(collection.index_folder)
            for shape in SHAPES:
                print(
                    measure_shape(collection, index, shape, arguments.queries, duckdb), flush=True
                )


if __name__ == "__main__":
    main()
