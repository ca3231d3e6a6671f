"""Generate folders of scenes, whose files `surelabel.data.scene_files` describes.

After the images of a batch are written, the lines of this batch are written to a hidden file, so
that an interrupted generation can be resumed.
"""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from surelabel.data.domains import DOMAINS
from surelabel.data.emoji_sprites import draw_sprites, find_emoji_font
from surelabel.data.scene_arrangement import Scene, SceneSampler
from surelabel.data.scene_captions import caption_scene
from surelabel.data.scene_files import ABOUT, SCENES, read_scene_settings
from surelabel.data.scene_images import save_scene_images, single_rendering_thread
from surelabel.data.scene_words import Word, read_scene_vocabulary
from surelabel.data.scenes import render_scenes, visible_scene_labels
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.files import atomic_file

VERSION = 1  # to be increased if a seed gives other images than before
BATCH = 64
MIN_SIDE = 16  # pixels
IMAGES_FOLDER, BATCHES_FOLDER = "images", ".parts"
LABELS = "labels.csv"


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
        raise UnknownName(f"domain must be one of {', '.join(DOMAINS)}; got {domain!r}.")
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
            f"{folder} must be a new or empty folder; got a folder with other files. Choose "
            "another folder."
        )
    with atomic_file(folder / ABOUT) as file:
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _check_same_scene_file_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    stored = read_scene_settings(folder)
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
