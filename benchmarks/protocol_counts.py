"""Compare the counts of evaluation protocols with published lists of labels and captions.

    python benchmarks/protocol_counts.py LABEL_LISTS CAPTIONS

LABEL_LISTS contains lists of PIAA and TagCLIP (``voc12_train_labels.txt``,
``voc12_val_labels.txt``, ``coco2014_train_labels.txt``, ``coco2014_val_labels.txt``,
``coco2017_val_labels.txt``) and the table ``voc2007_trainval_with_difficult.csv``. CAPTIONS
contains the captions, labels and relevance files of the 5,000 test images of Karpathy and Li, and
lists of captions of Flickr30k.

The official layouts are rebuilt from the lists in a temporary folder, without images, and are read
by the evaluation protocols. The table states the number of images or captions that were read, and
the counts of the evaluation protocol that they match. The number of images without a label and the
number of training images of COCO 48/17 are counted in the lists. The command fails if a count of an
evaluation protocol is not matched.
"""

import argparse
import csv
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from surelabel.data.protocols import PROTOCOLS
from surelabel.data.protocols.coco_captions import RELEVANCE_FILES

LabelList = list[tuple[str, list[int]]]  # name and label numbers of each image


class Row(NamedTuple):
    """Line of the table; ``stated`` has the counts of the evaluation protocol by their names."""

    name: str
    content: str
    found: int
    stated: dict[str, int]

    @property
    def result(self) -> str:
        """Return the names of the counts that match, or a mark of a difference."""
        if not self.stated:
            return "counted in the lists"
        matched = [name for name, count in self.stated.items() if count == self.found]
        return ", ".join(matched) or "DIFFERENT"


def read_label_list(file: Path) -> LabelList:
    """Return the name and the label numbers of each image, which are on one line."""
    rows = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return [(row[0], [int(number) for number in row[1:]]) for row in rows if row]


def split_row(name: str, split_name: str, folder: Path) -> Row:
    """Return the number of images of a split that the evaluation protocol reads from a folder."""
    protocol = PROTOCOLS[name]
    split = protocol.split(split_name)
    rows = protocol.read_split(folder, split)
    assert list(rows.names) == list(protocol.labels)
    assert not rows.defects, rows.defects
    counts = {"official": split.official.value, "as evaluated": split.evaluated.value}
    stated = {key: count for key, count in counts.items() if count is not None}
    return Row(name, f"images of {split_name}", len(rows.images), stated)


def write_voc_lists(folder: Path, split: str, targets: dict[str, Sequence[int]]) -> None:
    """Write the image sets of a split from the values 1, 0 and -1 of each image."""
    sets = folder / "ImageSets/Main"
    sets.mkdir(parents=True, exist_ok=True)
    (sets / f"{split}.txt").write_text("".join(f"{image}\n" for image in targets))
    for column, label in enumerate(PROTOCOLS["voc12"].labels):
        lines = (f"{image} {values[column]:2d}\n" for image, values in targets.items())
        (sets / f"{label}_{split}.txt").write_text("".join(lines))


def voc_rows(lists: Path, folder: Path) -> Iterator[Row]:
    """Yield the counts of Pascal VOC."""
    n_labels = len(PROTOCOLS["voc12"].labels)
    for split in ("train", "val"):
        images = read_label_list(lists / f"voc12_{split}_labels.txt")
        targets = {
            name: [1 if column in labels else -1 for column in range(n_labels)]
            for name, labels in images
        }
        write_voc_lists(folder, split, targets)
        yield split_row("voc12", split, folder)
    with (lists / "voc2007_trainval_with_difficult.csv").open(encoding="utf-8") as table:
        header, *rows = csv.reader(table)
    assert tuple(header[1:]) == PROTOCOLS["voc07"].labels
    write_voc_lists(folder, "trainval", {row[0]: [int(cell) for cell in row[1:]] for row in rows})
    yield split_row("voc07", "trainval", folder)


def write_instances(folder: Path, split: str, images: LabelList) -> None:
    """Write annotations of COCO with one object for each label of an image."""
    names = PROTOCOLS["coco14"].labels
    content = {
        "images": [{"id": row, "file_name": f"{name}.jpg"} for row, (name, _) in enumerate(images)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"image_id": row, "category_id": label}
            for row, (_, labels) in enumerate(images)
            for label in labels
        ],
    }
    file = folder / f"annotations/instances_{split}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def coco_rows(lists: Path, folder: Path) -> Iterator[Row]:
    """Yield the counts of COCO."""
    for name, split in (("coco14", "train2014"), ("coco14", "val2014"), ("coco17", "val2017")):
        part, year = split[:-4], split[-4:]
        images = read_label_list(lists / f"coco{year}_{part}_labels.txt")
        write_instances(folder, split, images)
        yield split_row(name, split, folder)
    groups, names = PROTOCOLS["coco-48-17"].groups, PROTOCOLS["coco14"].labels
    seen, unseen = ({names.index(label) for label in groups[key]} for key in ("seen", "unseen"))
    train = read_label_list(lists / "coco2014_train_labels.txt")
    selected = [labels for _, labels in train if seen & {*labels} and not unseen & {*labels}]
    yield Row("coco-48-17", "train2014, seen and no unseen label", len(selected), {})


def write_captions(captions: Path, folder: Path) -> None:
    """Write the test split of Karpathy and Li, and the files of ECCV Caption."""
    entries: dict[str, dict[str, object]] = {}
    sentences: dict[str, list[dict[str, object]]] = {}
    with (captions / "coco_karpathy5k_captions.tsv").open(encoding="utf-8") as table:
        reader = csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in reader:
            image = row["image_id"]
            sentences.setdefault(image, []).append(
                {"raw": row["caption"], "sentid": int(row["caption_id"])}
            )
            entries[image] = {
                "filepath": "val2014",
                "filename": f"COCO_val2014_{int(image):012}.jpg",
                "cocoid": int(image),
                "split": "test",
                "sentences": sentences[image],
            }
    content = {"images": [*entries.values()]}
    (folder / "dataset_coco.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "eccv_caption").mkdir()
    for path in (path for paths in RELEVANCE_FILES.values() for path in paths):
        shutil.copy(captions / path.replace("/", "_"), folder / path)


def caption_rows(captions: Path, folder: Path) -> Iterator[Row]:
    """Yield the counts of COCO Captions and Flickr30k."""
    write_captions(captions, folder)
    yield split_row("coco-captions", "test", folder)
    protocol = PROTOCOLS["coco-captions"]
    rows = protocol.read_split(folder, protocol.split("test"))
    yield Row("coco-captions", "captions of test", len(rows.captions), {"rule": 25_000})
    with np.load(captions / "coco_karpathy5k_labels.npz", allow_pickle=False) as arrays:
        assert {*arrays["image_id"].tolist()} == {*rows.image_ids}
        unlabelled = int((arrays["labels"].sum(axis=1) == 0).sum())
    yield Row("coco-captions", "images of test without a label", unlabelled, {})
    for split, file in (("val", "f30k_dev_caps.txt"), ("test", "f30k_test_caps.txt")):
        texts = (captions / file).read_text(encoding="utf-8").rstrip("\n").split("\n")
        stated = PROTOCOLS["flickr30k"].split(split).official.value
        assert stated is not None
        yield Row("flickr30k", f"captions of {split}", len(texts), {"5 x official": 5 * stated})


def main() -> None:
    """Print the table, and exit with 1 if a count is different."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("lists", type=Path, metavar="LABEL_LISTS")
    parser.add_argument("captions", type=Path, metavar="CAPTIONS")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            *voc_rows(arguments.lists, folder),
            *coco_rows(arguments.lists, folder),
            *caption_rows(arguments.captions, folder),
        ]
    print("| protocol | content | found | stated | matches |\n|---|---|---:|---|---|")
    for row in rows:
        stated = ", ".join(f"{count:,} ({key})" for key, count in row.stated.items()) or "-"
        print(f"| {row.name} | {row.content} | {row.found:,} | {stated} | {row.result} |")
    sys.exit(any(row.result == "DIFFERENT" for row in rows))


if __name__ == "__main__":
    main()
