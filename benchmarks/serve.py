"""Measure the server of an index: the time of a first page, then a load of several clients.

    python benchmarks/serve.py [--index FOLDER] [--rows N] [--files] [--clients N] [--seconds N]

Without --index, an index of simulated log-odds is written to a temporary folder, as by
benchmarks/search.py. With --files, each image is a hard link of a test image of scenes-80, the
recognizer of the index is tiny-vit, and one of these images is uploaded. The server is a separate
process on a loopback port. The first part measures 50 first pages of random queries with one
client: *server* is the time in the application, which the header server-timing contains, and
*client* is the time of the whole request. The second part sends requests of several clients at the
same time: 70 % searches, 20 % thumbnails and 10 % uploads; if the index has no recognizer, the
uploads are searches. The memory is that of the server and its worker processes (proportional set
size), after a tenth of the time, but at most one minute, and at the end. The script prints Markdown
tables. It fails if a request of the second part fails. A load of ten minutes or more also fails if
the memory after one minute and at the end differ by more than 5 %.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from threading import Thread
from urllib.parse import quote, urlsplit

import numpy as np
from search import NAMES, SHAPES, simulated_blocks, stored_paths

from surelabel.data import collection
from surelabel.recognizer import Recognizer
from surelabel.recognizer.index_calibration import recognizer_record_of_index
from surelabel.records import Predictions
from surelabel.retrieval import Index

N_FIRST_PAGES, PAGE = 50, 50
BOUNDARY = "surelabel-benchmark"
MAX_MEMORY_CHANGE = 0.05  # from the first minute to the end of a long load
LONG_LOAD_SECONDS = 600


def create_simulated_index(folder: str, rows: int) -> None:
    """Write an index of the simulated log-odds of benchmarks/search.py, without image files."""
    index = None
    for start, logits in simulated_blocks(rows):
        paths = [f"/images/{path}" for path in stored_paths(start, len(logits))]
        predictions = Predictions(paths, NAMES, logits, logits, "simulated", "none")
        if index is None:
            index = Index.create(folder, predictions, root="/images")
        else:
            index.add(predictions)
    if index is not None:
        index.compact()


def create_index_with_files(folder: str, root: str, rows: int) -> str:
    """Write an index of simulated log-odds and its image files; return one of the image files.

    The recognizer of the index is tiny-vit with the labels of scenes-80.
    """
    files = collection("scenes-80", split="test").paths
    recognizer = Recognizer.zero_shot("tiny-vit", collection("scenes-80", split="test").names)
    record, index = recognizer_record_of_index(recognizer, "tiny-vit"), None
    for start, logits in simulated_blocks(rows):
        paths = [os.path.join(root, path) for path in stored_paths(start, len(logits))]
        for row, path in enumerate(paths, start):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            link_or_copy(files[row % len(files)], path)
        values = logits[:, : len(recognizer.names)]
        predictions = Predictions(
            paths, recognizer.names, values, values, "simulated", recognizer.fingerprint
        )
        if index is None:
            index = Index.create(folder, predictions, root=root, recognizer=record)
        else:
            index.add(predictions)
    if index is not None:
        index.compact()
    return str(files[0])


def link_or_copy(source: str, path: str) -> None:
    """Create a hard link, or a copy if the file is on another file system."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copy(source, path)


class Client:
    """Client with one connection, which is kept open."""

    def __init__(self, url: str, labels: list[str], image: bytes | None, seed: int) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.labels, self.image = labels, image
        self.random = random.Random(seed)
        self.identifiers: list[str] = []

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str):
        """Return the status, the content and the server time in milliseconds."""
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        content = response.read()
        timing = response.headers.get("server-timing", "dur=nan").partition("dur=")[2]
        return response.status, content, float(timing)

    def search(self):
        """Search a random query of one to three labels."""
        names = self.random.sample(self.labels, min(self.random.randint(1, 3), len(self.labels)))
        query = " & ".join([f'"{names[0]}"', *(f'!"{name}"' for name in names[1:])])
        status, content, seconds = self.request("GET", search_path(query))
        if status == 200:
            self.identifiers = [hit["id"] for hit in json.loads(content)["hits"]]
        return status, seconds

    def thumbnail(self):
        """Read the thumbnail of a hit of the last search."""
        identifier = self.random.choice(self.identifiers)
        status, _, seconds = self.request("GET", f"/api/images/{identifier}/thumbnail?size=192")
        return status, seconds

    def upload(self):
        """Upload an image."""
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="images"; filename="a"\r\n\r\n'
        )
        body = head.encode() + self.image + f"\r\n--{BOUNDARY}--\r\n".encode()
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        while True:  # the server limits the number of uploads in work
            status, _, seconds = self.request("POST", "/api/tag", body, **{"Content-Type": kind})
            if status != 503:
                return status, seconds
            time.sleep(0.05)


def search_path(query: str) -> str:
    """Return the path of the first page of a query."""
    return f"/api/search?limit={PAGE}&q={quote(query)}"


def measure_first_pages(url: str, queries: list[str]) -> tuple[list[float], list[float]]:
    """Return the times in milliseconds of the application and of the client, after one warm-up."""
    client = Client(url, [], None, 0)
    for query in queries:
        assert client.request("GET", search_path(query))[0] == 200
    server_times, client_times = [], []
    for query in queries:
        start = time.perf_counter()
        status, _, milliseconds = client.request("GET", search_path(query))
        client_times.append((time.perf_counter() - start) * 1000)
        assert status == 200
        server_times.append(milliseconds)
    return server_times, client_times


def run_load(url: str, labels: list[str], image: bytes | None, n_clients: int, seconds: float):
    """Send requests of several clients; return the client times by kind, and the failures."""
    times: dict[str, list[float]] = defaultdict(list)
    failures: Counter[str] = Counter()
    end = time.monotonic() + seconds

    def run(seed: int) -> None:
        client = Client(url, labels, image, seed)
        while time.monotonic() < end:
            kind = client.random.choices(("search", "thumbnail", "upload"), (70, 20, 10))[0]
            is_possible = {
                "search": True,
                "thumbnail": bool(client.identifiers),
                "upload": image is not None,
            }
            kind = kind if is_possible[kind] else "search"
            start = time.perf_counter()
            try:
                status, _ = getattr(client, kind)()
            except (OSError, http.client.HTTPException) as error:
                failures[f"{kind}: {type(error).__name__}"] += 1
                client.connection.close()
                continue
            times[kind].append((time.perf_counter() - start) * 1000)
            if status != 200:
                failures[f"{kind}: status {status}"] += 1

    threads = [Thread(target=run, args=(seed,)) for seed in range(n_clients)]
    for thread in threads:
        thread.start()
    return threads, times, failures


def memory_of_processes(parent: int) -> float:
    """Return the proportional set size of a process and its children, in MB."""
    lists = Path(f"/proc/{parent}/task").glob("*/children")  # one for each thread
    children = [process for file in lists for process in file.read_text().split()]
    total = 0
    for process in (str(parent), *children):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1000


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of values."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def main() -> None:
    """Start the server, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", help="folder of an index")
    parser.add_argument("--rows", type=int, default=100_000, help="images of a simulated index")
    parser.add_argument("--files", action="store_true", help="write image files for --rows")
    parser.add_argument("--image", help="image file for the uploads")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = arguments.index
        if index is None:
            index = f"{folder}/index"
            if arguments.files:
                arguments.image = create_index_with_files(index, f"{folder}/images", arguments.rows)
            else:
                create_simulated_index(index, arguments.rows)
        command = [sys.executable, "-m", "surelabel", "serve", index, "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                measure(json.loads(server.stdout.readline()), server.pid, arguments)
            finally:
                server.terminate()


def measure(started: dict, process: int, arguments: argparse.Namespace) -> None:
    """Measure a server and print the tables."""
    url, image = started["url"], None
    client = Client(url, [], None, 0)
    health = json.loads(client.request("GET", "/api/health")[1])
    while health["recognizer"]["state"] == "loading":
        time.sleep(0.5)
        health = json.loads(client.request("GET", "/api/health")[1])
    if health["recognizer"]["state"] == "ready" and arguments.image:
        image = Path(arguments.image).read_bytes()
    names = json.loads(client.request("GET", "/api/labels?limit=10000")[1])["labels"]
    labels = [label["name"] for label in names]
    if labels == NAMES:
        generator = np.random.default_rng(0)
        shapes = [shape for shape in SHAPES if not shape.has_path]
        queries = [shapes[i % len(shapes)].sample(generator).text() for i in range(N_FIRST_PAGES)]
    else:
        generator = random.Random(0)
        queries = [f'"{generator.choice(labels)}"' for _ in range(N_FIRST_PAGES)]
    server_times, client_times = measure_first_pages(url, queries)
    print(f"\n{started['images']:,} images, first page of {PAGE} images, {N_FIRST_PAGES} queries\n")
    print("| time | median, ms | p99, ms |\n|---|---|---|")
    for name, values in (("server", server_times), ("client", client_times)):
        print(f"| {name} | {statistics.median(values):.1f} | {percentile(values, 0.99):.1f} |")
    threads, times, failures = run_load(url, labels, image, arguments.clients, arguments.seconds)
    time.sleep(min(arguments.seconds / 10, 60))
    memory_at_start = memory_of_processes(process)
    for thread in threads:
        thread.join()
    memory_at_end = memory_of_processes(process)
    print(f"\n{arguments.clients} clients, {arguments.seconds:g} seconds\n")
    print("| request | number | p50, ms | p99, ms |\n|---|---|---|---|")
    for kind, values in sorted(times.items()):
        p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
        print(f"| {kind} | {len(values):,} | {p50:.1f} | {p99:.1f} |")
    print(f"\nFailures: {dict(failures) or 'none'}")
    change = memory_at_end / memory_at_start - 1
    print(f"Memory: {memory_at_start:.0f} MB, at the end {memory_at_end:.0f} MB ({change:+.1%})")
    is_long = arguments.seconds >= LONG_LOAD_SECONDS
    if failures or (is_long and abs(change) > MAX_MEMORY_CHANGE):
        sys.exit(1)


if __name__ == "__main__":
    main()
