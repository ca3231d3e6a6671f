"""Load the bundled image collections.

`python training/bundled_collections.py` generates the bundled images again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, overload

from surelabel.data.captioned_scenes import scene_pairs
from surelabel.data.scene_files import AnnotatedScenes, read_scenes
from surelabel.errors import UnknownName
from surelabel.records import LabelledImages, Pairs


@dataclass(frozen=True)
class SplitSettings:
    """Settings for the generation of one split of a collection.

    Attributes:
        count: Number of images.
        seed: Seed of the random numbers.
    """

    count: int
    seed: int


COLLECTIONS: dict[str, dict[str, SplitSettings]] = {
    "scenes-80": {
        "train": SplitSettings(1500, 80),
        "validation": SplitSettings(500, 81),
        "test": SplitSettings(1000, 82),
    },
}


@overload
def collection(name: str, *, split: str, captions: Literal[False] = False) -> LabelledImages: ...


@overload
def collection(name: str, *, split: str, captions: Literal[True]) -> Pairs: ...


def collection(name: str, *, split: str, captions: bool = False) -> LabelledImages | Pairs:
    """Return the annotated images, or the images with captions, of one split of a collection.

    The labels are in the order of the vocabulary.

    Args:
        name: Name of the collection, one of ``COLLECTIONS``.
        split: Name of the split: ``train``, ``validation`` or ``test``.
        captions: If False, the images have labels. If True, the images have captions with graded
            relevance; see :func:`surelabel.data.scene_pairs`.

    Raises:
        UnknownName: If the collection or the split does not exist.

    Example:
        >>> test = collection("scenes-80", split="test")
        >>> test.targets.shape
        (1000, 80)
        >>> len(collection("scenes-80", split="test", captions=True).paths)
        1000
    """
    scenes = _read_bundled_scenes(bundled_collection_folder(name, split=split))
    if captions:
        return scene_pairs(scenes)
    return scenes.images.take(range(len(scenes)))  # a copy


@cache
def _read_bundled_scenes(folder: Path) -> AnnotatedScenes:
    """Read the scenes of a bundled collection once per process; callers must not change them."""
    return read_scenes(folder)


def bundled_collection_folder(name: str, *, split: str) -> Path:
    """Return the folder of one split of a bundled collection.

    ``read_scenes`` reads the images, boxes and captions from this folder.

    Raises:
        UnknownName: If the collection or the split does not exist.
    """
    collection_split_settings(COLLECTIONS, name, split)
    return Path(__file__).with_name("collections") / name / split


def collection_split_settings(
    table: Mapping[str, Mapping[str, SplitSettings]], name: str, split: str
) -> SplitSettings:
    """Return the settings of one split of a collection.

    Args:
        table: Splits of each collection.
        name: Name of the collection.
        split: Name of the split.

    Raises:
        UnknownName: If the collection or the split does not exist.
    """
    if name not in table:
        raise UnknownName(f"The collection must be one of {', '.join(table)}; got {name!r}.")
    if split not in table[name]:
        raise UnknownName(
            f"The split of {name} must be one of {', '.join(table[name])}; got {split!r}."
        )
    return table[name][split]
