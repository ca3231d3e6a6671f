"""Compute micro and macro F1 of label sets that TagCLIP predicted and published as examples.

    python benchmarks/tagclip_sets.py FOLDER [--resamples N]

FOLDER contains label lists, which have one line per image: the name of the image and the numbers of
its labels, counted from 0. The predicted sets are ``tagclip_coco2017_val_predicted_sets.txt`` and
``tagclip_voc2012_val_predicted_sets.txt`` of the repository linyq2117/TagCLIP. The targets are
``coco2017_val_labels.txt`` of this repository and ``voc12_val_labels.txt`` of akang-wang/PIAA. Only
images in both lists are used.

    micro F1    Harmonic mean of precision and recall over all pairs of an image and a label.
    macro F1    Mean over the labels of the F1 of each label. If a label is in no predicted set, its
                F1 is 0; a label without positive targets and predictions is left out.

The F1 of a set is ``f1_at_k``, where k is the number of pairs in the set. The intervals are 95 %
intervals of a bootstrap over images. The figures are those of these lists only: they are not the
published figures of TagCLIP, which have other images, labels and metrics.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics import bootstrap_interval, f1_at_k

DATASETS = {  # predicted sets, targets, number of labels
    "COCO 2017 val": (
        "tagclip_coco2017_val_predicted_sets.txt",
        "coco2017_val_labels.txt",
        80,
    ),
    "VOC 2012 val": ("tagclip_voc2012_val_predicted_sets.txt", "voc12_val_labels.txt", 20),
}


def read_sets(file: Path) -> dict[str, list[int]]:
    """Return the numbers of the labels of each image by its name."""
    rows = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    sets = {name: [int(label) for label in labels] for name, *labels in rows}
    if len(sets) < len(rows):
        raise ValueError(f"{file} must contain each image once.")
    return sets


def multi_hot(sets: dict[str, list[int]], images: list[str], n_labels: int) -> Array:
    """Return 1 for each label in the set of an image and 0 for other labels, ``(n, c)``."""
    rows = np.zeros((len(images), n_labels))
    for row, image in zip(rows, images, strict=True):
        row[sets[image]] = 1
    return rows


def set_f1(predicted: npt.ArrayLike, targets: npt.ArrayLike) -> float:
    """Return the F1 of one set of pairs: the pairs with the value 1 among all pairs."""
    pairs, positives = np.ravel(predicted)[None], np.ravel(targets)[None]
    n_predicted = int(pairs.sum())
    if n_predicted == 0:
        return 0.0 if positives.any() else float("nan")
    return f1_at_k(pairs, positives, k=n_predicted)


def micro_f1(predicted: Array, targets: Array, known: object = None) -> float:
    """Return the F1 over all pairs of an image and a label; all targets are known."""
    return set_f1(predicted, targets)


def macro_f1(predicted: Array, targets: Array, known: object = None) -> float:
    """Return the mean of the F1 of each label; all targets are known."""
    columns = zip(predicted.T, targets.T, strict=True)
    return float(np.nanmean([set_f1(*column) for column in columns]))


METRICS: dict[str, Callable[..., float]] = {"micro F1": micro_f1, "macro F1": macro_f1}


def print_dataset(folder: Path, title: str, resamples: int) -> None:
    """Print the number of images and a row of the table for each metric."""
    predicted_file, target_file, n_labels = DATASETS[title]
    predicted_sets, target_sets = (
        read_sets(folder / predicted_file),
        read_sets(folder / target_file),
    )
    images = [image for image in predicted_sets if image in target_sets]
    predicted, targets = (multi_hot(s, images, n_labels) for s in (predicted_sets, target_sets))
    print(
        f"{title}: {len(predicted_sets):,} predicted sets, {len(images):,} of these images are in "
        f"{target_file}; {predicted.sum(axis=1).mean():.2f} predicted and "
        f"{targets.sum(axis=1).mean():.2f} positive labels per image"
    )
    for name, metric in METRICS.items():
        interval = bootstrap_interval(metric, predicted, targets, resamples=resamples)
        low, value, high = (100 * v for v in (interval.low, interval.value, interval.high))
        print(f"    {name} {value:.2f} % [{low:.2f}, {high:.2f}]", flush=True)


def main() -> None:
    """Print the figures of both datasets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--resamples", type=int, default=1000)
    options = parser.parse_args()
    for title in DATASETS:
        print_dataset(options.folder, title, options.resamples)


if __name__ == "__main__":
    main()
