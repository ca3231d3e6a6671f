"""Speed of exact conjunctive search in a million images, against DuckDB on the same log-odds.

    python benchmarks/search.py [--quick] [--folder FOLDER]

Log-odds of 80 labels are random, correlated through a few hidden themes; each label is positive in
1 to 20 % of the images. DuckDB gets its fastest form of the query: the top k of a sum of log
sigmoids, on one thread, over the queried columns of a Parquet file; and the same from an in-memory
table of precomputed log sigmoids. Prints medians and their ratios, and checks that both return the
same scores. Needs duckdb, which is not a dependency of the package.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.records import Predictions
from surelabel.retrieval import Index, Query

LABELS, THEMES, K, REPEATS = 80, 12, 100, 9
SHAPES = [(1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (3, 0), (3, 2), (1, 4), (5, 0), (0, 5)]


def simulate_logits(rows: int, seed: int = 0) -> np.ndarray:
    """Return correlated log-odds, ``(rows, LABELS)`` float32."""
    random = np.random.default_rng(seed)
    prevalence = np.geomspace(0.01, 0.2, LABELS)
    themes = random.standard_normal((THEMES, LABELS)).astype(np.float32)
    logits = np.empty((rows, LABELS), np.float32)
    for start in range(0, rows, 50_000):
        part = logits[start : start + 50_000]
        hidden = random.standard_normal((len(part), THEMES), dtype=np.float32)
        part[:] = 0.5 * hidden @ themes + 1.5 * random.standard_normal(part.shape, np.float32)
    return np.clip(logits + np.log(prevalence / (1 - prevalence)), -40, 40).astype(np.float32)


def median_milliseconds(task, repeats: int = REPEATS) -> float:
    """Return the median time of a call, after a first call that is not timed."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def random_queries(shape: tuple[int, int], count: int, seed: int = 1) -> list[Query]:
    """Return queries of random labels with a given number of wanted and unwanted ones."""
    random = np.random.default_rng([seed, *shape])
    label_sets = [random.permutation(LABELS)[: sum(shape)] for _ in range(count)]
    names = [[f"label{column:02}" for column in columns] for columns in label_sets]
    return [Query(tuple(n[: shape[0]]), tuple(n[shape[0] :])) for n in names]


def log_sigmoid_sql(column: str, sign: int) -> str:
    """Return the SQL expression of the log probability of one literal."""
    z = f"({'' if sign > 0 else '-'}{column}::DOUBLE)"
    return f"least({z}, 0) - ln(1 + exp(-abs({z})))"


def query_sql(query: Query, table: str, is_precomputed: bool) -> str:
    """Return the SQL statement for the best ``K`` rows of a query."""
    terms = [
        f"{'p' if sign > 0 else 'q'}_{name}" if is_precomputed else log_sigmoid_sql(name, sign)
        for names, sign in ((query.wanted, 1), (query.unwanted, -1))
        for name in names
    ]
    rows = "row" if is_precomputed else "file_row_number"
    return f"SELECT {rows}, {' + '.join(terms)} AS s FROM {table} ORDER BY s DESC LIMIT {K}"


def main() -> None:
    """Create an index and a Parquet file of the same log-odds, and time both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows instead of a million")
    parser.add_argument("--folder", type=Path, help="folder for the files; temporary if omitted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measure_index(Path(folder), 100_000 if arguments.quick else 1_000_000)


def measure_index(folder: Path, rows: int) -> None:
    """Print the times to create, open and search an index."""
    names = [f"label{column:02}" for column in range(LABELS)]
    logits = simulate_logits(rows)
    paths = [f"images/{row:07}.jpg" for row in range(rows)]
    start = time.perf_counter()
    Index.create(folder / "index", Predictions(paths, names, logits, logits, "simulated", "none"))
    print(
        f"{rows:,} rows x {LABELS} labels, k = {K}; created in {time.perf_counter() - start:.1f} s"
    )
    parquet = folder / "logits.parquet"
    columns = [np.ascontiguousarray(logits[:, j]) for j in range(LABELS)]
    del logits
    pq.write_table(pa.table(columns, names=names), parquet)
    del columns
    print(f"open: {median_milliseconds(lambda: Index.open(folder / 'index')):.2f} ms")
    index = Index.open(folder / "index")
    start = time.perf_counter()
    index.search("label00", K)
    print(f"first search after opening: {1e3 * (time.perf_counter() - start):.1f} ms")
    compare_searches(index, parquet)


def compare_searches(index: Index, parquet: Path) -> None:
    """Print one line for each query shape, with DuckDB if it is installed."""
    try:
        import duckdb
    except ImportError:
        duckdb = None
        print("duckdb is not installed; only the times of surelabel are measured")
    print(
        f"{'wanted+unwanted':>16}{'median ms':>10}{'max':>8}{'duckdb ms':>11}{'ratio':>7}", end=""
    )
    print(f"{'in memory':>11}{'ratio':>7}")
    for shape in SHAPES:
        queries = random_queries(shape, 5)
        times = [
            median_milliseconds(lambda query=query: index.search(query, K)) for query in queries
        ]
        median = statistics.median(times)
        line = f"{shape[0]:>12} + {shape[1]}{median:>10.3f}{max(times):>8.2f}"
        if duckdb:
            line += duckdb_columns(duckdb, index, parquet, queries, median)
        print(line, flush=True)


def duckdb_columns(
    duckdb, index: Index, parquet: Path, queries: list[Query], reference: float
) -> str:
    """Return the median times of DuckDB from Parquet and from memory, with their ratios."""
    text = ""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        source = f"read_parquet('{parquet}', file_row_number = true)"
        for is_precomputed in (False, True):
            times = []
            for query in queries:
                table = create_table(database, query, source) if is_precomputed else source
                sql = query_sql(query, table, is_precomputed)
                check_equal_scores(index, query, database.execute(sql).fetchall())
                times.append(
                    median_milliseconds(lambda sql=sql: database.execute(sql).fetchall(), repeats=3)
                )
            median = statistics.median(times)
            text += f"{median:>11.2f}{median / reference:>6.1f}x"
    return text


def create_table(database, query: Query, source: str) -> str:
    """Create an in-memory table with the log sigmoids of the columns of one query."""
    literals = [("p", 1, query.wanted), ("q", -1, query.unwanted)]
    columns = [
        f"{log_sigmoid_sql(name, sign)} AS {prefix}_{name}"
        for prefix, sign, names in literals
        for name in names
    ]
    database.execute(
        f"CREATE OR REPLACE TABLE precomputed AS SELECT file_row_number AS row, "
        f"{', '.join(columns)} FROM {source}"
    )
    return "precomputed"


def check_equal_scores(index: Index, query: Query, duckdb_rows: list[tuple[int, float]]) -> None:
    """Raise AssertionError if index and DuckDB return different scores."""
    scores = np.log([hit.probability for hit in index.search(query, K)])
    expected = [score for _, score in duckdb_rows]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)


if __name__ == "__main__":
    main()
