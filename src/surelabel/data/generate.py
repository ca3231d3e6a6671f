"""Scenes as files: a folder of pictures with everything that is true of them.

    pictures/00000.jpg …  the pictures
    scenes.jsonl          one line a picture: labels, boxes, main object, theme, captions
    labels.csv            the labels alone, as `path,lion,elephant,…` with 0 and 1
    about.json            the settings that made them

The folder is finished when ``scenes.jsonl`` is there. Until then each batch leaves a hidden file
of its lines, written after its pictures, so that a run that was stopped goes on where it was.
"""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from surelabel.data.captions import Caption, captions, relevance
from surelabel.data.domains import DOMAINS
from surelabel.data.emoji import draw_sprites, find_font
from surelabel.data.scenes import Sampler, Scene, compose, labels
from surelabel.data.words import Word
from surelabel.data.words import vocabulary as words_of
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.files import new_file
from surelabel.records import Array, LabelledImages

VERSION = 1  # goes up when the same seed gives other pictures than before
BATCH = 64
JPEG_QUALITY = 85
SMALLEST_SIDE = 16
PICTURES, PARTS = "pictures", ".parts"
SCENES, LABELS, ABOUT = "scenes.jsonl", "labels.csv", "about.json"


@dataclass(frozen=True)
class Thing:
    """One object in a picture.

    Attributes:
        label: Its word.
        box: Visible extent: left, top, right, bottom as shares of the side.
        seen: Visible share of it, in [0, 1]; below 0.3 the object makes no label.
    """

    label: str
    box: tuple[float, float, float, float]
    seen: float


@dataclass(frozen=True)
class ScenesTruth:
    """Generated pictures and all that is true of them, one entry a picture.

    Attributes:
        images: Paths, names in the order of the vocabulary, and complete targets ``(n, c)``.
        things: The objects with a visible part, the main one first.
        mains: The word of the main object.
        themes: What the objects have in common.
        captions: Five sentences; their mentions are columns of ``images.targets``.
    """

    images: LabelledImages
    things: Sequence[Sequence[Thing]]
    mains: Sequence[str]
    themes: Sequence[str]
    captions: Sequence[Sequence[Caption]]

    def __len__(self) -> int:
        return len(self.images)

    def relevance(self, sentences: Sequence[Caption]) -> Array:
        """Share of the objects that each of ``s`` sentences names and each picture shows.

        Returns:
            ``(n, s)`` in [0, 1].
        """
        return relevance([s.mentions for s in sentences], self.images.targets > 0)


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
    """Write a folder of scenes; the same settings always give the same labels and bytes.

    A smaller count gives the first pictures of a larger one; another seed gives other pictures;
    another domain shows the same scenes in another way. A finished folder is left as it is.

    Args:
        folder: New, empty, or begun by an earlier run with the same settings.
        count: Number of pictures, >= 1.
        seed: >= 0. Splits differ in it.
        vocabulary: ``scenes-80``, ``scenes-all`` or a file with one word a line.
        domain: One of ``DOMAINS``.
        long_tail: Word frequencies fall as 1/rank.
        font: The colour-emoji font; the first on the usual paths when left out.
        pixels: Side of the pictures, >= 16.
        progress: Called with the number of pictures done, after each batch.

    Returns:
        The folder.

    Raises:
        ConfigError: ``count``, ``seed`` or ``pixels`` is out of range.
        UnknownName: no such domain, or a word of the vocabulary that cannot be drawn.
        DataError: the folder holds something else, or cannot be written.
        MissingPart: no colour-emoji font is installed.
    """
    _check(count=(count, 1), seed=(seed, 0), pixels=(pixels, SMALLEST_SIDE))
    if domain not in DOMAINS:
        raise UnknownName(f"{domain!r} is no domain. Known: {', '.join(DOMAINS)}.")
    folder, words = Path(folder), words_of(vocabulary)
    about = {
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
        _check_same(folder, about)
    else:
        path = find_font(font)
        about["font"] = hashlib.sha256(path.read_bytes()).hexdigest()
        _begin(folder, about)
        with _one_thread():
            _draw(folder, about, words, path, progress)
        _join(folder, about)
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    return folder


def read_scenes(folder: str | Path) -> ScenesTruth:
    """Read what ``write_scenes`` wrote.

    Raises:
        DataError: the folder is no finished folder of scenes, or a line of it is damaged.
    """
    folder = Path(folder)
    about = _about(folder)
    if not (folder / SCENES).exists():
        raise DataError(f"{folder} is not finished: run the command that began it once more.")
    lines = (folder / SCENES).read_text(encoding="utf-8").splitlines()
    if len(lines) != about["count"]:
        raise DataError(
            f"{folder / SCENES} must have {about['count']} lines, as {ABOUT} says. "
            f"Got {len(lines)}: delete the folder and generate it again."
        )
    column = {name: i for i, name in enumerate(about["names"])}
    pictures = [_parsed(folder, number, line, column) for number, line in enumerate(lines, start=1)]
    targets = np.zeros((len(pictures), len(column)))
    for row, picture in zip(targets, pictures, strict=True):
        row[picture.labels] = 1
    return ScenesTruth(
        LabelledImages([str(folder / p.path) for p in pictures], tuple(column), targets),
        things=[p.things for p in pictures],
        mains=[p.main for p in pictures],
        themes=[p.theme for p in pictures],
        captions=[p.captions for p in pictures],
    )


def _check(**least: tuple[int, int]) -> None:
    for name, (value, lowest) in least.items():
        if value < lowest:
            raise ConfigError(f"{name} must be {lowest} or more. Got {value}.")


def _begin(folder: Path, about: Mapping[str, Any]) -> None:
    """Claim an empty folder by its settings; check them in a folder that was begun before."""
    if (folder / ABOUT).exists():
        _check_same(folder, about)
        return
    if folder.is_dir() and any(not p.name.startswith(".") for p in folder.iterdir()):
        raise DataError(f"{folder} holds other files. Choose a new or an empty folder for scenes.")
    with new_file(folder / ABOUT) as file:
        file.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _check_same(folder: Path, about: Mapping[str, Any]) -> None:
    before = _about(folder)
    other = [name for name, value in about.items() if before.get(name) != value]
    if other:
        there = ", ".join(f"{name} {_short(before.get(name))}" for name in other)
        here = ", ".join(f"{name} {_short(about[name])}" for name in other)
        raise DataError(
            f"{folder} was begun with other settings: {there} there, {here} here. "
            "Choose another folder, or the settings of this one."
        )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _about(folder: Path) -> dict[str, Any]:
    if not (folder / ABOUT).exists():
        raise DataError(
            f"{folder} is no folder of scenes: it has no {ABOUT}. Make one with `surelabel scenes`."
        )
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        if not {"count", "names"} <= set(about):
            raise ValueError("count or names is missing")
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{folder / ABOUT} is damaged ({error}): delete the folder and generate it again."
        ) from error
    return about


class _Line(NamedTuple):
    path: str
    labels: list[int]
    things: list[Thing]
    main: str
    theme: str
    captions: list[Caption]


def _parsed(folder: Path, number: int, line: str, column: Mapping[str, int]) -> _Line:
    try:
        record = json.loads(line)
        return _Line(
            record["path"],
            [column[name] for name in record["labels"]],
            [
                Thing(label, (left, top, right, bottom), seen)
                for label, left, top, right, bottom, seen in record["boxes"]
            ],
            record["main"],
            record["theme"],
            [
                Caption(c["text"], c["kind"], tuple(column[name] for name in c["mentions"]))
                for c in record["captions"]
            ],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder / SCENES}, line {number} is damaged ({error}): "
            "delete the folder and generate it again."
        ) from error


def _draw(
    folder: Path,
    about: Mapping[str, Any],
    words: Sequence[Word],
    font: Path,
    progress: Callable[[int], object] | None,
) -> None:
    """Draw every batch that has no part file yet."""
    count = about["count"]
    sprites = draw_sprites(words, font)
    sample = Sampler(words, seed=about["seed"], long_tail=about["long_tail"])
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        part = _part(folder, start)
        if not part.exists():
            scenes = [sample(i) for i in numbers]
            made = compose(scenes, sprites, about["pixels"])
            changed = DOMAINS[about["domain"]](made.pixels, [s.background for s in scenes])
            paths = [f"{PICTURES}/{i:05d}.jpg" for i in numbers]
            _save(changed, [folder / path for path in paths])
            records = [
                {"path": path} | _truth(scene, seen, boxes, words)
                for path, scene, seen, boxes in zip(
                    paths, scenes, made.seen, made.boxes, strict=True
                )
            ]
            with new_file(part) as file:
                file.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        if progress:
            progress(numbers.stop)


def _part(folder: Path, start: int) -> Path:
    return folder / PARTS / f"{start:05d}.jsonl"


def _save(pixels: Tensor, paths: Sequence[Path]) -> None:
    rows = (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
    try:
        paths[0].parent.mkdir(exist_ok=True)
        for row, path in zip(rows, paths, strict=True):
            Image.fromarray(row).save(path, quality=JPEG_QUALITY)
    except OSError as error:
        raise DataError(
            f"Pictures cannot be written to {paths[0].parent}: {error.strerror or error}."
        ) from error


def _truth(scene: Scene, seen: Tensor, boxes: Tensor, words: Sequence[Word]) -> dict[str, Any]:
    """One line of ``scenes.jsonl`` without its path."""
    present = labels([scene], seen[None], len(words))[0]
    objects = zip(scene.words, boxes, seen, strict=False)  # boxes and seen go on with empty rows
    return {
        "labels": [word.name for word, there in zip(words, present, strict=True) if there],
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
            for c in captions(scene, seen.numpy(), words)
        ],
    }


def _join(folder: Path, about: Mapping[str, Any]) -> None:
    """Put the parts together; the file that says "finished" comes last."""
    parts = [_part(folder, start) for start in range(0, about["count"], BATCH)]
    text = "".join(part.read_text(encoding="utf-8") for part in parts)
    with new_file(folder / LABELS) as file, file.open("w", newline="", encoding="utf-8") as table:
        write = csv.writer(table, lineterminator="\n")
        write.writerow(["path", *about["names"]])
        for record in map(json.loads, text.splitlines()):
            present = set(record["labels"])
            write.writerow([record["path"], *(int(name in present) for name in about["names"])])
    with new_file(folder / SCENES) as file:
        file.write_text(text, encoding="utf-8")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Rounding depends on how many threads share a sum; one thread makes bytes the same."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
