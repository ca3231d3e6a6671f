"""Define the tasks of a worker process that loads the recognizer of an index.

Each task returns a value that JSON can represent, and bytes. A task without a value returns None,
and a task without bytes returns no bytes.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
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
from surelabel.features.cache import content_hash_for_cache
from surelabel.recognizer import (
    Recognizer,
    localize_labels,
    recognizer_of_index,
    rescore_index,
)
from surelabel.recognizer.uncertainty import BERNOULLI_VARIANCE
from surelabel.recognizer.used_rows import Keys, image_keys
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


def compute_uncertainty(
    source: dict[str, Any], path: str
) -> tuple[tuple[dict[str, dict[str, float]], str | None], bytes]:
    """Return the uncertainty of each label by kind, and the reason if the method estimates none.

    Args:
        source: Attributes of ``RecognizerSource``.
        path: Path of the image.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
        DataError: If the image cannot be read. The message contains only the reason.
    """
    recognizer = _recognizer(RecognizerSource(**source))
    kinds = [kind for kind in recognizer.uncertainty_kinds if kind != BERNOULLI_VARIANCE]
    if not kinds:
        reason = (
            f"The method {recognizer.run.method.name} estimates no uncertainty apart from the "
            "probability."
        )
        return ({}, reason), b""
    values = {}
    for kind in kinds:
        try:
            predictions = recognizer.predict([path], uncertainty=kind, workers=0)
        except NoReadableImage as error:
            raise DataError(error.skipped[0].reason) from error
        assert predictions.uncertainty is not None  # requested above
        row = predictions.uncertainty[0].tolist()
        values[kind] = dict(zip(predictions.names, row, strict=True))
    return (values, None), b""


def find_images_of_fit(source: dict[str, Any], paths: list[str]) -> tuple[list[bool], bytes]:
    """Return whether the recognizer was fitted on each image file.

    Args:
        source: Attributes of ``RecognizerSource``.
        paths: Paths of image files. For a file that cannot be read, the value is False.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
    """
    used_rows = _recognizer(RecognizerSource(**source)).used_rows
    if used_rows is None or not len(used_rows.fit):
        return [False] * len(paths), b""
    return [bool(np.isin(_keys_of_files([path]), used_rows.fit).any()) for path in paths], b""


def apply_recalibration(
    source: dict[str, Any],
    scale: float,
    shift: float,
    logits: list[list[float]],
    targets: list[list[float]],
    paths: list[str],
) -> tuple[str, bytes]:
    """Save a recalibrated recognizer beside an index, and compute the log-odds of the index again.

    An existing folder is never changed. If the log-odds cannot be computed, the new folder is
    removed, and the index is unchanged.

    Args:
        source: Attributes of ``RecognizerSource``.
        scale: Factor of the log-odds, above 0.
        shift: Constant that is added to the scaled log-odds.
        logits: Cross-fitted log-odds of n annotated images and c labels, ``(n, c)``.
        targets: Targets of the images in [0, 1], ``(n, c)``; NaN is unknown.
        paths: Paths of the files of the images, which are hashed.

    Returns:
        Folder of the new recognizer.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
        SurelabelError: If the recognizer cannot be saved, or the log-odds cannot be computed.
    """
    recognizer_source = RecognizerSource(**source)
    recognizer = _load_recognizer(recognizer_source)
    values = np.array(targets, dtype=np.float64)
    recognizer.apply_recalibration(
        scale,
        shift,
        np.array(logits, dtype=np.float64),
        np.nan_to_num(values),
        ~np.isnan(values),
        keys=_keys_of_files(paths),
    )
    folder = create_recognizer_folder(recognizer_source.folder)
    try:
        recognizer.save(folder)
        rescore_index(
            recognizer_source.folder,
            recognizer,
            model=str(folder),
            expected_model=recognizer_source.fingerprint,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return str(folder), b""


def create_recognizer_folder(index_folder: str) -> Path:
    """Create a new empty folder beside an index: ``INDEX.recognizer``, ``INDEX.recognizer-2`` …

    Raises:
        DataError: If the folder cannot be created.
    """
    index = Path(index_folder).absolute()
    number = 1
    while True:
        suffix = "" if number == 1 else f"-{number}"
        folder = index.with_name(f"{index.name}.recognizer{suffix}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise DataError(
                f"The folder {folder} for the new recognizer cannot be created: {error.strerror}. "
                "Check the permissions of the folder that contains the index."
            ) from error
        else:
            return folder


TASKS = {
    "apply_recalibration": apply_recalibration,
    "compute_uncertainty": compute_uncertainty,
    "encode_heat_map": encode_heat_map,
    "find_images_of_fit": find_images_of_fit,
    "load_recognizer": load_recognizer,
    "predict_labels": predict_labels,
}


@lru_cache(maxsize=1)
def _recognizer(source: RecognizerSource) -> Recognizer:
    """Return the recognizer of an index, and limit the memory of this process.

    Raises:
        MissingPart: If the recognizer cannot be loaded, or is not that of the index.
    """
    recognizer = _load_recognizer(source)
    limit_decoding_memory()
    return recognizer


def _load_recognizer(source: RecognizerSource) -> Recognizer:
    """Return the recognizer of an index, which must be fitted and calibrated.

    Raises:
        MissingPart: If the recognizer cannot be loaded, is not that of the index, or is not fitted
            or calibrated. Also if the index was replaced.
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
    return recognizer


def _keys_of_files(paths: list[str]) -> Keys:
    """Return the hashes of the contents of files; files that cannot be read are left out."""
    hashes = []
    for path in paths:
        with suppress(DataError):
            hashes.append(content_hash_for_cache(path))
    return image_keys(hashes)
