"""Generate miniatures of COCO in the official layouts, with the annotations they contain."""

import json
from pathlib import Path

import numpy as np
from miniature_files import ExpectedSplit, Miniature, random_targets, write_image

from surelabel.data.protocols import PROTOCOLS

CATEGORY_IDS = [*range(1, 12), *range(13, 26), *range(27, 29), *range(31, 45), *range(46, 66)]
CATEGORY_IDS += [67, 70, *range(72, 83), *range(84, 91)]  # ids of the 80 categories of COCO


def write_json(path: Path, value: object) -> None:
    """Write a value as a JSON file, and create the folder of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def instances_of(file_names, targets, names, first_id=1):
    """Return official annotations; each positive label has an object, and some have two.

    The categories are in another order than their ids, and so are the images.
    """
    categories = [{"id": i, "name": name} for i, name in zip(CATEGORY_IDS, names, strict=True)]
    images = [{"id": first_id + row, "file_name": name} for row, name in enumerate(file_names)]
    pairs = [(row, column) for row, column in np.argwhere(targets).tolist()]
    annotations = [
        {"id": number, "image_id": first_id + row, "category_id": CATEGORY_IDS[column]}
        for number, (row, column) in enumerate([*pairs, *pairs[:3]], start=1)
    ]
    return {"images": images, "annotations": annotations, "categories": categories[::-1]}


def write_coco(folder: Path, year: int) -> Miniature:
    """Write a miniature of a release of COCO; one image of each split has no label."""
    names, expected = PROTOCOLS[f"coco{year - 2000}"].labels, {}
    prefix = "COCO_{}_" if year == 2014 else ""
    for seed, (split, size) in enumerate([(f"train{year}", 11), (f"val{year}", 8)], start=1):
        targets = random_targets(size, len(names), seed, share=0.05)
        targets[size // 2] = 0.0
        files = [f"{prefix.format(split)}{100 * seed + row:012}.jpg" for row in range(size)]
        content = instances_of(files, targets, names, first_id=1000 * seed)
        write_json(folder / f"annotations/instances_{split}.json", content)
        for row, file in enumerate(files):
            write_image(folder / split / file, 1000 * seed + row)
        labelled = np.flatnonzero(targets.any(axis=1))
        paths = [f"{split}/{files[row]}" for row in labelled]
        expected[split] = ExpectedSplit(paths, targets[labelled])
    return expected


def image_list(paths, targets, names):
    """Return a list of images as RAM publishes it: a label is repeated for each object."""
    entries = []
    for row, path in enumerate(paths):
        labels = [names[column] for column in np.flatnonzero(targets[row])]
        entries.append([f"/disk/COCO/trainval2014/{path.rsplit('/', 1)[-1]}", labels + labels[:1]])
    return {"images": entries, "classes": [*names][::-1]}


def write_coco_48_17(folder: Path) -> Miniature:
    """Write a miniature of the lists of RAM; some test images have no unseen label."""
    groups = PROTOCOLS["coco-48-17"].groups
    seen, unseen = groups["seen"], groups["unseen"]
    train_paths = [f"train2014/COCO_train2014_{row:012}.jpg" for row in range(9)]
    test_paths = [f"val2014/COCO_val2014_{row:012}.jpg" for row in range(8)]
    train = random_targets(len(train_paths), len(seen), seed=5)
    test = random_targets(len(test_paths), len(seen) + len(unseen), seed=6, share=0.1)
    test[:3, len(seen) :] = 0.0
    has_unseen = np.flatnonzero(test[:, len(seen) :].any(axis=1))
    write_json(folder / "annotations/train_48_filtered.json", image_list(train_paths, train, seen))
    write_json(
        folder / "annotations/test_65_filtered.json",
        image_list(test_paths, test, [*seen, *unseen]),
    )
    unseen_paths = [test_paths[row] for row in has_unseen]
    unseen_list = image_list(unseen_paths, test[has_unseen, len(seen) :], unseen)
    write_json(folder / "annotations/test_17_filtered.json", unseen_list)
    for number, path in enumerate([*train_paths, *test_paths]):
        write_image(folder / path, 7000 + number)
    unknown = np.full((len(train_paths), len(unseen)), np.nan)
    return {
        "train": ExpectedSplit(train_paths, np.hstack([train, unknown])),
        "test": ExpectedSplit(test_paths, test),
    }
