"""Where labels, names and recognizers come from, in the words of the command line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surelabel.cli.terminal import Terminal
    from surelabel.recognizer import Labelled, Recognizer
    from surelabel.records import Images, Skipped

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


def method_options(function: Command) -> Command:
    """``--method`` and ``--set``, where an encoder can stand for a recognizer."""
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a setting of it, such as method.domain=centred; `surelabel show method`.",
    )
    method = click.option(
        "--method",
        help="What an encoder is asked with: zero_shot, or another that needs no labels, such as "
        "tiles or dense_regions.",
    )
    return method(settings(function))


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
    from surelabel.data import find_pictures
    from surelabel.errors import DataError

    if is_labelled(source):
        raise DataError(
            f"--unlabelled takes pictures without labels: a folder, a picture or a .txt of paths. "
            f"{source} has labels: leave --unlabelled out to calibrate with them."
        )
    return find_pictures([source])


def is_labelled(source: str) -> bool:
    """Whether it is called like something with labels, or like pictures without any."""
    from surelabel.data import COLLECTIONS

    name, colon, _ = source.rpartition(":")
    named = source.lower().endswith(LABELLED) or bool(colon and name.endswith(".npz"))
    return named or name in COLLECTIONS


def to_learn_from(method: str, places: Sequence[str], root: str | None) -> "Images | Labelled":
    """What a method is fitted on: labelled pictures, or for one that learns from images any.

    Raises:
        DataError: it learns from labels, and these pictures have none.
    """
    from surelabel.data import find_pictures
    from surelabel.errors import DataError
    from surelabel.methods import METHODS
    from surelabel.records import Images

    first, *others = places
    entry: Any = METHODS[method]
    if entry.learns_from == "images" and (others or not is_labelled(first)):
        return Images(find_pictures(places))
    if entry.learns_from == "labels" and (others or _holds_pictures(first)):
        raise DataError(
            f"{method} learns from labels, and {' '.join(places)} names pictures without any. Give "
            "one label file, or learn from pictures alone: --method tailor --labels NAMES."
        )
    return labelled_pictures(first, root)


def _holds_pictures(place: str) -> bool:
    """A picture, or a folder that is none of VOC labels."""
    from surelabel.data.pictures import SUFFIXES

    folder = Path(place)
    return folder.suffix.lower() in SUFFIXES or (
        folder.is_dir() and next(folder.glob("*.xml"), None) is None
    )


def learn_first(
    terminal: "Terminal", recognizer: "Recognizer", source: "Labelled | Sequence[str]"
) -> None:
    """Let a method that learns from images look at these before it is asked about them."""
    from surelabel.records import LabelledFeatures, LabelledImages

    if recognizer.fitted:
        return
    terminal.say(
        f"{recognizer.run.method.name} learns from these {len(source)} pictures first, without "
        "labels, so a score depends on the other pictures. `surelabel fit` keeps what it learns."
    )
    pictures = (
        source.features
        if isinstance(source, LabelledFeatures)
        else (source.paths if isinstance(source, LabelledImages) else source)
    )
    with terminal.progress("Learning") as progress:
        recognizer.fit(pictures, progress=progress)


def vectors_of(labelled: "Images | Labelled") -> str | None:
    """The encoder that ready-made vectors stand for; None for pictures, which are given to one."""
    from surelabel.records import LabelledFeatures

    if not isinstance(labelled, LabelledFeatures):
        return None
    return f"features:{labelled.features.shape[1]}"


def unreadable(recognizer: "Recognizer", labelled: "Images | Labelled") -> "Sequence[Skipped]":
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
