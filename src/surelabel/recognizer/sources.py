"""What a recognizer is given, pictures or vectors, and what becomes of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from surelabel.backbones import Backbone
from surelabel.data import FeatureCache, align, find_pictures
from surelabel.encoding import Encoded, ready_made
from surelabel.errors import ConfigError, InputError
from surelabel.methods import METHODS
from surelabel.recognizer.looking import looked_at
from surelabel.recognizer.notes import note_unheard
from surelabel.records import Images, LabelledFeatures, LabelledImages

Labelled = LabelledImages | LabelledFeatures
Source = Images | Labelled | str | Path | Sequence[str | Path] | npt.NDArray[Any]


def source_of(given: Source) -> Images | Labelled:
    """A folder, a picture, a .txt of paths or several paths as pictures; an array of numbers as
    vectors of which no label is asked.

    Raises:
        DataError: a single place names no pictures.
        InputError: an array of numbers is not one finite vector a row.
    """
    if isinstance(given, Images | LabelledImages | LabelledFeatures):
        return given
    if isinstance(given, str | Path):
        return Images(find_pictures([given]))
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        return LabelledFeatures(given, (), np.zeros((len(given) if given.ndim else 0, 0)))
    return Images([str(p) for p in given])


def encoded(
    source: Images | Labelled, method: Any, backbone: Backbone, cache: FeatureCache, **options: Any
) -> Encoded:
    """What the method needs of each row: vectors as they are, pictures through the encoder.

    A method of views is asked again and again what to look at; a picture with fewer views than
    another has its own pooled vector in their place.

    Raises:
        ConfigError: the method looks into pictures, and these are ready-made vectors.
        DataError: no picture could be read, or one could not and ``strict`` is set.
    """
    if isinstance(source, LabelledFeatures):
        check_pooled(method)
        return ready_made(source.features, width=backbone.width)
    paths = [str(p) for p in source.paths]
    return looked_at(paths, method, backbone, cache=cache, **options)


def of_pictures(pictures: Sequence[Image.Image], method: Any, backbone: Backbone) -> Encoded:
    """The same for pictures in memory; nothing is cached."""
    return looked_at(pictures, method, backbone)


def check_pooled(method: Any) -> None:
    """Refuse a method that looks into pictures where there are vectors alone.

    Raises:
        ConfigError: it does.
    """
    needs = [need for need in method.needs if need != "pixels"]
    if needs:
        name = next((n for n, entry in METHODS.items() if entry is type(method)), "This method")
        raise ConfigError(
            f"{name} looks into pictures ({', '.join(needs)}), and ready-made vectors have none: "
            "give it picture files, or take a method of vectors alone, such as "
            "method.name=zero_shot or linear."
        )


def aligned(
    source: Labelled, names: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> LabelledImages:
    """The same rows with the targets of ``names``, found by any of their spellings.

    Raises:
        InputError: the source has no labels, or none of ``names``.
    """
    if not isinstance(source, LabelledImages | LabelledFeatures):
        raise InputError(
            f"Labels are needed here, as LabelledImages or LabelledFeatures. Got "
            f"{type(source).__name__}, which has none."
        )
    given = LabelledImages(source.paths, source.names, source.targets, source.known)
    found, _ = align(given, names, aliases)
    note_unheard(names, found.known)
    return found
