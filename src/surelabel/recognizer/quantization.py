"""Quantize the image encoder of a recognizer to int8, and calibrate the recognizer again."""

import copy
from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from surelabel.counts import format_count
from surelabel.data.images import open_image
from surelabel.encoders import Encoder
from surelabel.encoders.engines import TORCH_FP32
from surelabel.encoders.quantized.nncf_package import nncf_without_telemetry
from surelabel.encoders.quantized.quantized_encoder import QuantizationRecord, QuantizedEncoder
from surelabel.encoders.quantized.quantized_model import QuantizedModel, quantize_features
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.evaluation import Evaluation
from surelabel.features import add_text_feature_cache, without_text_feature_cache
from surelabel.features.feature_kinds import parse_ladder_feature_kind
from surelabel.methods import UsesViews
from surelabel.progress import Progress
from surelabel.recognizer.evaluation_run import basic_evaluation_run
from surelabel.recognizer.feature_extraction import feature_extraction_kinds_of_method
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import LabelledImages

MAX_IMAGES = 300
MAX_MAP_LOSS = 0.01  # of the mean average precision


def quantize_recognizer(
    recognizer: Recognizer, held_out: LabelledInput, *, progress: Progress | None = None
) -> Recognizer:
    """Return a recognizer whose image encoder computes in int8, with a new calibration.

    The ranges of the activations are measured on 300 random images of ``held_out``. Texts and the
    method are computed as before.

    Args:
        recognizer: Recognizer with a PyTorch encoder on the CPU. It is not changed.
        held_out: Annotated images that were not used by ``fit``. The mean average precision is
            measured on these images, and the calibrator is fitted on their new scores.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        NotFitted: If the method has to be fitted first.
        ConfigError: If the mean average precision falls by more than 0.01, or if the encoder cannot
            be quantized.
        InputError: If ``held_out`` contains no image files.
        DataError: If no image can be read.
        MissingPart: If nncf, onnx, onnxscript or openvino is not installed.
    """
    _check_recognizer_can_be_quantized(recognizer)
    if not isinstance(held_out, LabelledImages):
        raise InputError(
            f"Quantization to int8 requires image files; got {type(held_out).__name__}. Give "
            "annotated images."
        )
    before = basic_evaluation_run(recognizer, held_out, progress=progress)
    quantized, n_images = _with_quantized_encoder(recognizer, [str(p) for p in held_out.paths])
    after = basic_evaluation_run(quantized, held_out, progress=progress)
    map_before, map_after = map(_mean_average_precision, (before, after))
    if not map_after >= map_before - MAX_MAP_LOSS:  # also if a value is NaN
        raise ConfigError(
            f"The mean average precision must fall by at most {100 * MAX_MAP_LOSS:.0f} percentage "
            f"point in int8; it is {map_before:.4f} before and {map_after:.4f} after the "
            f"quantization with {format_count(n_images, 'image')}. Nothing was written. Use "
            "--dtype bf16, or give more images of DATASET."
        )
    n_test_images = len(after.predictions.paths)
    record = QuantizationRecord(n_images, n_test_images, map_before, map_after)
    encoder = without_text_feature_cache(quantized.encoder)
    assert isinstance(encoder, QuantizedEncoder)
    encoder.record = record
    return quantized.calibrate(held_out, progress=progress)


def _check_recognizer_can_be_quantized(recognizer: Recognizer) -> None:
    with nncf_without_telemetry():
        pass  # raises an error if nncf is not installed
    recognizer.check_fitted()
    encoder = recognizer.encoder
    if encoder.engine != TORCH_FP32 or not isinstance(getattr(encoder, "model", None), nn.Module):
        raise ConfigError(
            "Quantization to int8 requires an encoder of open_clip, timm or transformers with the "
            f"engine torch; got {encoder.name} with {encoder.engine.description}. Give another "
            "recognizer."
        )
    if encoder.device.type != "cpu":
        raise ConfigError(
            f"Quantization to int8 requires the device cpu; got {encoder.device}. Give the device "
            "cpu."
        )


def _with_quantized_encoder(recognizer: Recognizer, paths: Sequence[str]) -> tuple[Recognizer, int]:
    """Return a copy of a recognizer with a quantized encoder, and the number of images used."""
    encoder, method = without_text_feature_cache(recognizer.encoder), recognizer.method
    rows = np.random.default_rng(recognizer.run.seed).permutation(len(paths))
    sample = [paths[row] for row in rows[:MAX_IMAGES]]
    kinds = feature_extraction_kinds_of_method(method)
    sized = encoder.with_image_size(method.image_size) if method.image_size else encoder
    versions = [(kind, sized) for kind in kinds]
    if sized is not encoder or "images" not in kinds or isinstance(method, UsesViews):
        versions.append(("images", encoder))  # for views, and for the zero-shot baseline
    models: dict[tuple[str, tuple[int, ...]], QuantizedModel] = {}
    n_images = 0
    for kind, version in versions:
        key = kind, tuple(version.preprocess_cfg["size"])
        if key not in models:
            pixels = _pixels_of_readable_images(version, sample)
            n_images = len(pixels)
            models[key] = quantize_features(
                version, parse_ladder_feature_kind(kind) or kind, pixels
            )
    quantized = QuantizedEncoder(encoder, tuple(models.values()))
    other = copy.copy(recognizer)
    other.encoder = add_text_feature_cache(cast(Encoder, quantized), recognizer.cache)
    return other, n_images


def _pixels_of_readable_images(encoder: Encoder, paths: Sequence[str]) -> Tensor:
    """Return the preprocessed images that can be read, ``(n, 3, h, w)``.

    Raises:
        DataError: If no image can be read.
    """
    pixels, reasons = [], []
    for path in paths:
        try:
            image = open_image(path, min_side=encoder.input_side)
        except DataError as error:
            reasons.append(str(error))
        else:
            pixels.append(encoder.preprocess(image))
    if not pixels:
        raise DataError(f"At least one of {len(paths)} images must be readable; {reasons[0]}")
    return torch.stack(pixels)


def _mean_average_precision(evaluation: Evaluation) -> float:
    return float(evaluation.summary["mean_average_precision"])
