"""Load and run image encoders that are stored in ONNX files."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders.image_inputs.preprocessing import (
    MAX_SIDE,
    ImagePreprocessor,
    check_preprocess_cfg,
)
from surelabel.encoders.image_only.image_only import ImageOnlyEncoder
from surelabel.encoders.image_only.onnx_graph import OnnxGraph
from surelabel.encoders.loading.encoder_manifest import (
    encoder_manifest_settings,
    write_encoder_manifest,
)
from surelabel.errors import ConfigError, DataError
from surelabel.files import atomic_folder
from surelabel.records import Features

LAYOUTS = ("nchw", "nhwc")
GRAPH_FOLDER = "onnx"  # folder of the graph within a saved encoder


class OnnxEncoder(ImageOnlyEncoder):
    """A frozen image encoder in an ONNX file, which is run by onnxruntime.

    Args:
        graph: ONNX graph that computes vectors from images.
        name: Model name that was used to load the encoder.
        layout: Order of the axes of the graph input, ``nchw`` or ``nhwc``.
        preprocess: Function that converts an upright RGB image to a tensor ``(3, h, w)``.
    """

    def __init__(self, graph: OnnxGraph, *, name: str, layout: str, preprocess: ImagePreprocessor):
        super().__init__(name, preprocess)
        self.graph, self.layout = graph, layout
        self.fingerprint = _onnx_encoder_fingerprint(graph, self.settings)
        self.width = self._run_graph(torch.zeros(1, 3, *self.preprocess_cfg["size"])).shape[1]

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that ``onnx_encoder`` needs to load this encoder again."""
        cfg = {k: v for k, v in self.preprocess_cfg.items() if k != "fill_color"}
        return {"output": self.graph.output, "layout": self.layout, **cfg}

    @property
    def n_image_parameters(self) -> int:
        """Return the number of values of all constants in the graph."""
        return self.graph.n_parameters

    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``.

        Raises:
            InputError: If the pixels do not have the shape of preprocessed images.
            DataError: If onnxruntime cannot run the graph, or the graph does not return one finite
                vector per image.
        """
        return Features(
            pooled=F.normalize(self._run_graph(self.preprocess.check_pixels(pixels)), dim=-1)
        )

    def save(self, folder: Path) -> None:
        """Write the graph, the weights and all settings to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            for file in self.graph.files:
                copy = new / GRAPH_FOLDER / file.relative_to(self.graph.file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            fields = {"name": self.name, "settings": self.settings}
            write_encoder_manifest(new, "onnx", self.graph.file.name, self.fingerprint, **fields)

    def _run_graph(self, pixels: Tensor) -> Tensor:
        images = pixels if self.layout == "nchw" else pixels.permute(0, 2, 3, 1)
        return torch.from_numpy(self.graph(images.detach().cpu().contiguous().numpy()))


def onnx_encoder(
    file: str,
    device: str,
    *,
    output: str = "features",
    layout: str = "",
    size: int | Sequence[int] | None = None,
    mean: Sequence[float] = (0.5, 0.5, 0.5),
    std: Sequence[float] = (0.5, 0.5, 0.5),
    interpolation: str = "bicubic",
    resize_mode: str = "shortest",
) -> OnnxEncoder:
    """Load an image encoder from an ONNX file.

    Args:
        file: Path of an ONNX graph that computes one vector per RGB image.
        device: Device of the encoder, ``cpu`` only.
        output: Name of the graph output that contains the vectors.
        layout: Order of the axes of the graph input, ``nchw`` or ``nhwc``. If empty, the order is
            read from the graph.
        size: Side of the images in pixels, or height and width. If None, the size is read from the
            graph.
        mean: Means of red, green and blue, which are subtracted from pixel values in [0, 1]. The
            defaults of ``mean`` and ``std`` scale pixel values to [-1, 1].
        std: Standard deviations of red, green and blue, by which the differences are divided. If
            the graph expects ``scale · v + offset`` for pixel values v from 0 to 255, set ``std``
            to 1 / (255 · scale) and ``mean`` to -offset · std.
        interpolation: Interpolation of the resized images, ``bicubic`` or ``bilinear``.
        resize_mode: Resize mode ``shortest`` (center crop), ``longest`` (padding) or ``squash``.

    Raises:
        DataError: If the file is missing or damaged, or the graph is not an image encoder.
        ConfigError: If a setting is invalid or incompatible with the graph, or the device is not
            the CPU.
        MissingPart: If onnx or onnxruntime is not installed.
    """
    if torch.device(device).type != "cpu":
        raise ConfigError(f"device must be cpu for ONNX files; got {device!r}.")
    name = f"onnx:{file}"
    cfg = {"mean": mean, "std": std, "interpolation": interpolation, "resize_mode": resize_mode}
    check_preprocess_cfg(cfg, name)
    graph = OnnxGraph(Path(file).expanduser(), output)
    layout = _resolve_onnx_encoder_layout(layout, graph)
    sides = [graph.shape[layout.index("h")], graph.shape[layout.index("w")]]
    preprocess = ImagePreprocessor(
        {**cfg, "size": _resolve_onnx_encoder_image_size(size, sides, graph)}
    )
    return OnnxEncoder(graph, name=name, layout=layout, preprocess=preprocess)


def load_saved_onnx_encoder(folder: Path, manifest: dict[str, Any], device: str) -> OnnxEncoder:
    """Load an ONNX encoder from a folder that was written by ``save``.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of the manifest, with the keys ``onnx`` and ``settings``.
        device: Device of the encoder, ``cpu`` only.

    Raises:
        DataError: If the manifest is invalid, or the ONNX file is missing or damaged.
        ConfigError: If a setting in the manifest is invalid, or the device is not the CPU.
        MissingPart: If onnx or onnxruntime is not installed.
    """
    file = manifest["onnx"]
    if not isinstance(file, str) or Path(file).name != file:
        raise DataError(
            f'The key "onnx" of the manifest in {folder} must be the name of an ONNX file; '
            f"got {file!r}. Save the encoder again."
        )
    settings = encoder_manifest_settings(onnx_encoder, manifest, folder)
    encoder = onnx_encoder(str(folder / GRAPH_FOLDER / file), device, **settings)
    encoder.name = str(manifest.get("name", encoder.name))
    return encoder


def _onnx_encoder_fingerprint(graph: OnnxGraph, settings: dict[str, Any]) -> str:
    """Return a hash of the graph files and the settings, with 16 hexadecimal digits."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file in graph.files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]


def _resolve_onnx_encoder_layout(stated: str, graph: OnnxGraph) -> str:
    """Return the stated layout, or, if the layout is empty, the only layout with three channels.

    Raises:
        ConfigError: If the graph input cannot have three channels in the stated layout, or if no
            layout is stated and the graph input does not determine the layout.
        DataError: If neither the first nor the last axis of an image can have three channels.
    """
    if stated not in ("", *LAYOUTS):
        raise ConfigError(f"layout must be {' or '.join(LAYOUTS)}; got {stated!r}.")
    channels = {layout: graph.shape[layout.index("c")] for layout in LAYOUTS}
    possible = [layout for layout, count in channels.items() if count in (3, None)]
    certain = [layout for layout, count in channels.items() if count == 3]
    if stated in possible:
        return stated
    if not stated and len(certain) == 1:
        return certain[0]
    if not possible:
        raise DataError(
            f"The input of {graph.file} must have three channels (RGB) in the layout "
            f"{' or '.join(LAYOUTS)}; got the shape {graph.shape}. Export only the image encoder."
        )
    raise ConfigError(
        f"layout must match the input shape {graph.shape} of {graph.file}, with three channels; "
        f"got {stated!r}. Set encoder.layout={' or '.join(possible)}."
    )


def _resolve_onnx_encoder_image_size(
    stated: Any, sides: list[int | None], graph: OnnxGraph
) -> list[int]:
    """Return the stated height and width, or, if None, the height and width of the graph input."""
    wanted = list(stated) if isinstance(stated, list | tuple) else [stated, stated]
    resolved = [w if w is not None else s for w, s in zip(wanted, sides, strict=False)]
    is_valid = all(type(side) is int and 1 <= side <= MAX_SIDE for side in resolved)
    fits_graph = all(s in (None, r) for s, r in zip(sides, resolved, strict=False))
    if len(wanted) != 2 or not is_valid or not fits_graph:
        raise ConfigError(
            f"size must be the side or [height, width], 1 to {MAX_SIDE} pixels, and match the "
            f"input size {sides} of {graph.file} (None: any size); got {stated!r}. Set "
            "encoder.size, such as encoder.size=224."
        )
    return [int(side) for side in resolved if side is not None]
