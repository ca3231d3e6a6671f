"""Read the images of a check, with the preprocessing and the views of a recognizer."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from surelabel.data.images import open_image
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.errors import ConfigError
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.recognizer import Recognizer
from surelabel.views import TileLayout, crop_and_resize_box


@dataclass(frozen=True)
class ExportViews:
    """Preprocessing of the images of a recognizer, and its views.

    Attributes:
        preprocess: Preprocessing of whole images.
        layouts: Layouts of tiles, from coarse to fine. If there are layouts, the first view is the
            whole image.
    """

    preprocess: ImagePreprocessor
    layouts: tuple[TileLayout, ...]

    def pixels(self, path: str) -> Tensor:
        """Return the input of the graph for an image file, ``(3, h, w)`` or ``(t, 3, h, w)``.

        As for predictions, a JPEG is decoded at a lower resolution for the whole image than for
        tiles.

        Raises:
            DataError: If the image cannot be read.
        """
        whole = self.preprocess(open_image(path, min_side=self.preprocess.input_side))
        if not self.layouts:
            return whole
        views = [whole]
        for layout in self.layouts:
            image = open_image(path, min_side=self._min_side(layout))
            views += self._tiles(image, layout)
        return torch.stack(views)

    def pixels_of_image(self, image: Image.Image) -> Tensor:
        """Return the input of the graph for an upright RGB image."""
        whole = self.preprocess(image)
        tiles = [tile for layout in self.layouts for tile in self._tiles(image, layout)]
        return torch.stack([whole, *tiles]) if tiles else whole

    def open_image(self, path: str) -> Image.Image:
        """Read an image file at the resolution that its smallest view needs.

        Raises:
            DataError: If the image cannot be read.
        """
        sides = [self.preprocess.input_side, *map(self._min_side, self.layouts)]
        return open_image(path, min_side=max(sides))

    def _tiles(self, image: Image.Image, layout: TileLayout) -> list[Tensor]:
        height, width = self.preprocess.settings["size"]
        boxes = layout.boxes(image.size, "")
        return [
            self.preprocess(crop_and_resize_box(image, box, size=(width, height))) for box in boxes
        ]

    def _min_side(self, layout: TileLayout) -> int:
        return math.ceil(self.preprocess.input_side / layout.min_side_share)


def views_of_recognizer(recognizer: Recognizer, graph: RecognizerGraph) -> ExportViews:
    """Return the preprocessing and the tiles of the images of a recognizer.

    Args:
        recognizer: Recognizer.
        graph: Graph of the recognizer.

    Raises:
        ConfigError: If the encoder has another kind of preprocessing.
    """
    encoder = recognizer.encoder
    if not isinstance(encoder.preprocess, ImagePreprocessor):
        raise ConfigError(
            f"Only encoders with images of one size can be exported; {encoder.name} divides an "
            "image into a varying number of patches. Use another encoder."
        )
    grids = graph.views["grids"] if graph.views else []
    preprocess = ImagePreprocessor(graph.preprocess_cfg)
    return ExportViews(preprocess, tuple(TileLayout(**grid) for grid in grids))


def image_as_array(image: Image.Image) -> Tensor:
    """Return the pixels of an RGB image, uint8, ``(h, w, 3)``."""
    return torch.from_numpy(np.array(image))
