"""Vectors of photographs for `surelabel bench calibrated --features`: one NumPy archive.

    python benchmarks/photographs.py voc12_animals photographs.npz

The folder holds `labels.csv` (one column a class, one for the split of VOC 2012) and
`mobilenetv2_feats.npz` (`names`, `pool_u8`, `pool_scale_zero`). A fifth of the training pictures,
drawn once, is for validation; the validation pictures of VOC are the test. Classes with fewer than
20 training pictures are left out.
"""

import csv
import sys
from pathlib import Path

import numpy as np

LEAST = 20


def main(folder: str, out: str) -> None:
    with Path(folder, "labels.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    with np.load(Path(folder, "mobilenetv2_feats.npz"), allow_pickle=False) as file:
        place = {str(name).removesuffix(".jpg"): row for row, name in enumerate(file["names"])}
        scale, zero = file["pool_scale_zero"].astype(np.float32)
        features = (file["pool_u8"].astype(np.float32) - zero) * scale
    labels = [key for key in lines[0] if key not in ("name", "image", "file", "split")]
    key = next(key for key in ("name", "image", "file") if key in lines[0])
    rows = [place[line[key].removesuffix(".jpg")] for line in lines]
    targets = np.array([[float(line[label]) for label in labels] for line in lines])
    part = np.array([line["split"] for line in lines])
    part = np.where(part == "val", "test", "train").astype("<U10")
    train = np.flatnonzero(part == "train")
    drawn = np.random.default_rng(0).permutation(train)[: len(train) // 5]
    part[drawn] = "validation"
    kept = targets[part == "train"].sum(axis=0) >= LEAST
    names = np.array(labels)[kept]
    np.savez(out, features=features[rows], targets=targets[:, kept], names=names, part=part)
    print(f"{out}: {np.unique(part, return_counts=True)}, {len(names)} labels: {', '.join(names)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
