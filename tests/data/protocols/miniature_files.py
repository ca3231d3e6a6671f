"""Write the files of miniatures of datasets, and state the annotations that they contain."""

from typing import NamedTuple

import numpy as np
from PIL import Image


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
