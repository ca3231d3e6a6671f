"""Open exported recognizers as encoders, whose image vectors contain logits or scores."""

import hashlib
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import torch
from torch import Tensor

from surelabel.arrays import Array
from surelabel.encoders.engines.interface import EngineSettings
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.image_only.exported_graph import ExportedGraph
from surelabel.encoders.image_only.exported_metadata import exported_view_count
from surelabel.encoders.image_only.image_only import ImageOnlyEncoder
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.files import atomic_folder
from surelabel.label_aliases import comparable_spelling, list_labels, split_label_aliases
from surelabel.recognizer_folder_checks import EXPORTED_SUFFIXES
from surelabel.records import EncoderLicense, Features

GRAPH_FOLDER = "exported"  # folder of the files within a saved encoder
N_PARTS = 2  # vectors of numbers that are rounded to fp16, per vector of logits


class ExportedModel(ImageOnlyEncoder):
    """A recognizer in a file of ``surelabel export``, as an encoder of images.

    The vector of an image contains the k outputs of the graph twice: first rounded to fp16, then
    the differences from the rounded values. The cache rounds vectors to fp16, and the sum of both
    parts remains accurate. The vector of a label selects both values of its column, so that the
    method ``zero_shot`` with the domain ``cosine`` returns the outputs of the graph.

    Args:
        graph: Graph of the recognizer.
        name: Model name that was used to load the encoder.

    Attributes:
        metadata: Metadata in the file.
        image_preprocessor: Preprocessing of an image, or of a view if the input has views.
        logit_bias: 0 if the outputs are log-odds, or None if they are scores.
        views: Whether the first view of an image is the whole image, and the numbers of rows and
            columns of the grids of tiles that follow. If the input has no axis of views, None.
    """

    scale = math.sqrt(N_PARTS)

    def __init__(self, graph: ExportedGraph, *, name: str):
        metadata = graph.metadata
        self.image_preprocessor = ImagePreprocessor(metadata.preprocessing)
        super().__init__(name, self.image_preprocessor)
        self.graph, self.metadata = graph, metadata
        self.logit_bias = 0.0 if metadata.output == "logits" else None
        self.views: tuple[bool, list[tuple[int, int]]] | None = None
        if metadata.views is not None:
            grids = [(rows, columns) for rows, columns in metadata.views["grids"]]
            self.views = metadata.views["whole_image"], grids
        self.license = EncoderLicense(
            metadata.license.get("name", ""), metadata.license.get("source", "")
        )
        self.engine = EngineSettings(graph.engine)
        self.width = N_PARTS * len(metadata.names)
        self.fingerprint = _exported_model_fingerprint(graph)
        self._column_of = {
            comparable_spelling(spelling): column
            for column, names in enumerate(metadata.names_with_aliases)
            for spelling in split_label_aliases(names)
        }

    @property
    def takes_raw_images(self) -> bool:
        """Return whether the graph preprocesses images of any size, uint8 ``(n, h, w, 3)``."""
        return self.metadata.preprocessing_in_graph

    @property
    def input_side(self) -> int:
        """Return the minimum side in pixels to which a JPEG is reduced while it is decoded."""
        return self.metadata.min_side

    @property
    def n_image_parameters(self) -> int:
        """Return the number of constants in the graph, times the number of views of an image."""
        return self.graph.n_parameters * exported_view_count(self.metadata)

    def encode_images(self, pixels: Tensor) -> Features:
        """Return the outputs of the graph in two parts, ``pooled``, ``(n, 2 * k)``.

        Args:
            pixels: Images in the shape of the input: preprocessed images ``(n, 3, h, w)`` or views
                of images ``(n, t, 3, h, w)``, or images ``(n, h, w, 3)`` of type uint8.

        Raises:
            InputError: If the images have another shape or type.
            DataError: If the graph cannot process the images.
        """
        expected = self.metadata.input_shape
        sizes = zip(expected, pixels.shape[1:], strict=False)
        fits = len(pixels.shape) == 1 + len(expected) and all(e in (-1, s) for e, s in sizes)
        dtype = torch.uint8 if self.takes_raw_images else torch.float32
        if not fits or pixels.dtype != dtype:
            raise InputError(
                f"pixels for {self.name} must have the shape (n, *{expected}), with -1 for any "
                f"size, and the type {dtype}; got {tuple(pixels.shape)} and {pixels.dtype}. Use "
                "the preprocessing in the metadata of the file."
            )
        outputs = torch.from_numpy(self.graph(pixels.detach().cpu().numpy()))
        rounded = outputs.half().float()
        return Features(pooled=torch.cat([rounded, outputs - rounded], dim=1))

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return a unit vector for each of ``c`` labels, which selects its column, ``(c, 2 * k)``.

        Args:
            names: Labels of the file, or their aliases; case is not considered.
            templates: Prompt templates. This argument has no effect.

        Raises:
            ConfigError: If the file does not have a label.
        """
        unknown = [name for name in names if comparable_spelling(name) not in self._column_of]
        if unknown:
            labels = self.metadata.names
            raise ConfigError(
                f"{self.name} can predict only the {len(labels)} labels of the export; got "
                f"{list_labels(unknown[:5])}{' …' if len(unknown) > 5 else ''}. Use labels such as "
                f"{list_labels(labels[:5])}, or export a recognizer with the new labels."
            )
        columns = torch.tensor([self._column_of[comparable_spelling(name)] for name in names])
        vectors = torch.zeros(len(names), N_PARTS, len(self.metadata.names))
        vectors[torch.arange(len(names)), :, columns] = 1 / math.sqrt(N_PARTS)
        return vectors.flatten(1)

    def thresholds_of_labels(self, names: Sequence[str]) -> Array | None:
        """Return the minimum probability of each label ``(c,)``, or None if there is none.

        Args:
            names: Labels of the file, or their aliases, length c.
        """
        if self.metadata.thresholds is None:
            return None
        columns = [self._column_of[comparable_spelling(name)] for name in names]
        return np.array(self.metadata.thresholds, dtype=np.float64)[columns]

    def with_image_size(self, size: int) -> Self:
        """Raise ConfigError, because the graph has a fixed image size."""
        self._raise_fixed()

    def save(self, folder: Path) -> None:
        """Write a copy of the exported files to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            for file in self.graph.files:
                copy = new / GRAPH_FOLDER / file.relative_to(self.graph.file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            file_name = self.graph.file.name
            write_encoder_manifest(new, "exported", file_name, self.fingerprint, name=self.name)

    def _raise_fixed(self) -> NoReturn:
        raise ConfigError(
            f"{self.name} is an exported recognizer, whose encoder and labels are fixed. Its "
            "images can be tagged, evaluated and indexed, and its probabilities can be "
            "calibrated. For other uses, give the recognizer that was exported, or an encoder."
        )

    def _raise_no_patches(self) -> NoReturn:
        self._raise_fixed()

    def _raise_no_blocks(self) -> NoReturn:
        self._raise_fixed()

    def _raise_no_text_tower(self) -> NoReturn:
        self._raise_fixed()

    def _raise_not_trainable(self) -> NoReturn:
        self._raise_fixed()


def exported_model(file: Path, device: str, *, name: str = "") -> ExportedModel:
    """Open a file that ``surelabel export`` wrote as an encoder.

    Args:
        file: ONNX file, or ``.xml`` file of an OpenVINO model.
        device: Device of the encoder, ``cpu`` only.
        name: Name of the encoder. If empty, the path of the file is used.

    Raises:
        DataError: If a file is missing or damaged.
        ConfigError: If the file has no metadata or is a ``.pt2`` file, or the device is not the
            CPU.
        MissingPart: If the runtime of the file is not installed.
    """
    if torch.device(device).type != "cpu":
        raise ConfigError(
            f"device must be cpu for exported files; got {device!r}. Remove the device, or give "
            "the recognizer that was exported."
        )
    return ExportedModel(ExportedGraph(file), name=name or str(file))


def load_saved_exported_model(folder: Path, manifest: dict[str, Any], device: str) -> ExportedModel:
    """Open an exported file in a folder that was written by ``save``.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of the manifest. The value of the key ``exported`` is the file name.
        device: Device of the encoder, ``cpu`` only.

    Raises:
        DataError: If the manifest is invalid, or a file is missing or damaged.
        ConfigError: If the device is not the CPU.
        MissingPart: If the runtime of the file is not installed.
    """
    file, name = manifest["exported"], manifest.get("name", "")
    is_name = isinstance(file, str) and Path(file).name == file
    if not is_name or Path(file).suffix.lower() not in EXPORTED_SUFFIXES:
        raise DataError(
            f'The key "exported" of the manifest in {folder} must be the name of an exported file; '
            f"got {str(file)[:60]!r}. Save the encoder again."
        )
    if not isinstance(name, str):
        raise DataError(
            f'The key "name" of the manifest in {folder} must be a text; got {str(name)[:60]!r}. '
            "Save the encoder again."
        )
    return exported_model(folder / GRAPH_FOLDER / file, device, name=name)


def _exported_model_fingerprint(graph: ExportedGraph) -> str:
    """Return a hash of the exported files, with 16 hexadecimal digits."""
    digest = hashlib.sha256(json.dumps([file.suffix for file in graph.files]).encode())
    for file in graph.files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]
