"""Where labels, names and recognizers come from, in the words of the command line."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surelabel.recognizer import Labelled, Recognizer
    from surelabel.records import Skipped

Command = Callable[..., None]
LABELLED = (".csv", ".json", ".jsonl", ".xml", ".npz")


def model_option(function: Command) -> Command:
    """``--model``, wherever an encoder or a saved recognizer can stand."""
    return click.option(
        "--model",
        default="tiny-vit",
        show_default=True,
        help="tiny-vit or tiny-rn (emoji are all they know), an open_clip model such as "
        "ViT-B-16/openai, local-dir:FOLDER, or the folder of a saved recognizer.",
    )(function)


def labels_option(function: Command) -> Command:
    """``--labels``: what to look for."""
    return click.option(
        "--labels",
        "names",
        metavar="NAMES|FILE|-",
        help='What to look for: "dog, bicycle", a file with one name a line, or - for standard '
        "input. A saved recognizer and labelled pictures bring their own.",
    )(function)


def pictures_option(function: Command) -> Command:
    """``--pictures``: the root of relative paths in a label file."""
    return click.option(
        "--pictures",
        metavar="FOLDER",
        help="Where relative paths of the label file start. [its own folder]",
    )(function)


def names_of(text: str | None) -> list[str] | None:
    """The names that ``--labels`` gives; None when it was left out."""
    from surelabel.data import read_names

    return None if text is None else read_names(text)


def labelled_pictures(source: str, pictures: str | None = None) -> "Labelled":
    """What has labels: pictures of a label file or of a shipped collection, as in
    ``scenes-80:test``; or ready-made vectors, as in ``vectors.npz`` and ``vectors.npz:train``.
    """
    from surelabel.data import COLLECTIONS, collection, read_labels

    name, colon, split = source.rpartition(":")
    if colon and name in COLLECTIONS:
        return collection(name, split=split)
    if source.endswith(".npz"):
        return _vectors(source)
    if name.endswith(".npz"):
        return _vectors(name, split)
    return read_labels(source, pictures_root=pictures)


def _vectors(path: str, part: str | None = None) -> "Labelled":
    from surelabel.data import read_vectors
    from surelabel.errors import DataError

    found = read_vectors(path)
    if part is None:
        return found.whole
    if part not in found.parts:
        raise DataError(
            f"{path} has no part {part!r}. It has: {', '.join(found.parts) or 'none by name'}."
        )
    return found.parts[part]


def unlabelled_pictures(source: str) -> list[str]:
    """Pictures without labels: a folder, a picture, or a list of paths.

    Raises:
        DataError: it names labels, or nothing.
    """
    from surelabel.data import COLLECTIONS, find_pictures
    from surelabel.errors import DataError

    name, colon, _ = source.rpartition(":")
    if (
        source.lower().endswith(LABELLED)
        or (colon and name.endswith(".npz"))
        or name in COLLECTIONS
    ):
        raise DataError(
            f"--unlabelled takes pictures without labels: a folder, a picture or a .txt of paths. "
            f"{source} has labels: leave --unlabelled out to calibrate with them."
        )
    return find_pictures([source])


def vectors_of(labelled: "Labelled") -> str | None:
    """The encoder that ready-made vectors stand for; None for pictures, which are given to one."""
    from surelabel.records import LabelledFeatures

    if not isinstance(labelled, LabelledFeatures):
        return None
    return f"features:{labelled.features.shape[1]}"


def unreadable(recognizer: "Recognizer", labelled: "Labelled") -> "Sequence[Skipped]":
    """The pictures that were skipped; the others were encoded and come from the cache."""
    from surelabel.encoding import encode
    from surelabel.records import LabelledFeatures

    if isinstance(labelled, LabelledFeatures):
        return ()
    return encode(recognizer.backbone, labelled.paths, cache=recognizer.cache).skipped


def overrides(settings: tuple[str, ...], **given: Any) -> list[str]:
    """``--set`` and what other options say, as ``load_run`` takes it."""
    import json

    more = {key.replace("__", "."): value for key, value in given.items() if value is not None}
    return [*settings, *(f"{key}={json.dumps(value)}" for key, value in more.items())]
