"""Where labels, names and recognizers come from, in the words of the command line."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelledImages, Skipped

Command = Callable[..., None]


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


def labelled_images(source: str, pictures: str | None = None) -> "LabelledImages":
    """Labelled pictures of a label file, or of a shipped collection, as in ``scenes-80:test``."""
    from surelabel.data import COLLECTIONS, collection, read_labels

    name, colon, split = source.partition(":")
    if colon and name in COLLECTIONS:
        return collection(name, split=split)
    return read_labels(source, pictures_root=pictures)


def unreadable(recognizer: "Recognizer", labelled: "LabelledImages") -> "Sequence[Skipped]":
    """The pictures that were skipped; the others were encoded and come from the cache."""
    from surelabel.encoding import encode

    return encode(recognizer.backbone, labelled.paths, cache=recognizer.cache).skipped


def overrides(settings: tuple[str, ...], **given: Any) -> list[str]:
    """``--set`` and what other options say, as ``load_run`` takes it."""
    import json

    more = {key.replace("__", "."): value for key, value in given.items() if value is not None}
    return [*settings, *(f"{key}={json.dumps(value)}" for key, value in more.items())]
