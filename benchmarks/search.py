"""Exact conjunctive search of a million pictures, against DuckDB on the same log-odds in Parquet.

    python benchmarks/search.py [--quick] [--folder FOLDER]

Log-odds of 80 labels are drawn at random, correlated through a few hidden themes, with 1 to 20 %
of the pictures holding each label. DuckDB gets its best form of the question: the top k of a sum
of log sigmoids, one thread, over only the columns asked for; and once more from a table in its
memory that holds the log sigmoids ready-made. Prints medians and their ratios, and checks that
both find the same scores. Needs duckdb, which is no dependency of the package.
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


def draw(rows: int, seed: int = 0) -> np.ndarray:
    """Correlated log-odds, ``(rows, LABELS)`` float32."""
    random = np.random.default_rng(seed)
    prevalence = np.geomspace(0.01, 0.2, LABELS)
    themes = random.standard_normal((THEMES, LABELS)).astype(np.float32)
    logits = np.empty((rows, LABELS), np.float32)
    for start in range(0, rows, 50_000):
        part = logits[start : start + 50_000]
        hidden = random.standard_normal((len(part), THEMES), dtype=np.float32)
        part[:] = 0.5 * hidden @ themes + 1.5 * random.standard_normal(part.shape, np.float32)
    return np.clip(logits + np.log(prevalence / (1 - prevalence)), -40, 40).astype(np.float32)


def milliseconds(task, repeats: int = REPEATS) -> float:
    """Median time of a call, after one that warms up."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def queries(shape: tuple[int, int], count: int, seed: int = 1) -> list[Query]:
    """Queries of random labels with so many wanted and unwanted ones."""
    random = np.random.default_rng([seed, *shape])
    drawn = [random.permutation(LABELS)[: sum(shape)] for _ in range(count)]
    names = [[f"label{column:02}" for column in columns] for columns in drawn]
    return [Query(tuple(n[: shape[0]]), tuple(n[shape[0] :])) for n in names]


def log_sigmoid_sql(column: str, sign: int) -> str:
    z = f"({'' if sign > 0 else '-'}{column}::DOUBLE)"
    return f"least({z}, 0) - ln(1 + exp(-abs({z})))"


def duckdb_question(query: Query, table: str, ready: bool) -> str:
    terms = [
        f"{'p' if sign > 0 else 'q'}_{name}" if ready else log_sigmoid_sql(name, sign)
        for names, sign in ((query.wanted, 1), (query.unwanted, -1))
        for name in names
    ]
    rows = "row" if ready else "file_row_number"
    return f"SELECT {rows}, {' + '.join(terms)} AS s FROM {table} ORDER BY s DESC LIMIT {K}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows instead of a million")
    parser.add_argument("--folder", type=Path, help="where the files go; a temporary one if not")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measure(Path(folder), 100_000 if arguments.quick else 1_000_000)


def measure(folder: Path, rows: int) -> None:
    names = [f"label{column:02}" for column in range(LABELS)]
    logits = draw(rows)
    paths = [f"pictures/{row:07}.jpg" for row in range(rows)]
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
    print(f"open: {milliseconds(lambda: Index.open(folder / 'index')):.2f} ms")
    index = Index.open(folder / "index")
    start = time.perf_counter()
    index.search("label00", K)
    print(f"first search after opening: {1e3 * (time.perf_counter() - start):.1f} ms")
    compare(index, parquet)


def compare(index: Index, parquet: Path) -> None:
    try:
        import duckdb
    except ImportError:
        duckdb = None
        print("duckdb is not installed: only our own times follow")
    print(
        f"{'wanted+unwanted':>16}{'ours ms':>10}{'worst':>8}{'duckdb ms':>11}{'ratio':>7}", end=""
    )
    print(f"{'in memory':>11}{'ratio':>7}")
    for shape in SHAPES:
        asked = queries(shape, 5)
        ours = [milliseconds(lambda query=query: index.search(query, K)) for query in asked]
        line = f"{shape[0]:>12} + {shape[1]}{statistics.median(ours):>10.3f}{max(ours):>8.2f}"
        if duckdb:
            line += against(duckdb, index, parquet, asked, statistics.median(ours))
        print(line, flush=True)


def against(duckdb, index: Index, parquet: Path, asked: list[Query], ours: float) -> str:
    """DuckDB's two medians beside ours."""
    text = ""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        source = f"read_parquet('{parquet}', file_row_number = true)"
        for ready in (False, True):
            times = []
            for query in asked:
                table = prepared(database, query, source) if ready else source
                question = duckdb_question(query, table, ready)
                check_same(index, query, database.execute(question).fetchall())
                times.append(
                    milliseconds(lambda q=question: database.execute(q).fetchall(), repeats=3)
                )
            middle = statistics.median(times)
            text += f"{middle:>11.2f}{middle / ours:>6.1f}x"
    return text


def prepared(database, query: Query, source: str) -> str:
    """A table in memory with the log sigmoids of the columns of one query."""
    both = [("p", 1, query.wanted), ("q", -1, query.unwanted)]
    columns = [f"{log_sigmoid_sql(n, sign)} AS {p}_{n}" for p, sign, names in both for n in names]
    database.execute(
        f"CREATE OR REPLACE TABLE ready AS SELECT file_row_number AS row, {', '.join(columns)} "
        f"FROM {source}"
    )
    return "ready"


def check_same(index: Index, query: Query, theirs: list[tuple[int, float]]) -> None:
    ours = np.log([hit.probability for hit in index.search(query, K)])
    np.testing.assert_allclose(ours, [score for _, score in theirs], rtol=1e-6, atol=1e-12)


if __name__ == "__main__":
    main()
