"""Define an encoder whose image tower is run by an engine."""

import threading
import warnings
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from surelabel.encoders.engines import ENGINES, EngineSettings
from surelabel.encoders.engines.feature_module import FeatureLayout, FeatureModule
from surelabel.encoders.engines.interface import CompiledModule
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.interface import Encoder
from surelabel.errors import ConfigError, InputError, UnknownName
from surelabel.records import Features

EXAMPLE_IMAGES = 2  # of the program; its number of images is variable
BF16_FLAGS = ("avx512_bf16", "amx_bf16")


def encoder_with_engine(encoder: Encoder, engine: str, dtype: str = "fp32") -> Encoder:
    """Return an encoder that computes the features of images with an engine.

    Texts are encoded as before. The fingerprint does not change, because the weights are the same.

    Args:
        encoder: Encoder with a PyTorch network.
        engine: Key of ``ENGINES``: ``torch``, ``onnx`` or ``openvino``.
        dtype: Number format of the computation: ``fp32`` or ``bf16``. If the processor has no
            instructions for bf16, a warning states that the computation uses fp32. An encoder that
            was quantized accepts only ``openvino`` with ``int8``, and is returned unchanged.

    Raises:
        UnknownName: If the engine is unknown.
        ConfigError: If the engine does not support the number format or the device, if the encoder
            has no PyTorch network or keeps the aspect ratio of images, or if it was quantized and
            has another engine.
    """
    if encoder.engine.dtype == "int8":
        if (engine, dtype) == ("openvino", "int8"):
            return encoder
        raise ConfigError(
            f"{encoder.name} was quantized to int8 and runs only with the engine openvino; got "
            f"{engine} {dtype}. Leave out the engine and the dtype, or give the recognizer before "
            "the quantization."
        )
    if dtype == "int8":
        raise ConfigError(
            f"The dtype int8 requires a recognizer that was quantized; got {encoder.name}. Run "
            "`surelabel calibrate MODEL DATASET --dtype int8 --out FOLDER`, and give FOLDER."
        )
    if engine not in ENGINES:
        raise UnknownName(f"{engine!r} is no engine. The engines are {', '.join(ENGINES)}.")
    supported = ENGINES[engine].dtypes
    if dtype not in supported:
        raise ConfigError(
            f"The engine {engine} supports {' and '.join(supported)}; got {dtype!r}. Give another "
            "dtype, or an engine that supports it."
        )
    original = encoder.encoder if isinstance(encoder, EngineEncoder) else encoder
    if (engine, dtype) == ("torch", "fp32"):
        return original
    if not isinstance(getattr(original, "model", None), nn.Module):
        raise ConfigError(
            f"An engine needs an encoder with a PyTorch network; got {original.name}. Leave out "
            "the engine, or give an encoder of open_clip, timm or transformers."
        )
    if not isinstance(original.preprocess, ImagePreprocessor):
        raise ConfigError(
            f"An engine needs an encoder of images with one size; {original.name} keeps the aspect "
            "ratio of each image. Leave out the engine, or give another encoder."
        )
    if engine != "torch" and original.device.type != "cpu":
        raise ConfigError(
            f"The engine {engine} runs on the CPU; got the device {original.device}. Give the "
            "device cpu, or the engine torch."
        )
    settings = EngineSettings(engine, dtype)
    if dtype == "bf16" and not has_bf16_instructions(original.device):
        warnings.warn(
            f"{original.device} has no instructions for bf16; {engine} computes in fp32.",
            stacklevel=2,
        )
        return encoder_with_engine(original, engine)
    return cast(Encoder, EngineEncoder(original, settings))


def has_bf16_instructions(device: torch.device) -> bool:
    """Return whether a device has instructions for bf16: AVX512-BF16 or AMX-BF16 on a CPU."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    cpu_info = Path("/proc/cpuinfo")
    if not cpu_info.is_file():
        return False
    flags = set(cpu_info.read_text(encoding="utf-8", errors="replace").split())
    return any(flag in flags for flag in BF16_FLAGS)


class EngineEncoder:
    """Encoder that delegates to another encoder, except for the features of images.

    Args:
        encoder: Encoder with a PyTorch network in its attribute ``model``.
        engine: Engine and number format.
    """

    def __init__(self, encoder: Encoder, engine: EngineSettings):
        self.encoder, self.engine = encoder, engine
        self._compiled: dict[str | tuple[int, int], tuple[CompiledModule, FeatureLayout]] = {}
        self._resized: dict[str | int, Encoder] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name == "encoder":  # undefined while an instance is copied
            raise AttributeError(name)
        return getattr(self.encoder, name)

    def __reduce__(self) -> tuple[type, tuple[Encoder, EngineSettings]]:
        return EngineEncoder, (self.encoder, self.engine)

    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``."""
        return self._encode("images", pixels)

    def encode_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and plain patch vectors, ``patches``."""
        return self._encode("patches", pixels)

    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and of patches, ``patches``."""
        return self._encode("self_aware", pixels)

    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches."""
        return self._encode("attentive", pixels)

    def encode_multi_layer_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled``, ``patches`` and the outputs of several layers, ``multi_layer``."""
        return self._encode("multi_layer", pixels)

    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and trunk tokens in ``layers[-1]``, ``(n, p, w)``."""
        return self._encode("trunk", pixels)

    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Return the input features of a ladder; see ``Encoder.encode_ladder_features``."""
        return self._encode((first_block, depth), pixels)

    def with_image_size(self, size: int) -> Encoder:
        """Return a version of this encoder for images of ``size`` by ``size`` pixels."""
        return self._version(size, self.encoder.with_image_size(size))

    def with_dense_image_size(self) -> Encoder:
        """Return a version of this encoder at the image size recommended for patch features."""
        return self._version("dense", self.encoder.with_dense_image_size())

    def with_network(self, network: nn.Module) -> Encoder:
        """Return a frozen encoder with the image tower ``network`` and the same engine."""
        return self._other_version(self.encoder.with_network(network))

    def _version(self, key: str | int, encoder: Encoder) -> Encoder:
        if encoder is self.encoder:
            return cast(Encoder, self)
        if key not in self._resized:
            self._resized[key] = self._other_version(encoder)
        return self._resized[key]

    def _other_version(self, encoder: Encoder) -> Encoder:
        return cast(Encoder, EngineEncoder(encoder, self.engine))

    def _encode(self, kind: str | tuple[int, int], pixels: Tensor) -> Features:
        with self._lock:
            if kind not in self._compiled:
                self._compiled[kind] = self._compile(kind)
        compiled, layout = self._compiled[kind]
        expected = (3, *self.encoder.preprocess_cfg["size"])
        if pixels.ndim != 4 or tuple(pixels.shape[1:]) != expected:
            raise InputError(
                f"pixels for this encoder must be preprocessed images of shape (n, "
                f"{', '.join(map(str, expected))}); got {tuple(pixels.shape)}. Use preprocess() of "
                "the encoder."
            )
        return layout.features(compiled(pixels))

    def _compile(self, kind: str | tuple[int, int]) -> tuple[CompiledModule, FeatureLayout]:
        example = torch.zeros(EXAMPLE_IMAGES, 3, *self.encoder.preprocess_cfg["size"])
        module = FeatureModule(self.encoder, kind).eval()
        layout = module.layout(example)
        engine = ENGINES[self.engine.engine]
        try:
            return engine(module, example, dtype=self.engine.dtype), layout
        except ConfigError as error:
            name = kind if isinstance(kind, str) else "ladder"
            raise ConfigError(
                f"The engine {self.engine.engine} cannot compute the features {name!r} of "
                f"{self.encoder.name}: {error} Give the engine torch."
            ) from error
