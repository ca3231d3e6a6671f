"""Define an encoder whose features of images are computed in int8."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn, cast

import torch

from surelabel.encoders.engines.engine_encoder import EngineEncoder
from surelabel.encoders.engines.feature_module import FeatureLayout, FeatureModule
from surelabel.encoders.engines.interface import CompiledModule, EngineSettings
from surelabel.encoders.interface import ENCODER_METHODS, Encoder
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.encoders.quantized.quantized_model import EXAMPLE_IMAGES, QuantizedModel
from surelabel.errors import ConfigError, DataError
from surelabel.file_readers import open_regular_file
from surelabel.files import atomic_folder

OPENVINO_INT8 = EngineSettings("openvino", "int8")
ORIGINAL_FOLDER = "original"  # of the encoder before the quantization, within a saved encoder
SUFFIX = " (int8)"
SAVE_AGAIN = "Copy the whole folder again, or calibrate again with --dtype int8."


@dataclass(frozen=True)
class QuantizationRecord:
    """Number of images of a quantization, and the quality of the recognizer before and after.

    Attributes:
        n_images: Number of images with which the ranges of the activations were measured.
        n_test_images: Number of annotated images of both mean average precisions.
        map_before: Mean average precision of the recognizer before the quantization.
        map_after: Mean average precision of the recognizer after the quantization.
    """

    n_images: int
    n_test_images: int
    map_before: float
    map_after: float

    @property
    def description(self) -> str:
        """Return a sentence with the numbers of images and the mean average precisions."""
        return (
            f"The image encoder was quantized to int8 with {self.n_images:,} images. The mean "
            f"average precision on {self.n_test_images:,} annotated images is "
            f"{self.map_before:.4f} before and {self.map_after:.4f} after the quantization."
        )


class QuantizedEncoder(EngineEncoder):
    """Encoder that delegates to another encoder, except for features of images, in int8.

    Only the kinds of features and the image sizes that were quantized can be computed.

    Args:
        encoder: Encoder before the quantization.
        models: Quantized models of all kinds of features and image sizes.
        record: Numbers of images and the quality before and after. If None, the quality was not
            measured yet.

    Attributes:
        fingerprint: Hash of the fingerprint of the original encoder and of the models.
        patch_kinds: Empty, because heat maps of encoder patches need another image size.
    """

    patch_kinds: tuple[str, ...] = ()

    def __init__(
        self,
        encoder: Encoder,
        models: tuple[QuantizedModel, ...],
        record: QuantizationRecord | None = None,
    ):
        super().__init__(encoder, OPENVINO_INT8)
        self.models, self.record = models, record
        self.name = f"{encoder.name}{SUFFIX}"
        parts = [encoder.fingerprint, *(model.fingerprint for model in models)]
        self.fingerprint = sha256(" ".join(parts).encode()).hexdigest()[:16]

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return QuantizedEncoder, (self.encoder, self.models, self.record)

    def supports(self, kind: str) -> bool:
        """Return True if a model of the features ``kind`` was quantized; see ``Encoder``."""
        kinds = {model.kind if isinstance(model.kind, str) else "ladder" for model in self.models}
        return kind in kinds

    def trainable_network(self) -> NoReturn:
        """Raise ConfigError, because int8 weights cannot be trained."""
        raise ConfigError(
            f"{self.name} was quantized to int8, and its weights cannot be trained. Give the "
            "encoder before the quantization."
        )

    def save(self, folder: Path) -> None:
        """Write the original encoder and the quantized models to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            self.encoder.save(new / ORIGINAL_FOLDER)
            for index, model in enumerate(self.models):
                xml, weights = _model_files(new, index)
                xml.write_bytes(model.model)
                weights.write_bytes(model.weights)
            models = [{"kind": model.kind, "size": model.size} for model in self.models]
            record = asdict(self.record) if self.record else None
            write_encoder_manifest(new, "quantized", models, self.fingerprint, record=record)

    def _other_version(self, encoder: Encoder) -> Encoder:
        size = tuple(encoder.preprocess_cfg["size"])
        if all(model.size != size for model in self.models):
            sizes = " and ".join(sorted({"by".join(map(str, m.size)) for m in self.models}))
            raise ConfigError(
                f"{self.name} computes features in int8 only for images of {sizes} pixels; got "
                f"{'by'.join(map(str, size))}. Calibrate a recognizer of this image size with "
                "--dtype int8."
            )
        return cast(Encoder, QuantizedEncoder(encoder, self.models, self.record))

    def _compile(self, kind: str | tuple[int, int]) -> tuple[CompiledModule, FeatureLayout]:
        size = tuple(self.encoder.preprocess_cfg["size"])
        model = next((m for m in self.models if (m.kind, m.size) == (kind, size)), None)
        if model is None:
            name = kind if isinstance(kind, str) else "ladder"
            raise ConfigError(
                f"The features {name!r} of {self.name} were not quantized. Give the recognizer "
                "before the quantization."
            )
        example = torch.zeros(EXAMPLE_IMAGES, 3, *size)
        layout = FeatureModule(self.encoder, kind).eval().layout(example)
        return model.compile(layout), layout


def load_saved_quantized_encoder(
    folder: Path,
    manifest: dict[str, Any],
    device: str,
    *,
    load_original: Callable[[str, str], Encoder],
) -> Encoder:
    """Load a quantized encoder from a folder that was written by ``save``.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of the manifest, with the keys ``quantized`` and ``record``.
        device: Device of the encoder, ``cpu`` only.
        load_original: Function that loads the original encoder from a folder for a device.

    Raises:
        DataError: If the manifest is invalid, or a file is missing or damaged.
        ConfigError: If the device is not the CPU.
    """
    if torch.device(device).type != "cpu":
        raise ConfigError(
            f"device must be cpu for a recognizer that was quantized to int8; got {device!r}. "
            "Remove the device, or give the recognizer before the quantization."
        )
    models = []
    for index, (kind, size) in enumerate(_manifest_models(manifest["quantized"], folder)):
        contents = []
        for file in _model_files(folder, index):
            with open_regular_file(file, remedy=SAVE_AGAIN) as stream:
                contents.append(stream.read())
        models.append(QuantizedModel(kind, size, *contents))
    record = _manifest_record(manifest.get("record"), folder)
    original = load_original(str(folder / ORIGINAL_FOLDER), device)
    if original.engine == OPENVINO_INT8:
        raise DataError(
            f"{folder / ORIGINAL_FOLDER} must contain an encoder that was not quantized; got "
            f"{original.name}. {SAVE_AGAIN}"
        )
    return cast(Encoder, QuantizedEncoder(original, tuple(models), record))


def _model_files(folder: Path, index: int) -> tuple[Path, Path]:
    return folder / f"model_{index}.xml", folder / f"model_{index}.bin"


def _manifest_models(
    value: object, folder: Path
) -> list[tuple[str | tuple[int, int], tuple[int, int]]]:
    """Return the kind and the image size of each model, which are checked."""
    models = []
    for entry in value if isinstance(value, list) else [None]:
        fields = entry if isinstance(entry, dict) else {}
        kind, size = fields.get("kind"), _pair_of_integers(fields.get("size"))
        checked = kind if isinstance(kind, str) and kind in ENCODER_METHODS else None
        pair = _pair_of_integers(kind)
        if size is None or (checked is None and pair is None):
            raise DataError(
                f'The key "quantized" of the manifest in {folder} must be a list of kinds of '
                f"features and image sizes; got {str(value)[:100]!r}. {SAVE_AGAIN}"
            )
        models.append((checked or pair or "", size))
    return models


def _pair_of_integers(value: object) -> tuple[int, int] | None:
    if not isinstance(value, list) or len(value) != 2 or any(type(v) is not int for v in value):
        return None
    return value[0], value[1]


def _manifest_record(value: object, folder: Path) -> QuantizationRecord | None:
    if value is None:
        return None
    try:
        record = QuantizationRecord(**cast(dict[str, Any], value))
        counts, values = (
            (record.n_images, record.n_test_images),
            (record.map_before, record.map_after),
        )
        if any(type(n) is not int for n in counts) or not all(map(math.isfinite, values)):
            raise TypeError
    except TypeError as error:
        raise DataError(
            f'The key "record" of the manifest in {folder} must contain two numbers of images and '
            f"two mean average precisions; got {str(value)[:100]!r}. {SAVE_AGAIN}"
        ) from error
    return record
