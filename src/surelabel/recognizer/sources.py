"""What a recognizer is given, pictures or vectors, and what becomes of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from surelabel.backbones import Backbone
from surelabel.data import FeatureCache, align, upright
from surelabel.encoding import Encoded, encode, ready_made
from surelabel.errors import InputError
from surelabel.recognizer.notes import note_unheard
from surelabel.records import Features, Images, LabelledFeatures, LabelledImages

Labelled = LabelledImages | LabelledFeatures
Source = Images | Labelled | Sequence[str | Path] | npt.NDArray[Any]


def source_of(given: Source) -> Images | Labelled:
    """Paths as pictures, and an array of numbers as vectors of which no label is asked.

    Raises:
        InputError: an array of numbers is not one finite vector a row.
    """
    if isinstance(given, Images | LabelledImages | LabelledFeatures):
        return given
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        return LabelledFeatures(given, (), np.zeros((len(given) if given.ndim else 0, 0)))
    return Images([str(p) for p in given])


def encoded(
    source: Images | Labelled, method: Any, backbone: Backbone, cache: FeatureCache, **options: Any
) -> Encoded:
    """What the method needs of each row: vectors as they are, pictures through the encoder."""
    if isinstance(source, LabelledFeatures):
        return ready_made(source.features, width=backbone.width)
    part = "patches" if "patches" in method.needs else "images"
    paths = [str(p) for p in source.paths]
    return encode(backbone, paths, part=part, cache=cache, **options)


def of_pictures(pictures: Sequence[Image.Image], backbone: Backbone) -> Features:
    """Vectors of pictures in memory."""
    return Features(
        torch.cat(
            [backbone.images(backbone.prepare(upright(p))[None]).pooled for p in pictures]
        ).cpu()
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
