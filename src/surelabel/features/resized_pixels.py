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

ResizedPixels = npt.NDArray[np.generic]  # uint8 or float32


def resize_for_encoder(encoder: Encoder, image: Image.Image) -> ResizedPixels:
    """Return the pixels of an image for :func:`normalize_resized`.

    Args:
        encoder: Image encoder.
        image: Upright RGB image.

    Returns:
        Resized pixels of type uint8, ``(h, w, 3)``. If the preprocessing of the encoder is not an
        :class:`ImagePreprocessor`, the output of ``encoder.preprocess``, ``(3, h, w)``.
    """
    if isinstance(encoder.preprocess, ImagePreprocessor):
        return encoder.preprocess.resize(image)
    pixels: npt.NDArray[np.float32] = encoder.preprocess(image).numpy()
    return pixels


def normalize_resized(encoder: Encoder, pixels: ResizedPixels) -> Tensor:
    """Return the input of the encoder for images that :func:`resize_for_encoder` resized.

    The result is equal to the output of ``encoder.preprocess`` for each image.

    Args:
        encoder: Image encoder.
        pixels: Resized pixels of n images, ``(n, h, w, 3)`` or ``(n, 3, h, w)``.

    Returns:
        Normalized pixels, ``(n, 3, h, w)``.
    """
    if isinstance(encoder.preprocess, ImagePreprocessor):
        return encoder.preprocess.normalize(pixels)
    return torch.from_numpy(pixels)
