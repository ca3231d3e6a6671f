"""Read the description of a YOLO dataset, ``data.yaml``: its labels, its folder and its splits."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.yaml_files import YamlNode, read_yaml_mapping
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file

SPLITS = ("train", "val", "validation", "test")

_INTEGER = re.compile(r"\d{1,9}", re.ASCII)
_LEAVING = "../"


@dataclass(frozen=True)
class YoloDescription:
    """Content of ``data.yaml``.

    Attributes:
        file: Path of the file.
        root: Folder to which the paths of the splits are relative.
        names: Labels by class number.
        splits: Paths of each split, which is named as in the file.
    """

    file: Path
    root: Path
    names: list[str]
    splits: dict[str, list[YamlNode]]


def read_yolo_description(file: Path, images_root: str | Path | None) -> YoloDescription:
    """Return the content of ``data.yaml``.

    Args:
        file: Path of the file.
        images_root: Folder to which the paths of the splits are relative. If None, the ``path`` of
            the file, relative to its folder, is used; without ``path``, the folder of the file.

    Raises:
        DataError: If the file is not YAML, has no labels or no split, or if a label, a class number
            or a path is invalid. The message contains the line.
    """
    content = read_yaml_mapping(file)
    if "names" not in content:
        raise DataError(
            f"{file} must contain the labels of the classes, such as names: [dog, cat]; got "
            f"{quote_of_file(', '.join(content))} without names. Add the labels."
        )
    names = _names_of_node(file, content["names"])
    n_classes = content.get("nc")
    if n_classes is not None and n_classes.value not in (None, str(len(names))):
        raise DataError(
            f"{file}, line {n_classes.line}: nc must be the number of labels in names, "
            f"{len(names)}; got {quote_of_file(n_classes.value)}. Correct nc or names."
        )
    splits = {
        key: _paths_of_node(file, key, content[key])
        for key in SPLITS
        if key in content and content[key].value is not None
    }
    if not splits:
        raise DataError(
            f"{file} must contain the images of a split, such as train: images/train; got "
            f"{quote_of_file(', '.join(content))}. Add train, val or test."
        )
    return YoloDescription(file, _root_of_content(file, content, images_root), names, splits)


def select_yolo_split(description: YoloDescription, split: str | None) -> str:
    """Return the name of the split to read: ``split``, or the only split of the dataset.

    Raises:
        InputError: If the dataset has no such split.
        DataError: If ``split`` is None, and the dataset has several splits.
    """
    splits = list(description.splits)
    if split is None:
        if len(splits) > 1:
            raise DataError(
                f"{description.file} must have one split, or a split must be chosen; got the "
                f"splits {', '.join(splits)}. Add --split {splits[0]} (in Python "
                f"split={splits[0]!r})."
            )
        return splits[0]
    if split not in splits:
        raise InputError(
            f"split must be one of the splits of {description.file}, {', '.join(splits)}; got "
            f"{split!r}."
        )
    return split


def resolve_yolo_path(place: str, root: Path, path: str) -> str:
    """Return a path of a dataset relative to the folder of the dataset.

    Args:
        place: Place of the path in messages, such as ``data.yaml, line 2``.
        root: Folder of the dataset.
        path: Path relative to ``root``, or an absolute path inside ``root``.

    Raises:
        DataError: If the path is not inside the folder of the dataset.
    """
    absolute_root = os.path.abspath(root)
    relative = os.path.relpath(os.path.join(absolute_root, path), absolute_root)
    if "\0" in path or relative == os.pardir or relative.startswith(os.pardir + os.sep):
        raise DataError(
            f"{place}: expected a path inside the folder of the dataset, {root}; got "
            f"{quote_of_file(path)}. Correct the path, or give images_root, the "
            "folder that contains all images."
        )
    return relative


def resolve_yolo_split_path(description: YoloDescription, node: YamlNode) -> str:
    """Return the folder or list of a split relative to the folder of the dataset.

    A path that starts with ``../`` and leaves the folder is read without ``../``, because Roboflow
    writes ``../train/images`` for the folder ``train/images`` beside ``data.yaml``.

    Args:
        description: Description of the dataset.
        node: Path in ``data.yaml``.

    Raises:
        DataError: If the path leaves the folder of the dataset or does not exist. Also if the paths
            with and without ``../`` both exist.
    """
    place, root, path = f"{description.file}, line {node.line}", description.root, str(node.value)
    shortened = path.removeprefix(_LEAVING)
    if shortened != path and (root / shortened).exists():
        if (root / path).exists():
            raise DataError(
                f"{place}: expected a path inside the folder of the dataset, {root}; got "
                f"{quote_of_file(path)}, which exists with and without {_LEAVING}. Correct the "
                "path."
            )
        path = shortened
    relative = resolve_yolo_path(place, root, path)
    if not (root / relative).exists():
        raise DataError(
            f"{place}: expected a folder of images or a .txt list of images; got "
            f"{quote_of_file(path)}, which does not exist in {root}. Correct the path, or give "
            "images_root, the folder of the dataset."
        )
    return relative


def _names_of_node(file: Path, node: YamlNode) -> list[str]:
    """Return the labels of a list, or of a mapping from class numbers."""
    if isinstance(node.value, dict):
        items = _items_by_number(file, node.value)
    elif isinstance(node.value, list):
        items = node.value
    else:
        raise DataError(
            f"{file}, line {node.line}: names must be a list of labels, or a mapping from class "
            f"numbers to labels; got {quote_of_file(node.value)}. Write names: [dog, cat]."
        )
    if not items:
        raise DataError(
            f"{file}, line {node.line}: names must contain at least one label; got none. Add the "
            "labels."
        )
    line_of: dict[str, int] = {}
    for item in items:
        label = item.value
        if not isinstance(label, str) or not label.strip() or has_control_character(label):
            got = quote_of_file(label) if isinstance(label, str) else "another value"
            raise DataError(
                f"{file}, line {item.line}: each label must be a text without line breaks and "
                f"other control characters; got {got}. Correct the label, or write it in quotes."
            )
        if label in line_of:
            raise DataError(
                f"{file}, line {item.line}: labels must be unique; got {quote_of_file(label)}, "
                f"which is also on line {line_of[label]}. Rename one of the two labels."
            )
        line_of[label] = item.line
    return list(line_of)


def _items_by_number(file: Path, mapping: dict[str, YamlNode]) -> list[YamlNode]:
    items: dict[int, YamlNode] = {}
    for key, item in mapping.items():
        number = int(key) if _INTEGER.fullmatch(key) else -1
        if not 0 <= number < len(mapping) or number in items:
            raise DataError(
                f"{file}, line {item.line}: the class numbers in names must be 0 to "
                f"{len(mapping) - 1}, each once; got {quote_of_file(key)}. Correct the number."
            )
        items[number] = item
    return [items[number] for number in range(len(items))]


def _paths_of_node(file: Path, key: str, node: YamlNode) -> list[YamlNode]:
    """Return the paths of a split, which is one path or a list of paths."""
    nodes = node.value if isinstance(node.value, list) else [node]
    invalid = next((item for item in nodes if not isinstance(item.value, str)), None)
    if invalid is not None or not nodes:
        line = node.line if invalid is None else invalid.line
        raise DataError(
            f"{file}, line {line}: {key} must be a folder of images, a .txt list of images, or a "
            f"list of such paths; got {'another value' if nodes else 'an empty list'}. Correct the "
            "path."
        )
    return nodes


def _root_of_content(
    file: Path, content: dict[str, YamlNode], images_root: str | Path | None
) -> Path:
    node = content.get("path")
    if images_root is not None:
        root, place = Path(images_root), "images_root"
    elif node is None or node.value is None:
        return file.parent
    elif isinstance(node.value, str):
        root, place = file.parent / node.value, f"{file}, line {node.line}: path"
    else:
        raise DataError(
            f"{file}, line {node.line}: path must be the folder of the dataset; got another value. "
            "Correct the path."
        )
    if "\0" in str(root) or not root.is_dir():
        raise DataError(
            f"{place} must be the folder of the dataset; got {quote_of_file(str(root))}, which is "
            "no folder. Give images_root, the folder of the dataset."
        )
    return root
