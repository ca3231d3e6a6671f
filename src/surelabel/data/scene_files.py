"""Folders of generated scenes with their labels, boxes and captions.

    images/00000.jpg …  images
    scenes.jsonl        one line per image: labels, boxes, main object, theme, captions
    labels.csv          labels only, with the header `path,lion,elephant,…` and values 0 and 1
    about.json          settings of the generation

A folder is complete if it contains ``scenes.jsonl``. After the images of a batch are written, the
lines of this batch are written to a hidden file, so that an interrupted generation can be resumed.
"""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from surelabel.arrays import Array
from surelabel.data.domains import DOMAINS
from surelabel.data.emoji_sprites import draw_sprites, find_emoji_font
from surelabel.data.scene_captions import SceneCaption, caption_relevance, caption_scene
from surelabel.data.scene_images import save_scene_images, single_rendering_thread
from surelabel.data.scene_words import Word, read_scene_vocabulary
from surelabel.data.scenes import Scene, SceneSampler, render_scenes, visible_scene_labels
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.file_readers import parse_json, quote_of_file, read_text, unreadable_file_error
from surelabel.files import atomic_file
from surelabel.records import LabelledImages

VERSION = 1  # to be increased if a seed gives other images than before
BATCH = 64
MIN_SIDE = 16  # pixels
IMAGES_FOLDER, BATCHES_FOLDER = "images", ".parts"
_GENERATE_AGAIN = "Delete the folder and generate the scenes again."
SCENES, LABELS, ABOUT = "scenes.jsonl", "labels.csv", "about.json"


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


def write_scenes(
    folder: str | Path,
    *,
    count: int,
    seed: int,
    vocabulary: str | Path = "scenes-80",
    domain: str = "photo",
    long_tail: bool = False,
    font: str | Path | None = None,
    pixels: int = 128,
    progress: Callable[[int], object] | None = None,
) -> Path:
    """Generate a folder of scenes; equal settings always generate equal labels and image files.

    If only ``count`` differs, a smaller folder contains the first images of a larger folder. If
    only ``domain`` differs, the scenes are equal, but their appearance differs. A complete folder
    remains unchanged, and an interrupted generation is resumed.

    Args:
        folder: Path of a new or empty folder, or of a folder that an earlier call with equal
            settings generated.
        count: Number of images, >= 1.
        seed: Seed of the random numbers, >= 0.
        vocabulary: Name ``scenes-80`` or ``scenes-all``, or the path of a file with one word per
            line.
        domain: Name of the visual domain, one of ``DOMAINS``.
        long_tail: If True, the frequencies of themes, and of words within a theme, are proportional
            to 1/rank. If False, all words are equally frequent.
        font: Path of a colour-emoji font. If None, the font in the package is used.
        pixels: Side length of the images in pixels, >= 16.
        progress: Function that is called with the number of generated images after each batch.

    Returns:
        The path of the folder.

    Raises:
        ConfigError: If ``count``, ``seed`` or ``pixels`` is out of range.
        UnknownName: If the domain or a word of the vocabulary does not exist.
        InputError: If a vocabulary file has fewer than two words.
        DataError: If the folder contains other files, was generated with other settings or cannot
            be written, or if a vocabulary file cannot be read.
        MissingPart: If the colour-emoji font cannot be used.
    """
    _check_scene_file_settings(count=(count, 1), seed=(seed, 0), pixels=(pixels, MIN_SIDE))
    if domain not in DOMAINS:
        raise UnknownName(f"There is no domain {domain!r}. Known: {', '.join(DOMAINS)}.")
    folder, words = Path(folder), read_scene_vocabulary(vocabulary)
    settings = {
        "version": VERSION,
        "count": count,
        "seed": seed,
        "vocabulary": Path(vocabulary).name,
        "domain": domain,
        "long_tail": long_tail,
        "pixels": pixels,
        "names": [w.name for w in words],
    }
    if (folder / SCENES).exists():
        _check_same_scene_file_settings(folder, settings)
    else:
        font_path = find_emoji_font(font)
        settings["font"] = hashlib.sha256(font_path.read_bytes()).hexdigest()
        _write_scene_settings_file(folder, settings)
        with single_rendering_thread():
            _write_scene_batch_files(folder, settings, words, font_path, progress)
        _merge_scene_batch_files(folder, settings)
    shutil.rmtree(folder / BATCHES_FOLDER, ignore_errors=True)
    return folder


def read_scenes(folder: str | Path) -> AnnotatedScenes:
    """Read a complete folder of scenes.

    The image paths in ``scenes.jsonl`` are relative to the folder. Folders of version 0.1.0, in
    which the subfolder of the images has a different name, can also be read.

    Args:
        folder: Path of a folder that :func:`write_scenes` has completed.

    Raises:
        DataError: If the folder is not a complete folder of scenes, or if a file is damaged.
    """
    folder = Path(folder)
    settings = _read_scene_settings_file(folder)
    if not (folder / SCENES).exists():
        raise DataError(
            f"{folder} must contain {SCENES}; the file is missing. Generate the folder again."
        )
    lines = read_text(folder / SCENES, remedy=_GENERATE_AGAIN).splitlines()
    if len(lines) != settings["count"]:
        raise DataError(
            f"{folder / SCENES} must have {settings['count']} lines, the count in {ABOUT}; "
            f"got {len(lines)}. Delete the folder and generate the scenes again."
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


def _check_scene_file_settings(**bounds: tuple[int, int]) -> None:
    for name, (value, minimum) in bounds.items():
        if value < minimum:
            raise ConfigError(f"{name} must be at least {minimum}; got {value}.")


def _write_scene_settings_file(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings into an empty folder, or check that existing settings are equal."""
    if (folder / ABOUT).exists():
        _check_same_scene_file_settings(folder, settings)
        return
    if folder.is_dir() and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise DataError(
            f"{folder} must be new or empty; got a folder with other files. Choose another folder."
        )
    with atomic_file(folder / ABOUT) as file:
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _check_same_scene_file_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    stored = _read_scene_settings_file(folder)
    different = [name for name, value in settings.items() if stored.get(name) != value]
    if different:
        expected = ", ".join(
            f"{name} {_shorten_scene_file_setting(stored.get(name))}" for name in different
        )
        actual = ", ".join(
            f"{name} {_shorten_scene_file_setting(settings[name])}" for name in different
        )
        raise DataError(
            f"The settings must be those of {folder}: {expected}; got {actual}. "
            "Choose another folder, or use the settings of this folder."
        )


def _shorten_scene_file_setting(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _read_scene_settings_file(folder: Path) -> dict[str, Any]:
    if not (folder / ABOUT).exists():
        raise DataError(
            f"{folder} must be a folder of scenes; there is no {ABOUT}. Generate a folder with "
            "`surelabel scenes`."
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
        raise ValueError("count or names is missing")
    names = settings["names"]
    if not isinstance(settings["count"], int) or not isinstance(names, list):
        raise TypeError("count must be an integer, and names a list")
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


def _write_scene_batch_files(
    folder: Path,
    settings: Mapping[str, Any],
    words: Sequence[Word],
    font: Path,
    progress: Callable[[int], object] | None,
) -> None:
    """Render the scenes and write the files of every batch that is not complete."""
    count = settings["count"]
    sprites = draw_sprites(words, font)
    sample = SceneSampler(words, seed=settings["seed"], long_tail=settings["long_tail"])
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        lines_file = _scene_batch_file(folder, start)
        if not lines_file.exists():
            scenes = [sample(i) for i in numbers]
            rendered = render_scenes(scenes, sprites, settings["pixels"])
            transform = DOMAINS[settings["domain"]]
            pixels = transform(rendered.pixels, [s.background for s in scenes])
            paths = [f"{IMAGES_FOLDER}/{i:05d}.jpg" for i in numbers]
            save_scene_images(pixels, [folder / path for path in paths])
            records = [
                {"path": path} | _scene_file_record(scene, shares, boxes, words)
                for path, scene, shares, boxes in zip(
                    paths, scenes, rendered.visible_shares, rendered.boxes, strict=True
                )
            ]
            with atomic_file(lines_file) as file:
                file.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        if progress:
            progress(numbers.stop)


def _scene_batch_file(folder: Path, start: int) -> Path:
    return folder / BATCHES_FOLDER / f"{start:05d}.jsonl"


def _scene_file_record(
    scene: Scene, visible_shares: Tensor, boxes: Tensor, words: Sequence[Word]
) -> dict[str, Any]:
    """Return the content of a line of ``scenes.jsonl`` without the image path."""
    is_label = visible_scene_labels([scene], visible_shares[None], len(words))[0]
    objects = zip(scene.words, boxes, visible_shares, strict=False)  # padded beyond the objects
    return {
        "labels": [word.name for word, positive in zip(words, is_label, strict=True) if positive],
        "boxes": [
            [
                words[int(word)].name,
                *(round(edge, 5) for edge in box.tolist()),
                round(float(share), 4),
            ]
            for word, box, share in objects
            if not box.isnan().any()
        ],
        "main": words[int(scene.words[0])].name,
        "theme": scene.theme,
        "captions": [
            {"text": c.text, "kind": c.kind, "mentions": [words[i].name for i in c.mentions]}
            for c in caption_scene(scene, visible_shares.numpy(), words)
        ],
    }


def _merge_scene_batch_files(folder: Path, settings: Mapping[str, Any]) -> None:
    """Merge the lines of all batches; write ``scenes.jsonl`` last, which marks completion."""
    files = [_scene_batch_file(folder, start) for start in range(0, settings["count"], BATCH)]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    with (
        atomic_file(folder / LABELS) as file,
        file.open("w", newline="", encoding="utf-8") as table,
    ):
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(["path", *settings["names"]])
        for record in map(json.loads, text.splitlines()):
            positives = set(record["labels"])
            writer.writerow(
                [record["path"], *(int(name in positives) for name in settings["names"])]
            )
    with atomic_file(folder / SCENES) as file:
        file.write_text(text, encoding="utf-8")
