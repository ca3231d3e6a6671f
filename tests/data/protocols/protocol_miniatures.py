"""Generate a miniature of each dataset in its official layout, with the annotations it contains."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from attribute_miniatures import ATTRIBUTE_MINIATURES
from caption_miniatures import write_coco_captions, write_flickr30k
from class_miniatures import CLASS_MINIATURES
from coco_miniatures import write_coco, write_coco_48_17
from long_tail_miniatures import write_coco_lt, write_openimages_v6, write_voc_lt
from miniature_files import ExpectedSplit, Miniature, random_targets, write_image
from nuswide_miniatures import NUSWIDE_MINIATURES

from surelabel.data.protocols import PROTOCOLS


def write_voc(folder: Path, names, sizes, first=1) -> Miniature:
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


MINIATURES: dict[str, Callable[[Path], Miniature]] = {
    "voc07": partial(write_voc, names=["trainval", "test"], sizes=[12, 8]),
    "voc07-val": partial(write_voc, names=["train", "val"], sizes=[12, 8]),
    "voc12": partial(write_voc, names=["train", "val"], sizes=[12, 8]),
    "coco14": partial(write_coco, year=2014),
    "coco17": partial(write_coco, year=2017),
    "coco-48-17": write_coco_48_17,
    "coco-captions": write_coco_captions,
    "flickr30k": write_flickr30k,
    **NUSWIDE_MINIATURES,
    **ATTRIBUTE_MINIATURES,
    **CLASS_MINIATURES,
    "coco-lt": write_coco_lt,
    "openimages-v6": write_openimages_v6,
    "voc-lt": partial(write_voc_lt, write_voc=write_voc),
}
