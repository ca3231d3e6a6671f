"""Write features of photographs as an archive for `surelabel bench calibrated --features`.

    python benchmarks/photographs.py voc12_animals photographs.npz

The folder contains `labels.csv` (a column for each class, and a column for the VOC 2012 split) and
`mobilenetv2_feats.npz` (`names`, `pool_u8`, `pool_scale_zero`). A fifth of the training images is
sampled for validation; the validation images of VOC are the test split. Classes with fewer than 20
training images are left out.
"""

import csv
import sys
from pathlib import Path

import numpy as np

MIN_TRAINING_IMAGES = 20


def main(folder: str, out: str) -> None:
    """Read the folder and write the archive."""
    with Path(folder, "labels.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    with np.load(Path(folder, "mobilenetv2_feats.npz"), allow_pickle=False) as file:
        row_of_image = {
            str(name).removesuffix(".jpg"): row for row, name in enumerate(file["names"])
        }
        scale, zero = file["pool_scale_zero"].astype(np.float32)
        features = (file["pool_u8"].astype(np.float32) - zero) * scale
    labels = [key for key in lines[0] if key not in ("name", "image", "file", "split")]
    key = next(key for key in ("name", "image", "file") if key in lines[0])
    rows = [row_of_image[line[key].removesuffix(".jpg")] for line in lines]
    targets = np.array([[float(line[label]) for label in labels] for line in lines])
    part = np.array([line["split"] for line in lines])
    part = np.where(part == "val", "test", "train").astype("<U10")
    train = np.flatnonzero(part == "train")
    validation = np.random.default_rng(0).permutation(train)[: len(train) // 5]
    part[validation] = "validation"
    is_frequent = targets[part == "train"].sum(axis=0) >= MIN_TRAINING_IMAGES
    names = np.array(labels)[is_frequent]
    np.savez(out, features=features[rows], targets=targets[:, is_frequent], names=names, part=part)
    print(f"{out}: {np.unique(part, return_counts=True)}, {len(names)} labels: {', '.join(names)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
