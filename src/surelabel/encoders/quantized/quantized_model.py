"""Quantize the computation of image features to int8."""

import json
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from surelabel.encoders.engines.conversion import (
    exported_program,
    import_engine_package,
    onnx_model_of_program,
    openvino_model_of_onnx,
)
from surelabel.encoders.engines.feature_module import FeatureLayout, FeatureModule
from surelabel.encoders.engines.interface import CompiledModule
from surelabel.encoders.engines.openvino_engine import INPUT, compile_openvino_model
from surelabel.encoders.interface import Encoder
from surelabel.encoders.quantized.nncf_package import nncf_without_telemetry
from surelabel.errors import DataError
from surelabel.package_imports import openvino_core

EXAMPLE_IMAGES = 2  # of the program; its number of images is variable
BATCH = 10  # images; in a trial, ranges of batches gave a higher cosine than those of single images


@dataclass(frozen=True)
class QuantizedModel:
    """OpenVINO model that computes one kind of features with int8 weights and activations.

    Attributes:
        kind: Kind of features, a key of ``ENCODER_METHODS``; or, for the features of a ladder, the
            first block and the depth, as in ``Encoder.encode_ladder_features``.
        size: Height and width of the images, in pixels.
        model: Content of the ``.xml`` file of OpenVINO.
        weights: Content of the ``.bin`` file of OpenVINO.
    """

    kind: str | tuple[int, int]
    size: tuple[int, int]
    model: bytes
    weights: bytes

    @property
    def fingerprint(self) -> str:
        """Return a hash of the kind, the image size, the model and its weights."""
        digest = sha256(json.dumps([self.kind, self.size]).encode())
        for content in (self.model, self.weights):
            digest.update(sha256(content).digest())
        return digest.hexdigest()

    def compile(self, layout: FeatureLayout) -> CompiledModule:
        """Return a function that computes the tensors of the features.

        Args:
            layout: Names of the tensors.

        Raises:
            DataError: If OpenVINO cannot read the model.
            MissingPart: If openvino is not installed.
        """
        openvino = import_engine_package("openvino")
        try:
            model = openvino_core().read_model(self.model, self.weights)
        except RuntimeError as error:
            raise DataError(
                f"OpenVINO {openvino.__version__} cannot read the int8 model of the features "
                f"{self.kind}. Copy the whole folder of the recognizer again, or calibrate again "
                "with --dtype int8."
            ) from error
        return compile_openvino_model(model, _output_names(layout), dtype="fp32")


def quantize_features(
    encoder: Encoder, kind: str | tuple[int, int], pixels: Tensor
) -> QuantizedModel:
    """Quantize the computation of one kind of features to int8, without training.

    The ranges of the activations are measured on images.

    Args:
        encoder: Encoder with a PyTorch network in its attribute ``model``.
        kind: Kind of features, as in :class:`QuantizedModel`.
        pixels: Preprocessed images, ``(n, 3, h, w)``.

    Raises:
        ConfigError: If an operation does not exist in ONNX or OpenVINO.
        MissingPart: If nncf, onnx, onnxscript or openvino is not installed.
    """
    openvino = import_engine_package("openvino")
    module = FeatureModule(encoder, kind).eval()
    example = torch.zeros(EXAMPLE_IMAGES, *pixels.shape[1:])
    outputs = _output_names(module.layout(example))
    batches = [batch.numpy() for batch in pixels.split(BATCH)]
    with nncf_without_telemetry() as nncf:
        program = exported_program(module, (example,))
        exact = openvino_model_of_onnx(
            onnx_model_of_program(program, input_names=[INPUT], output_names=outputs)
        )
        has_attention = encoder.supports("ladder")  # which requires the blocks of a ViT
        quantized = nncf.quantize(
            exact,
            nncf.Dataset(batches),
            subset_size=len(batches),
            model_type=nncf.ModelType.TRANSFORMER if has_attention else None,
        )
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("model.xml", "model.bin")]
        openvino.serialize(quantized, *files)
        model, weights = (file.read_bytes() for file in files)
    height, width = pixels.shape[2:]
    return QuantizedModel(kind, (height, width), model, weights)


def _output_names(layout: FeatureLayout) -> list[str]:
    return [f"output_{index}" for index in range(len(layout.names))]
