"""Measure the localization by image parts and patches: `python benchmarks/part_localization.py`.

The metric is the accuracy of the pointing game. A label of a test scene is located correctly if the
cell with the highest score in its heat map has its centre inside the box of an object of this
label. If several cells have this score, the mean of their centres is used. Each label counts once
per image, with the area of its largest object. The script compares `multiple_instance_tiles` and
`multiple_instance_patches`, fitted on annotated training scenes, with the plain and self-aware
patches of the frozen encoder. It prints percentages with 95 % intervals over images (bootstrap).
"""

import argparse

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.image_splits import load_benchmark_scenes
from surelabel.config import load_run
from surelabel.data.scene_files import AnnotatedScenes
from surelabel.encoders import Encoder, load_encoder, prompt_templates
from surelabel.features import (
    FeatureCache,
    default_feature_cache_folder,
    encode_image_files,
)
from surelabel.recognizer import Recognizer

METHODS = {"multiple_instance_tiles": "tiles", "multiple_instance_patches": "cells"}
SIZES = {  # area of the largest object of a label, as a fraction of the image
    "below 4 %": (0.0, 0.04),
    "4 to 8 %": (0.04, 0.08),
    "above 8 %": (0.08, 1.01),
    "all": (0.0, 1.01),
}
N_RESAMPLES = 300


def patch_maps(encoder: Encoder, kind: str, scenes: AnnotatedScenes) -> Array:
    """Return the cosines of patches and labels, ``(n, c, down, across)``."""
    cache = FeatureCache(default_feature_cache_folder())
    encoded = encode_image_files(
        encoder.with_dense_image_size(), scenes.images.paths, kind=kind, cache=cache
    ).features
    assert encoded.patches is not None
    assert encoded.grid is not None
    texts = encoder.encode_labels(scenes.images.names, prompt_templates("one"))
    maps: Array = (encoded.patches @ texts.T).transpose(1, 2).unflatten(2, encoded.grid).numpy()
    return maps


def pointed_labels(maps: Array, scenes: AnnotatedScenes) -> list[Array]:
    """Return for each image the areas and the correctness of its k positive labels, ``(k, 2)``."""
    names, targets = scenes.images.names, scenes.images.targets
    rows = []
    for image, objects in enumerate(scenes.objects):
        located = []
        for column in np.flatnonzero(targets[image]):
            grid = maps[image, column]
            highest = np.argwhere(grid == grid.max()).mean(axis=0)  # centre of equal cells
            y, x = (highest + 0.5) / grid.shape
            boxes = [item.box for item in objects if item.label == names[column]]
            area = max((right - left) * (bottom - top) for left, top, right, bottom in boxes)
            located.append((area, any(is_inside(x, y, box) for box in boxes)))
        rows.append(np.array(located, dtype=float).reshape(-1, 2))
    return rows


def is_inside(x: float, y: float, box: tuple[float, float, float, float]) -> bool:
    """Return whether a point is inside a box."""
    left, top, right, bottom = box
    return left <= x <= right and top <= y <= bottom


def describe_accuracy(rows: list[Array], low: float, high: float) -> str:
    """Return the percentage of correctly located labels of a size, with its interval."""
    of_size = [row[(row[:, 0] >= low) & (row[:, 0] < high), 1] for row in rows]
    counts = np.array([(row.sum(), len(row)) for row in of_size])
    rng = np.random.default_rng(0)
    samples = counts[rng.integers(len(counts), size=(N_RESAMPLES, len(counts)))].sum(axis=1)
    ends = 100 * np.quantile(samples[:, 0] / samples[:, 1], (0.025, 0.975))
    hits, total = counts.sum(axis=0)
    return f"{100 * hits / total:.1f} ({ends[0]:.1f}–{ends[1]:.1f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=500, help="annotated training images")
    n_images = parser.parse_args().images
    scenes, train = (load_benchmark_scenes(split, quick=True) for split in ("test", "train"))
    print(f"| encoder | regions | {' | '.join(SIZES)} |\n|---|---|{'---|' * len(SIZES)}")
    for name in ("tiny-vit", "tiny-rn"):
        encoder = load_encoder(name)
        maps = {
            "plain patches": patch_maps(encoder, "patches", scenes),
            "self-aware patches": patch_maps(encoder, "self_aware", scenes),
        }
        for method, regions in METHODS.items():
            run = load_run(overrides=[f"encoder.name={name}", f"method.name={method}"])
            recognizer = Recognizer(run, scenes.images.names)
            maps[f"{regions}, not fitted"] = recognizer.localize(scenes.images)[1]
            recognizer.fit(train.images.take(range(n_images)))
            maps[f"`{method}`, {n_images} images"] = recognizer.localize(scenes.images)[1]
        for regions, region_maps in maps.items():
            rows = pointed_labels(region_maps, scenes)
            cells = [describe_accuracy(rows, *limits) for limits in SIZES.values()]
            print(f"| {name} | {regions} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
