"""Generate a miniature of each dataset in its official layout, with the annotations it contains."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from surelabel.data.protocols import PROTOCOLS


class ExpectedSplit(NamedTuple):
    """Images, targets ``(n, c)``, captions and their image rows, as a miniature contains them."""

    images: list[str]
    targets: np.ndarray
    captions: tuple[str, ...] = ()
    image_rows: tuple[int, ...] = ()


Miniature = dict[str, ExpectedSplit]  # by the name of the split


def write_image(path, seed):
    """Write a small image whose pixels depend on the seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def random_targets(n_images, n_labels, seed, share=0.2):
    """Return targets in which each image has a positive label, ``(n, c)``."""
    rng = np.random.default_rng(seed)
    targets = (rng.random((n_images, n_labels)) < share).astype(float)
    targets[np.arange(n_images), rng.integers(0, n_labels, n_images)] = 1.0
    return targets


def write_voc(folder: Path, names, sizes, first=1):
    """Write image sets of Pascal VOC; the last positive label of the first image is difficult."""
    labels, expected, number = PROTOCOLS["voc12"].labels, {}, first
    sets = folder / "ImageSets/Main"
    sets.mkdir(parents=True)
    (folder / "Annotations").mkdir()
    for name, size in zip(names, sizes, strict=True):
        images = [f"2008_{number + row:06}" for row in range(size)]
        number += size
        targets = random_targets(size, len(labels), seed=number)
        published = np.where(targets == 1, 1, -1)
        published[0, np.flatnonzero(published[0] == 1)[-1]] = 0
        (sets / f"{name}.txt").write_text("".join(f"{image}\n" for image in images))
        for column, label in enumerate(labels):
            lines = zip(images, published[:, column], strict=True)
            text = "".join(f"{image} {value:2d}\n" for image, value in lines)
            (sets / f"{label}_{name}.txt").write_text(text)
        paths = [f"JPEGImages/{image}.jpg" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, number + 1000 * row)
        expected[name] = ExpectedSplit(paths, (published == 1).astype(float))
    return expected


def write_voc12(folder: Path) -> Miniature:
    """Write a miniature of Pascal VOC 2012."""
    return write_voc(folder, ["train", "val"], [12, 8])


MINIATURES: dict[str, Callable[[Path], Miniature]] = {
    "voc12": write_voc12,
}
