"""Read captions of generated scenes from the file ``scenes.jsonl`` of a collection of scenes."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from surelabel.data.captions.resolution.caption_entries import (
    CaptionEntry,
    clean_caption_image,
    resolve_captions,
)
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.data.scene_captions import sparse_caption_relevance
from surelabel.errors import DataError
from surelabel.file_readers import open_lines, parse_json, quote_of_file
from surelabel.records import Captions, Pairs, Relevance


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read the captions of all scenes, in the order of the file.

    The objects that a caption mentions are not read; see :func:`surelabel.data.read_scenes`.

    Args:
        path: Path of the file ``scenes.jsonl``.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.

    Raises:
        DataError: If a line is invalid; the message contains the number of the line.
    """
    path = Path(path)
    entries = [entry for scene in _parse_scene_lines(path) for entry in scene.entries]
    return resolve_captions(path, entries, images_root=images_root)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions and their graded relevance, in the order of the file.

    The relevance of a caption for an image is the fraction of the mentioned objects that are in the
    image; see :func:`surelabel.data.scene_pairs`. If the lines have no labels or the captions have
    no mentions, the pairs have no relevance.

    Args:
        path: Path of the file ``scenes.jsonl``.
        images_root: Folder to which image paths are relative. If None, the folder of the file is
            used.

    Raises:
        DataError: For the reasons of :func:`read`, if an image does not exist, or if only some
            lines have labels and mentions. Also if lines with labels repeat an image.
    """
    path = Path(path)
    scenes = _parse_scene_lines(path)
    captioned = [scene for scene in scenes if scene.entries]
    return resolve_pairs(
        path,
        [entry for scene in captioned for entry in scene.entries],
        images_root=images_root,
        listed_images=[scene.image for scene in scenes],
        relevance=_scene_relevance(path, captioned),
    )


class _CaptionedScene(NamedTuple):
    """Line of the file; ``labels`` is None if the line has no labels or no mentions."""

    place: str
    image: str
    entries: list[CaptionEntry]
    labels: list[str] | None
    mentions: list[list[str]]


def _parse_scene_lines(path: Path) -> list[_CaptionedScene]:
    with open_lines(path) as texts:
        lines = enumerate(texts, start=1)
        return [_parse_scene_line(path, number, line) for number, line in lines if line.strip()]


def _parse_scene_line(path: Path, number: int, line: str) -> _CaptionedScene:
    place = f"line {number}"
    try:
        scene = parse_json(line)
        image, texts = scene["path"], [caption["text"] for caption in scene["captions"]]
        has_labels = "labels" in scene and all("mentions" in c for c in scene["captions"])
        labels = _scene_words(scene["labels"]) if has_labels else None
        mentions = [_scene_words(c["mentions"]) for c in scene["captions"]] if has_labels else []
    except (ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0][:100]
        raise DataError(
            f'{path}, line {number}: expected {{"path": "…", "captions": [{{"text": "…"}}, …]}} as '
            f"in scenes.jsonl; got {line.strip()[:40]!r} ({reason}). Give scenes.jsonl, or lines "
            'such as {"image": "…", "caption": "…"}.'
        ) from error
    image = clean_caption_image(path, place, image)
    return _CaptionedScene(
        place, image, [CaptionEntry(place, image, text) for text in texts], labels, mentions
    )


def _scene_words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"expected a list of labels; got {quote_of_file(value)}")
    return value


def _scene_relevance(path: Path, scenes: Sequence[_CaptionedScene]) -> Relevance | None:
    """Return the relevance of all captions, or None if the file has no labels or no mentions.

    Raises:
        DataError: If only some lines have labels and mentions, or if an image is repeated.
    """
    labels = [scene.labels for scene in scenes if scene.labels is not None]
    if not labels:
        return None
    without = [scene.place for scene in scenes if scene.labels is None]
    if without or len({scene.image for scene in scenes}) < len(scenes):
        raise DataError(
            f"{path} must contain labels and mentions in all lines or in none; they are missing in "
            f"{len(without)} of {len(scenes)} lines. Each image must be in only one line; got "
            f"{len({scene.image for scene in scenes})} images in {len(scenes)} lines. Generate the "
            "scenes again."
        )
    mentions = [words for scene in scenes for words in scene.mentions]
    column_of: dict[str, int] = {}
    for words in (*labels, *mentions):
        for word in words:
            column_of.setdefault(word, len(column_of))
    return sparse_caption_relevance(
        [[column_of[word] for word in words] for words in mentions],
        [[column_of[word] for word in words] for words in labels],
        n_columns=len(column_of),
    )
