"""Speed and recall of the search for similar images, exact and approximate, on simulated vectors.

    python benchmarks/nearest_images.py [--images N] [--width D] [--folder FOLDER]

The vectors are points around the centres of themes, and belong to no encoder; the recall for real
images can differ, and ``surelabel index INDEX --ann`` prints it. *First* times include opening the
index and the checksum of the files. The other times are medians of 20 examples in an opened index.
Needs usearch (``pip install 'surelabel[ann]'``).
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

from surelabel.records import Predictions
from surelabel.retrieval import Index, hnsw_building, nearest_rows

BLOCK_IMAGES, IMAGES_OF_THEME, EXAMPLES, COUNT = 50_000, 500, 20, 1000


def simulated_vectors(n: int, width: int):
    """Yield blocks of vectors, ``(b, width)``, in random order of their themes."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(n // IMAGES_OF_THEME, 1), width), np.float32)
    for start in range(0, n, BLOCK_IMAGES):
        size = min(BLOCK_IMAGES, n - start)
        theme = random.integers(0, len(centres), size)
        yield start, centres[theme] + random.standard_normal((size, width), np.float32)


def create_index(folder: Path, n: int, width: int) -> Index:
    """Return a new index of one label with simulated vectors."""
    index = None
    for start, vectors in simulated_vectors(n, width):
        logits = np.zeros((len(vectors), 1), np.float32)
        paths = [f"/images/{start + row:09}.jpg" for row in range(len(vectors))]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        features = vectors.astype(np.float16)
        made = Predictions(paths, ["x"], logits, logits, "simulated", "none", features=features)
        if index is None:
            index = Index.create(folder, made, root="/images")
        else:
            index.add(made)
    assert index is not None
    index.compact()
    return index


def print_times(folder: Path, n: int, kind: str) -> None:
    """Print the times of searches for similar images."""
    random, times = np.random.default_rng(1), []
    index = None
    for row in random.integers(0, n, EXAMPLES + 1).tolist():
        start = time.perf_counter()
        index = index or Index.open(folder)
        vector = index.searcher.example_vector(f"/images/{row:09}.jpg")
        middle = time.perf_counter()
        assert vector is not None
        index.searcher.nearest_rows(vector, COUNT)
        times.append((time.perf_counter() - start, time.perf_counter() - middle))
    median = statistics.median(seconds for _, seconds in times[1:])
    print(
        f"{kind}: the {COUNT:,} nearest of {n:,} images in {1e3 * median:.1f} ms; first "
        f"{1e3 * times[0][0]:.0f} ms"
    )


def main() -> None:
    """Create an index, build its graphs, and time exact and approximate searches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1_100_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--folder", type=Path, help="folder for the files; temporary if omitted")
    arguments = parser.parse_args()
    n, width = arguments.images, arguments.width
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        index = create_index(Path(folder) / "index", n, width)
        print_times(index.folder, n, "exact")
        start = time.perf_counter()
        with mock.patch.object(hnsw_building, "EXACT_ROWS", 0):
            recall = index.build_ann()
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in index.folder.glob("ann-*"))
        print(
            f"built in {seconds:.0f} s, with {size / n:.0f} bytes per image of {width} values; "
            f"recall@100 {recall:.4f}"
        )
        print_times(index.folder, n, "approximate")
        with mock.patch.object(nearest_rows, "is_usearch_installed", return_value=False):
            print_times(index.folder, n, "exact again")


if __name__ == "__main__":
    main()
