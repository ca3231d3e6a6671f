"""Any image encoder in an ONNX file. It knows pictures only."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.backbones.kept import kept_settings, write_about
from surelabel.backbones.onnx_graph import Graph
from surelabel.backbones.pictures_only import PicturesOnly
from surelabel.backbones.preparation import LARGEST_SIDE, Preparation, check_complete
from surelabel.errors import ConfigError, DataError
from surelabel.files import new_folder
from surelabel.records import Features

LAYOUTS = ("nchw", "nhwc")
KEPT_IN = "onnx"  # the folder of a saved encoder that holds its files


class OnnxEncoder(PicturesOnly):
    """A frozen image encoder that onnxruntime runs.

    Args:
        graph: From pictures to vectors.
        name: As it was asked for.
        layout: ``nchw`` or ``nhwc``.
        prepare: From a picture to ``(3, h, w)``.
    """

    def __init__(self, graph: Graph, *, name: str, layout: str, prepare: Preparation):
        super().__init__(name, prepare)
        self.graph, self.layout = graph, layout
        self.fingerprint = _fingerprint(graph, self.settings)
        self.width = self._seen(torch.zeros(1, 3, *self.preprocess["size"])).shape[1]

    @property
    def settings(self) -> dict[str, Any]:
        """All settings as they came out, with which the file loads again as the same encoder."""
        prepared = {k: v for k, v in self.preprocess.items() if k != "fill_color"}
        return {"output": self.graph.output, "layout": self.layout, **prepared}

    def images(self, pixels: Tensor) -> Features:
        """``pooled`` unit vectors of prepared pictures ``(n, 3, h, w)``; nothing else.

        Raises:
            DataError: the graph gives no finite vectors.
        """
        return Features(pooled=F.normalize(self._seen(self.prepare.checked(pixels)), dim=-1))

    def save(self, folder: Path) -> None:
        """Write the graph with its weights and all settings; ``local-dir:`` loads it again.

        Raises:
            DataError: the folder cannot be written.
        """
        with new_folder(folder) as new:
            for file in self.graph.files:
                copy = new / KEPT_IN / file.relative_to(self.graph.file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            about = {"name": self.name, "settings": self.settings}
            write_about(new, "onnx", self.graph.file.name, self.fingerprint, **about)

    def _seen(self, pixels: Tensor) -> Tensor:
        fed = pixels if self.layout == "nchw" else pixels.permute(0, 2, 3, 1)
        return torch.from_numpy(self.graph(fed.detach().cpu().contiguous().numpy()))


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
    """An ONNX file as an encoder of pictures.

    Args:
        file: Its path. It takes RGB pictures and gives a vector a picture.
        device: Where it runs; onnxruntime runs it on the CPU.
        output: Name of the output with those vectors.
        layout: ``nchw`` or ``nhwc``; empty reads it from the graph.
        size: Of the pictures in pixels: a side, or down and across; None reads it from the graph.
        mean: Of red, green and blue in [0, 1], subtracted first. The default makes [-1, 1].
        std: What the rest is divided by. A graph that wants ``scale · v + offset`` of bytes v has
            std = 1 / (255 · scale) and mean = -offset · std.
        interpolation: ``bicubic`` or ``bilinear``.
        resize_mode: ``shortest`` (its middle is seen), ``longest`` (with margins) or ``squash``.

    Raises:
        DataError: the file is missing, damaged, or no encoder of pictures.
        ConfigError: a setting does not fit the graph, or another device is asked for.
        MissingPart: onnx or onnxruntime is not installed.
    """
    if torch.device(device).type != "cpu":
        raise ConfigError(f"ONNX files run on the CPU here. Got device {device!r}; take cpu.")
    name = f"onnx:{file}"
    prepared = {"mean": mean, "std": std, "interpolation": interpolation}
    prepared |= {"resize_mode": resize_mode}
    check_complete(prepared, name)
    graph = Graph(Path(file).expanduser(), output)
    layout = _layout(layout, graph)
    sides = [graph.shape[layout.index("h")], graph.shape[layout.index("w")]]
    prepare = Preparation({**prepared, "size": _size(size, sides, graph)})
    return OnnxEncoder(graph, name=name, layout=layout, prepare=prepare)


def saved_onnx(folder: Path, about: dict[str, Any], device: str) -> OnnxEncoder:
    """The encoder that ``save`` wrote into a folder.

    Raises:
        DataError: its file is not named, or missing or damaged.
    """
    file = about["onnx"]
    if not isinstance(file, str) or Path(file).name != file:
        raise DataError(f"{folder} must name its ONNX file. Got {file!r}; save it again.")
    settings = kept_settings(onnx_encoder, about, folder)
    made = onnx_encoder(str(folder / KEPT_IN / file), device, **settings)
    made.name = str(about.get("name", made.name))
    return made


def _fingerprint(graph: Graph, settings: dict[str, Any]) -> str:
    """Changes with a byte of the files, the output, and how pictures are prepared."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file in graph.files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]


def _layout(stated: str, graph: Graph) -> str:
    """The axes of the input, where three colours can stand in one place only."""
    if stated not in ("", *LAYOUTS):
        raise ConfigError(f"layout must be {' or '.join(LAYOUTS)}. Got {stated!r}.")
    colours = {layout: graph.shape[layout.index("c")] for layout in LAYOUTS}
    possible = [layout for layout, count in colours.items() if count in (3, None)]
    certain = [layout for layout, count in colours.items() if count == 3]
    if stated in possible:
        return stated
    if not stated and len(certain) == 1:
        return certain[0]
    if not possible:
        raise DataError(
            f"{graph.file} must take RGB pictures: three colours first or last. "
            f"It takes {graph.shape}."
        )
    raise ConfigError(
        f"{graph.file} takes {graph.shape}: state where the colours are, backbone.layout="
        f"{' or '.join(possible)}."
    )


def _size(stated: Any, sides: list[int | None], graph: Graph) -> list[int]:
    """Down and across, as stated or as the graph has them."""
    wanted = list(stated) if isinstance(stated, list | tuple) else [stated, stated]
    found = [w if w is not None else s for w, s in zip(wanted, sides, strict=False)]
    right = all(type(side) is int and 1 <= side <= LARGEST_SIDE for side in found)
    fits = all(s in (None, f) for s, f in zip(sides, found, strict=False))
    if len(wanted) != 2 or not right or not fits:
        raise ConfigError(
            "size must be the side of the pictures in pixels, or down and across, and "
            f"{graph.file} takes {sides} (None: any). Got {stated!r}; set backbone.size, such as "
            "224."
        )
    return [int(side) for side in found if side is not None]
