"""Captions of generated scenes: the file ``scenes.jsonl`` of a collection of scenes."""

from collections.abc import Iterator
from pathlib import Path

from surelabel.data.captions.resolution.caption_entries import resolve_captions
from surelabel.errors import DataError
from surelabel.file_readers import parse_json, read_lines
from surelabel.records import Captions


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
    return resolve_captions(path, _scene_caption_entries(path), images_root=images_root)


def _scene_caption_entries(path: Path) -> Iterator[tuple[str, object, object]]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            scene = parse_json(line)
            image, texts = scene["path"], [caption["text"] for caption in scene["captions"]]
        except (ValueError, KeyError, TypeError) as error:
            reason = str(error).splitlines()[0][:100]
            raise DataError(
                f'{path}, line {number}: expected {{"path": "…", "captions": [{{"text": "…"}}, …]}}'
                f" as in scenes.jsonl; got {line.strip()[:40]!r} ({reason}). Give another file."
            ) from error
        for text in texts:
            yield f"line {number}", image, text
