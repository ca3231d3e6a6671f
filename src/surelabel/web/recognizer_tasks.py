"""Tasks of a worker process that loads the recognizer of an index: labels and heat maps."""

import os
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

import torch
from PIL import Image

from surelabel.data.decoding_memory import limit_decoding_memory
from surelabel.data.images import open_image
from surelabel.errors import (
    DataError,
    MissingPart,
    NoReadableImage,
    NotFitted,
    SurelabelError,
)
from surelabel.recognizer import Recognizer, localize_labels, recognizer_of_index
from surelabel.report.heat_map_drawing import draw_heat_map
from surelabel.retrieval import Index


@dataclass(frozen=True)
class RecognizerSource:
    """Source of the recognizer of one revision of an index.

    Attributes:
        folder: Folder of the index.
        root: Root folder of the images, or None for the stored root.
        model: Saved recognizer or name of an encoder, or None for the recorded recognizer.
        device: PyTorch device of the encoder.
        fingerprint: Fingerprint of the recognizer, which the index contains.
    """

    folder: str
    root: str | None
    model: str | None
    device: str
    fingerprint: str


def load_recognizer(source: dict[str, Any]) -> tuple[list[str], bytes]:
    """Load the recognizer of an index, and return its labels.

    Args:
        source: Attributes of ``RecognizerSource``.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
    """
    return list(_recognizer(RecognizerSource(**source)).names), b""


def predict_labels(source: dict[str, Any], content: bytes) -> tuple[dict[str, float], bytes]:
    """Return the probability of each label of an image.

    Args:
        source: Attributes of ``RecognizerSource``.
        content: Content of an image file.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
        DataError: If the image cannot be read. The message contains only the reason.
    """
    recognizer = _recognizer(RecognizerSource(**source))
    try:
        predictions = recognizer.predict([content], workers=0)
    except NoReadableImage as error:
        raise DataError(error.skipped[0].reason) from error
    values = predictions.probabilities[0].tolist()
    return dict(zip(predictions.names, values, strict=True)), b""


def encode_heat_map(source: dict[str, Any], path: str, label: str, side: int) -> tuple[None, bytes]:
    """Return an image with the heat map of a label as a PNG file.

    Args:
        source: Attributes of ``RecognizerSource``.
        path: Path of the image.
        label: Label of the recognizer.
        side: Maximum number of pixels of the longer side. Smaller images are not enlarged.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
        UnknownName: If the label is not a label of the recognizer.
        ConfigError: If the recognizer cannot localize labels.
        DataError: If the image cannot be read.
    """
    recognizer = _recognizer(RecognizerSource(**source))
    image = open_image(path, min_side=side)
    region_maps = localize_labels(recognizer, {path: [label]}).get(path)
    if region_maps is None:
        raise DataError("The image cannot be read.")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    overlay = draw_heat_map(image, region_maps.maps[label], crop_mode=region_maps.crop_mode)
    file = BytesIO()
    overlay.save(file, "PNG")
    return None, file.getvalue()


TASKS = {
    "encode_heat_map": encode_heat_map,
    "load_recognizer": load_recognizer,
    "predict_labels": predict_labels,
}


@lru_cache(maxsize=1)
def _recognizer(source: RecognizerSource) -> Recognizer:
    """Return the recognizer of an index, and limit the memory of this process.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
    """
    torch.set_num_threads(max(1, (os.cpu_count() or 1) - 1))  # one core remains for searches
    try:
        index = Index.open(source.folder, root=source.root)
        if index.model != source.fingerprint:
            raise DataError("The index was replaced. Repeat the request.")
        recognizer = recognizer_of_index(index, source.model, device=source.device)
        recognizer.check_fitted()
        if recognizer.calibrated_on is None:
            raise NotFitted("The recognizer is not calibrated.")
    except SurelabelError as error:
        raise MissingPart(str(error)) from error
    limit_decoding_memory()
    return recognizer
