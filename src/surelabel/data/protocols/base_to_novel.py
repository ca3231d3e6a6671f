"""Define the evaluation protocols with base and novel classes: ten datasets of CoOp."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from surelabel.data.protocols.definition.class_splits import (
    check_distinct_classes,
    read_class_split_json,
    read_text_lines,
    rows_of_classes,
)
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

BASE_RULE = (
    "The first ceil(n / 2) classes in the order of their numbers are base, and the others are "
    "novel, as in datasets/oxford_pets.py of KaiyangZhou/CoOp; training images are those of base."
)
NOT_READ = "The classes are read from the folder; their list and the counts are not verified."

_SPLITS = (
    ProtocolSplit("train", "train"),
    ProtocolSplit("val", "validation"),
    ProtocolSplit("test", "test"),
)


class _ClassDataset(NamedTuple):
    title: str
    list_name: str  # of split_zhou_….json
    images: str


_DATASETS = {
    "caltech101": _ClassDataset("Caltech-101", "Caltech101", "101_ObjectCategories"),
    "dtd": _ClassDataset("Describable Textures", "DescribableTextures", "images"),
    "eurosat": _ClassDataset("EuroSAT", "EuroSAT", "2750"),
    "flowers102": _ClassDataset("Oxford Flowers 102", "OxfordFlowers", "jpg"),
    "food101": _ClassDataset("Food-101", "Food101", "images"),
    "oxford-pets": _ClassDataset("Oxford-IIIT Pets", "OxfordPets", "images"),
    "stanford-cars": _ClassDataset("Stanford Cars", "StanfordCars", "."),
    "sun397": _ClassDataset("SUN397", "SUN397", "SUN397"),
    "ucf101": _ClassDataset("UCF101, middle frames", "UCF101", "UCF-101-midframes"),
}


def _read_json_split(folder: Path, split: ProtocolSplit, *, file: str, images: str) -> ProtocolRows:
    """Return the images and classes of a split of CoOp."""
    return read_class_split_json(folder / file, images, split.name)


def _read_aircraft_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the images and variants of a split of FGVC-Aircraft.

    Raises:
        DataError: If a file is missing or invalid, or if an image has an unknown variant.
    """
    file = folder / f"images_variant_{split.name}.txt"
    names = [name for _, name in read_text_lines(folder / "variants.txt")]
    check_distinct_classes(str(folder / "variants.txt"), names)
    images, columns = [], []
    for number, line in read_text_lines(file):
        image, _, name = line.partition(" ")
        if name not in names or "/" in image or "\\" in image or image.startswith("."):
            raise DataError(
                f"{file}, line {number}: expected an image and a variant of variants.txt; got "
                f"{quote_of_file(line)}. Restore the official file."
            )
        images.append(f"images/{image}.jpg")
        columns.append(names.index(name))
    return rows_of_classes(images, columns, names)


def _json_entry(dataset: _ClassDataset) -> EvaluationProtocol:
    file = f"split_zhou_{dataset.list_name}.json"
    images = ProtocolFile(dataset.images, "images", "the page that DATASETS.md of CoOp links")
    return EvaluationProtocol(
        title=dataset.title,
        task="labels",
        splits=_SPLITS,
        files=(
            ProtocolFile(file, "images, classes and splits", "DATASETS.md of KaiyangZhou/CoOp"),
            *((images,) if dataset.images != "." else ()),
        ),
        read_split=partial(_read_json_split, file=file, images=dataset.images),
        metrics={"accuracy": {}},
        notes=(BASE_RULE, NOT_READ),
    )


BASE_TO_NOVEL = {
    **{name: _json_entry(dataset) for name, dataset in _DATASETS.items()},
    "fgvc-aircraft": EvaluationProtocol(
        title="FGVC-Aircraft, variants",
        task="labels",
        splits=_SPLITS,
        files=(
            ProtocolFile("variants.txt", "classes", "fgvc-aircraft-2013b.tar.gz"),
            *(
                ProtocolFile(
                    f"images_variant_{split.name}.txt",
                    f"images and classes of {split.name}",
                    "fgvc-aircraft-2013b.tar.gz",
                )
                for split in _SPLITS
            ),
            ProtocolFile("images", "images", "fgvc-aircraft-2013b.tar.gz"),
        ),
        read_split=_read_aircraft_split,
        metrics={"accuracy": {}},
        notes=(BASE_RULE, NOT_READ),
    ),
}
