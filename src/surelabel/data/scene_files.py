"""Read folders of generated scenes, with their labels, boxes and captions.

    images/00000.jpg …  images
    scenes.jsonl        one line per image: labels, boxes, main object, theme, captions
    labels.csv          labels only, with the header `path,lion,elephant,…` and values 0 and 1
    about.json          settings of the generation

A folder is complete if it contains ``scenes.jsonl``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel.arrays import Array
from surelabel.data.scene_captions import SceneCaption, caption_relevance
from surelabel.errors import DataError
from surelabel.file_readers import parse_json, quote_of_file, read_text, unreadable_file_error
from surelabel.records import LabelledImages

_GENERATE_AGAIN = "Delete the folder and generate the scenes again."
SCENES, ABOUT = "scenes.jsonl", "about.json"


@dataclass(frozen=True)
class SceneObject:
    """Object in a generated image, with its label and bounding box.

    Attributes:
        label: Label of the object, a word of the vocabulary.
        box: Bounding box of the visible part: left, top, right and bottom as fractions of the image
            side.
        visible_share: Visible fraction of the object in [0, 1]. If all objects of a label are below
            0.3, the label is negative for the image.
    """

    label: str
    box: tuple[float, float, float, float]
    visible_share: float


@dataclass(frozen=True)
class AnnotatedScenes:
    """Generated images with complete annotations; each sequence has one entry per image.

    Attributes:
        images: Image paths, labels in vocabulary order, and complete targets ``(n, c)``.
        objects: Objects of each image that have a visible part, the main object first.
        main_labels: Label of the main object of each image.
        themes: Name of the theme of each scene.
        captions: Five captions per image; the mentions of a caption are column
            indices of ``images.targets``.
    """

    images: LabelledImages
    objects: Sequence[Sequence[SceneObject]]
    main_labels: Sequence[str]
    themes: Sequence[str]
    captions: Sequence[Sequence[SceneCaption]]

    def __len__(self) -> int:
        return len(self.images)

    def caption_relevance(self, captions: Sequence[SceneCaption]) -> Array:
        """Return, for each image and caption, the fraction of mentioned objects in the image.

        Args:
            captions: Captions to compare with all images, length s.

        Returns:
            Fractions of mentioned objects, in [0, 1], ``(n, s)``.
        """
        return caption_relevance([c.mentions for c in captions], self.images.targets > 0)


def read_scenes(folder: str | Path) -> AnnotatedScenes:
    """Read a complete folder of scenes.

    The image paths in ``scenes.jsonl`` are relative to the folder. Folders of version 0.1.0, in
    which the subfolder of the images has a different name, can also be read.

    Args:
        folder: Path of a folder that :func:`surelabel.data.write_scenes` has completed.

    Raises:
        DataError: If the folder is not a complete folder of scenes, or if a file is damaged.
    """
    folder = Path(folder)
    settings = read_scene_settings(folder)
    if not (folder / SCENES).exists():
        raise DataError(
            f"{folder} must contain {SCENES}; the file is missing. Run `surelabel scenes` again "
            "with the same arguments."
        )
    lines = read_text(folder / SCENES, remedy=_GENERATE_AGAIN).splitlines()
    if len(lines) != settings["count"]:
        raise DataError(
            f"{folder / SCENES} must have {settings['count']} lines, the count in {ABOUT}; got "
            f"{len(lines)} lines. Delete the folder and generate the scenes again."
        )
    column = {name: i for i, name in enumerate(settings["names"])}
    scenes = [
        _parse_scene_file_line(folder, number, line, column)
        for number, line in enumerate(lines, start=1)
    ]
    targets = np.zeros((len(scenes), len(column)))
    for row, scene in zip(targets, scenes, strict=True):
        row[scene.labels] = 1
    return AnnotatedScenes(
        LabelledImages([str(folder / p.path) for p in scenes], tuple(column), targets),
        objects=[p.objects for p in scenes],
        main_labels=[p.main for p in scenes],
        themes=[p.theme for p in scenes],
        captions=[p.captions for p in scenes],
    )


def read_scene_settings(folder: Path) -> dict[str, Any]:
    """Return the settings with which a folder of scenes was generated.

    Args:
        folder: Path of a folder of scenes.

    Raises:
        DataError: If the settings are missing or damaged.
    """
    if not (folder / ABOUT).exists():
        raise DataError(
            f"{folder} must be a folder of scenes with the file {ABOUT}; the file is missing. "
            "Generate a folder with `surelabel scenes`."
        )
    try:
        settings: dict[str, Any] = parse_json(read_text(folder / ABOUT, remedy=_GENERATE_AGAIN))
        _check_scene_settings(settings)
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise unreadable_file_error(folder / ABOUT, None, str(error), _GENERATE_AGAIN) from error
    return settings


def _check_scene_settings(settings: Mapping[str, Any]) -> None:
    """Check the settings that :func:`read_scenes` needs.

    Raises:
        ValueError, TypeError: If count or names is missing or invalid.
    """
    if not {"count", "names"} <= set(settings):
        raise ValueError("the key count or names is missing")
    names = settings["names"]
    if not isinstance(settings["count"], int) or not isinstance(names, list):
        raise TypeError("count must be an integer, and names must be a list")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("names must be distinct strings")


def _scene_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string; got {quote_of_file(value)}")
    return value


class _SceneLine(NamedTuple):
    """A parsed line of ``scenes.jsonl``."""

    path: str
    labels: list[int]
    objects: list[SceneObject]
    main: str
    theme: str
    captions: list[SceneCaption]


def _parse_scene_file_line(
    folder: Path, number: int, line: str, column: Mapping[str, int]
) -> _SceneLine:
    try:
        record = parse_json(line)
        return _SceneLine(
            _scene_text(record["path"]),
            [column[name] for name in record["labels"]],
            [
                SceneObject(
                    _scene_text(label),
                    (float(left), float(top), float(right), float(bottom)),
                    float(share),
                )
                for label, left, top, right, bottom, share in record["boxes"]
            ],
            _scene_text(record["main"]),
            _scene_text(record["theme"]),
            [
                SceneCaption(
                    _scene_text(c["text"]),
                    _scene_text(c["kind"]),
                    tuple(column[name] for name in c["mentions"]),
                )
                for c in record["captions"]
            ],
        )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        place = f"{folder / SCENES}, line {number}"
        raise unreadable_file_error(place, None, repr(error), _GENERATE_AGAIN) from error
