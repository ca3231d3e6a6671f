"""Resize images in decoding processes, and normalize whole batches before they are encoded.

Resized pixels of type uint8 take a quarter of the memory of normalized pixels of type float32.
"""

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.views import TileLayout, crop_and_resize_box

ResizedPixels = npt.NDArray[np.generic]  # uint8 or float32


def takes_raw_images(encoder: Encoder) -> bool:
    """Return whether an encoder preprocesses images itself, so that their sizes can differ.

    Images of different sizes cannot be in one batch.
    """
    return isinstance(encoder, ExportedModel) and encoder.takes_raw_images


def resize_for_encoder(encoder: Encoder, image: Image.Image) -> ResizedPixels:
    """Return the pixels of an image for :func:`normalize_resized`.

    Args:
        encoder: Image encoder.
        image: Upright RGB image.

    Returns:
        Resized pixels of type uint8, ``(h, w, 3)``. If the preprocessing of the encoder is not an
        :class:`ImagePreprocessor`, the output of ``encoder.preprocess``, ``(3, h, w)``. If the
        encoder is an exported recognizer of views, the views ``(t, h, w, 3)``, and if its graph
        preprocesses images, the image in its original size.
    """
    if isinstance(encoder, ExportedModel):
        return _pixels_for_exported_model(encoder, image)
    if isinstance(encoder.preprocess, ImagePreprocessor):
        return encoder.preprocess.resize(image)
    pixels: npt.NDArray[np.float32] = encoder.preprocess(image).numpy()
    return pixels


def normalize_resized(encoder: Encoder, pixels: ResizedPixels) -> Tensor:
    """Return the input of the encoder for images that :func:`resize_for_encoder` resized.

    The result is equal to the output of ``encoder.preprocess`` for each image or view.

    Args:
        encoder: Image encoder.
        pixels: Resized pixels of n images, ``(n, h, w, 3)`` or ``(n, 3, h, w)``, or of their views,
            ``(n, t, h, w, 3)``.

    Returns:
        Normalized pixels, ``(n, 3, h, w)``, or ``(n, t, 3, h, w)`` for views. If the graph of an
        exported recognizer preprocesses images, the pixels are returned unchanged.
    """
    if takes_raw_images(encoder) or not isinstance(encoder.preprocess, ImagePreprocessor):
        return torch.from_numpy(pixels)
    normalized = encoder.preprocess.normalize(pixels.reshape(-1, *pixels.shape[-3:]))
    return normalized.reshape(*pixels.shape[:-3], *normalized.shape[1:])


def _pixels_for_exported_model(encoder: ExportedModel, image: Image.Image) -> ResizedPixels:
    """Return the resized image or views, or the image in its original size."""
    if encoder.takes_raw_images:
        return np.array(image)
    preprocess = encoder.image_preprocessor
    if encoder.views is None:
        return preprocess.resize(image)
    whole_image, grids = encoder.views
    down, across = preprocess.settings["size"]
    parts = [image] if whole_image else []
    parts += [
        crop_and_resize_box(image, box, size=(across, down))
        for rows, columns in grids
        for box in TileLayout(rows, columns).boxes(image.size, "")
    ]
    return np.stack([preprocess.resize(part) for part in parts])
