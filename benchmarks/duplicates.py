"""Measure the false-positive and true-positive rates of `surelabel duplicates`, and its time.

    python benchmarks/duplicates.py [--count N] [--folder FOLDER] [--parts rates edits time]

The limits are selected on generated scenes. The limit of a target rate is the lowest cosine, in
steps of 0.001, for which the 95 % interval of the false-positive rate does not exceed the target.
The rates are measured on other scenes of the same kind, and on other kinds of scenes. All pairs of
different scenes are compared. Each interval has the lower lower end and the higher upper end of two
intervals: Clopper-Pearson, which assumes that the pairs are independent, and a bootstrap over
images, because pairs share images. The true-positive rate is measured on the test images of
scenes-80 and an edited copy of each image. The time is measured for random vectors. The script
prints Markdown tables, and the limits as Python code.
"""

import argparse
import io
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance
from scipy.sparse import csr_array
from scipy.stats import binomtest

import surelabel as sl
from surelabel.data.scene_writing import write_scenes
from surelabel.records import Predictions
from surelabel.retrieval.near_duplicates import DuplicateLimit, find_similar_rows

ENCODERS = ("tiny-vit", "tiny-rn")
TARGET_RATES = (1e-3, 1e-4, 1e-5, 1e-6)  # 1e-7 would need more scenes
BASE_COSINE = 0.85  # pairs below this cosine are not stored
MAX_PAIRS = 50_000_000
STEP = 0.001
RESAMPLES, BATCH = 1000, 50
SELECTION_SEED, TEST_SEED = 9101, 9202
TIMED_ROWS, TIMED_WIDTHS = (5_000, 20_000, 100_000), (128, 512)
OTHER_SCENES: dict[str, dict[str, object]] = {
    "sketch": {"domain": "sketch"},
    "night": {"domain": "night"},
    "blur": {"domain": "blur"},
    "noise": {"domain": "noise"},
    "long tail": {"long_tail": True},
    "scenes-all": {"vocabulary": "scenes-all"},
}


@dataclass(frozen=True)
class SimilarPairs:
    """Pairs of different images with a cosine of at least ``BASE_COSINE``.

    Attributes:
        rows: Rows of the pairs, ``(k, 2)``.
        cosines: Cosines of the pairs, ``(k,)``.
        n_images: Number of images.
    """

    rows: np.ndarray
    cosines: np.ndarray
    n_images: int

    @property
    def n_pairs(self) -> int:
        """Number of all pairs of images."""
        return math.comb(self.n_images, 2)


def image_vectors(encoder: str, paths: Sequence[str]) -> np.ndarray:
    """Return the image vectors that an index stores, float16, ``(n, d)``."""
    features = sl.Recognizer.zero_shot(encoder, ["lion"]).predict(paths).features
    assert features is not None
    return np.asarray(features)


def similar_pairs(vectors: np.ndarray) -> SimilarPairs:
    """Return the pairs with a cosine of at least ``BASE_COSINE``."""
    norms = np.square(vectors.astype(np.float64)).sum(1)
    rows, cosines = find_similar_rows(
        lambda: iter([vectors]),
        norms,
        norms > 0,
        min_cosine=BASE_COSINE,
        max_pairs=MAX_PAIRS,
    )
    return SimilarPairs(rows, cosines, len(vectors))


def clopper_pearson(n_found: int, n_all: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a binomial proportion."""
    interval = binomtest(n_found, n_all).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high)


def bootstrap_over_images(rows: np.ndarray, n_images: int, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile interval of a share of pairs over resampled images."""
    random, shares = np.random.default_rng(seed), list[float]()
    is_similar = csr_array(
        (np.ones(len(rows)), (rows[:, 0], rows[:, 1])), shape=(n_images, n_images)
    )
    for _ in range(RESAMPLES // BATCH):
        samples = [random.integers(n_images, size=n_images) for _ in range(BATCH)]
        weights = np.stack([np.bincount(s, minlength=n_images) for s in samples]).astype(float)
        n_pairs = (n_images**2 - np.square(weights).sum(1)) / 2
        n_similar = np.einsum("ri,ir->r", weights, is_similar @ weights.T)
        shares += (n_similar / n_pairs).tolist()
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def rate_at_limit(pairs: SimilarPairs, min_cosine: float, target: float) -> DuplicateLimit:
    """Return the false positives at a limit, with the outer ends of both intervals."""
    rows = pairs.rows[pairs.cosines >= min_cosine]
    ends = (
        clopper_pearson(len(rows), pairs.n_pairs),
        bootstrap_over_images(rows, pairs.n_images),
    )
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return DuplicateLimit(target, min_cosine, len(rows), pairs.n_pairs, low, high)


def select_limits(pairs: SimilarPairs) -> list[DuplicateLimit]:
    """Return the lowest limit for each target rate whose interval does not exceed the target."""
    limits, steps = [], iter(range(round(BASE_COSINE / STEP), round(1 / STEP)))
    for target in TARGET_RATES:
        for step in steps:
            min_cosine = round(step * STEP, 3)
            n_found = int((pairs.cosines >= min_cosine).sum())
            if clopper_pearson(n_found, pairs.n_pairs)[1] > target:
                continue
            limit = rate_at_limit(pairs, min_cosine, target)
            if limit.high <= target:
                limits.append(limit)
                break
    return limits


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    for cells in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(map(str, cells)) + " |")
    print(flush=True)


def rate_text(limit: DuplicateLimit) -> str:
    """Return a rate and its interval as text."""
    return f"{limit.false_positive_rate:.1e} ({limit.low:.1e} to {limit.high:.1e})"


def scene_paths(folder: Path, name: str, count: int, seed: int, **settings: object) -> list[str]:
    """Generate scenes, unless the folder is complete, and return the paths of the images."""
    scenes = write_scenes(folder / name.replace(" ", "-"), count=count, seed=seed, **settings)
    return sl.find_images([str(scenes / "images")])


def measure_rates(folder: Path, count: int) -> dict[str, list[DuplicateLimit]]:
    """Select limits, print their false-positive rates on other scenes, and return them."""
    selection = scene_paths(folder, "selection", count, SELECTION_SEED)
    test = scene_paths(folder, "test", count, TEST_SEED)
    measured = {}
    for encoder in ENCODERS:
        selected = select_limits(similar_pairs(image_vectors(encoder, selection)))
        pairs = similar_pairs(image_vectors(encoder, test))
        limits = [rate_at_limit(pairs, s.min_cosine, s.target_rate) for s in selected]
        measured[encoder] = limits
        fingerprint = sl.Recognizer.zero_shot(encoder, ["lion"]).encoder.fingerprint
        print(f"{encoder} ({fingerprint}), {pairs.n_pairs:,} pairs of {count:,} scenes\n")
        rows = []
        for chosen, limit in zip(selected, limits, strict=True):
            similar = pairs.rows[pairs.cosines >= limit.min_cosine]
            low, high = clopper_pearson(len(similar), pairs.n_pairs)
            rows.append(
                [
                    f"{limit.target_rate:g}",
                    f"{limit.min_cosine:.3f}",
                    rate_text(chosen),
                    f"{limit.n_reported:,}",
                    f"{len(np.unique(similar)):,}",
                    f"{limit.false_positive_rate:.1e}",
                    f"{low:.1e} to {high:.1e}",
                    f"{limit.low:.1e} to {limit.high:.1e}",
                ]
            )
        header = ["target", "limit", "selection scenes", "pairs reported", "images in them"]
        print_table([*header, "test scenes", "exact binomial", "wider interval"], rows)
        print("\n".join(f"{limit!r}," for limit in limits), "\n")
    for name, settings in OTHER_SCENES.items():
        paths = scene_paths(folder, name, count // 2, TEST_SEED + 1, **settings)
        for encoder in ENCODERS:
            pairs = similar_pairs(image_vectors(encoder, paths))
            rates = [rate_at_limit(pairs, m.min_cosine, m.target_rate) for m in measured[encoder]]
            print_table(
                ["scenes", "encoder", *(f"{m.target_rate:g}" for m in measured[encoder])],
                [[name, encoder, *map(rate_text, rates)]],
            )
    return measured


def crop(share: float) -> Callable[[Image.Image, np.random.Generator], Image.Image]:
    """Return a function that crops a share of the area, at a random position."""

    def edit(image: Image.Image, random: np.random.Generator) -> Image.Image:
        width, height = (round(side * math.sqrt(share)) for side in image.size)
        left = int(random.integers(image.width - width + 1))
        top = int(random.integers(image.height - height + 1))
        return image.crop((left, top, left + width, top + height))

    return edit


def resize(scale: float) -> Callable[[Image.Image, np.random.Generator], Image.Image]:
    """Return a function that scales both sides of an image."""

    def edit(image: Image.Image, _: np.random.Generator) -> Image.Image:
        return image.resize([round(side * scale) for side in image.size], Image.Resampling.LANCZOS)

    return edit


def brightness(factor: float) -> Callable[[Image.Image, np.random.Generator], Image.Image]:
    """Return a function that multiplies the brightness."""
    return lambda image, _: ImageEnhance.Brightness(image).enhance(factor)


def jpeg(quality: int) -> Callable[[Image.Image, np.random.Generator], Image.Image]:
    """Return a function that encodes an image as JPEG again."""

    def edit(image: Image.Image, _: np.random.Generator) -> Image.Image:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file).convert("RGB")

    return edit


EDITS = {
    "crop, 90 % of the area": crop(0.9),
    "crop, 80 % of the area": crop(0.8),
    "JPEG, quality 90": jpeg(90),
    "JPEG, quality 60": jpeg(60),
    "JPEG, quality 30": jpeg(30),
    "resize to 50 %": resize(0.5),
    "resize to 25 %": resize(0.25),
    "brightness 90 %": brightness(0.9),
    "brightness 110 %": brightness(1.1),
}


def write_edited_images(folder: Path, name: str, paths: Sequence[str]) -> list[str]:
    """Write an edited copy of each image as PNG, without loss, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    random, edited = np.random.default_rng(0), []
    for path in paths:
        with Image.open(path) as image:
            copy = EDITS[name](image.convert("RGB"), random)
        edited.append(str(folder / f"{Path(path).stem}.png"))
        copy.save(edited[-1])
    return edited


def paired_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of two arrays ``(n, d)``."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    norms = np.square(x).sum(1) * np.square(y).sum(1)
    return (x * y).sum(1) / np.sqrt(norms)


def measure_edits(folder: Path, limits: dict[str, list[DuplicateLimit]]) -> None:
    """Print the true-positive rate of each edit at the limits of each encoder."""
    paths = sl.collection("scenes-80", split="test").paths
    edited = {
        name: write_edited_images(folder / "edited" / str(number), name, paths)
        for number, name in enumerate(EDITS)
    }
    for encoder in ENCODERS:
        originals, rows = image_vectors(encoder, paths), []
        for name in EDITS:
            cosines = paired_cosines(originals, image_vectors(encoder, edited[name]))
            cells = [name, f"{np.median(cosines):.4f}"]
            for limit in limits[encoder]:
                n_found = int((cosines >= limit.min_cosine).sum())
                low, high = clopper_pearson(n_found, len(paths))
                share, low, high = (100 * value for value in (n_found / len(paths), low, high))
                cells.append(f"{share:.1f} ({low:.1f} to {high:.1f})")
            rows.append(cells)
        header = [f"{limit.target_rate:g}: {limit.min_cosine:.3f}" for limit in limits[encoder]]
        print(f"{encoder}, true-positive rate in %, {len(paths):,} images\n")
        print_table(["edit", "median cosine", *header], rows)


def measure_time(folder: Path) -> None:
    """Print the seconds of a search in indexes of random vectors."""
    rows = []
    for width in TIMED_WIDTHS:
        for n in TIMED_ROWS:
            index = random_index(folder / f"index-{n}-{width}", n, width)
            seconds = []
            for _ in range(3 if n < max(TIMED_ROWS) else 1):
                begin = time.perf_counter()
                sl.find_duplicates(index, min_cosine=0.9)
                seconds.append(time.perf_counter() - begin)
            rows.append([f"{n:,}", width, f"{math.comb(n, 2):,}", f"{np.median(seconds):.1f}"])
            print_table(["images", "width", "pairs", "seconds"], rows[-1:])


def random_index(folder: Path, n: int, width: int) -> sl.Index:
    """Write an index of random image vectors, with one label and no image files."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((n, width), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    logits = np.zeros((n, 1), np.float32)
    predictions = Predictions(
        [f"/images/{row:08}.jpg" for row in range(n)],
        ["label"],
        logits,
        logits,
        "simulated",
        "none",
        features=vectors.astype(np.float16),
    )
    return sl.Index.create(folder, predictions, root="/images")


def main() -> None:
    """Run the selected parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="number of scenes of each kind")
    parser.add_argument("--folder", type=Path, help="folder of the scenes, kept for the next run")
    parts = ("rates", "edits", "time")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if {"rates", "edits"} & set(options.parts):
            limits = measure_rates(folder, options.count)
            if "edits" in options.parts:
                measure_edits(folder, limits)
        if "time" in options.parts:
            measure_time(Path(temporary))


if __name__ == "__main__":
    main()
