"""Define the evaluation protocols of ImageNet, and of its test variants V2, Sketch, A and R."""

from functools import partial
from pathlib import Path

from surelabel.data.protocols.definition.class_splits import (
    check_distinct_classes,
    read_class_folders,
    read_text_lines,
)
from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file

_CLASSES = "classnames.txt"
_ORIGIN = "DATASETS.md of KaiyangZhou/CoOp"
_NOT_READ = "The classes are read from classnames.txt; their list and the counts are not verified."
_BASE_RULE = (
    "In the test with base and novel classes, the first half of the classes, in the order of their "
    "folders, is base, as in CoOp."
)
_TRAINING = (
    "The training images are not checked; papers train on 16 images of each class, which they "
    "sample with three seeds."
)


def _read_split(
    folder: Path, split: ProtocolSplit, *, images: str, has_numbers: bool = False
) -> ProtocolRows:
    """Return the images of the folders of the classes.

    Args:
        folder: Folder with ``classnames.txt``, which has a folder and a class on each line.
        split: Split of the evaluation protocol.
        images: Folder with one folder for each class.
        has_numbers: Whether the names of these folders are the numbers of the classes.

    Raises:
        DataError: If a line of ``classnames.txt`` is invalid, or if there is another folder.
    """
    file = folder / _CLASSES
    folders, names = [], []
    for number, line in read_text_lines(file):
        name, _, label = line.partition(" ")
        if not label.strip() or "/" in name or "\\" in name:
            raise DataError(
                f"{file}, line {number}: expected a folder and a class; got {quote_of_file(line)}. "
                "Restore the official file."
            )
        folders.append(name)
        names.append(label.strip())
    check_distinct_classes(f"{file}, folders", folders)
    names = [
        f"{name} ({folder_name})" if names.count(name) > 1 else name
        for folder_name, name in zip(folders, names, strict=True)
    ]
    keys = [str(number) for number in range(len(names))] if has_numbers else folders
    return read_class_folders(folder, images, keys, names)


def _entry(
    title: str, images: str, *notes: str, split: str = "test", has_numbers: bool = False
) -> EvaluationProtocol:
    return EvaluationProtocol(
        title=title,
        task="labels",
        splits=(ProtocolSplit(split, "test"),),
        files=(
            ProtocolFile(_CLASSES, "folder and class on each line", _ORIGIN),
            ProtocolFile(images, "images, one folder for each class", _ORIGIN),
        ),
        read_split=partial(_read_split, images=images, has_numbers=has_numbers),
        metrics={"accuracy": {}},
        notes=(*notes, _NOT_READ),
    )


IMAGENET = {
    "imagenet": _entry("ImageNet", "images/val", _BASE_RULE, _TRAINING, split="val"),
    "imagenet-v2": _entry(
        "ImageNetV2, matched frequency",
        "imagenetv2-matched-frequency-format-val",
        "The folders are the numbers of the classes.",
        has_numbers=True,
    ),
    "imagenet-sketch": _entry("ImageNet-Sketch", "images"),
    "imagenet-a": _entry(
        "ImageNet-A", "imagenet-a", "The images have 200 of the classes of ImageNet."
    ),
    "imagenet-r": _entry(
        "ImageNet-R", "imagenet-r", "The images have 200 of the classes of ImageNet."
    ),
}
