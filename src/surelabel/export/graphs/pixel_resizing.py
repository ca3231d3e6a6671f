"""Resize preprocessed pixels in a graph, with the bicubic interpolation of Pillow."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

Size = tuple[int, int]


class PixelResizing(nn.Module):
    """Resize images by two matrix products, with bicubic interpolation and antialiasing.

    The matrices contain the weights of Pillow. Each runtime therefore computes the same result.
    Pillow also rounds resized pixels to whole numbers from 0 to 255, but this module does not.

    Args:
        size: Height and width of the images, in pixels.
        new_size: Height and width of the resized images, in pixels.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, size: Size, new_size: Size):
        super().__init__()
        self.is_identity = size == new_size
        self.register_buffer("rows", bicubic_weights(size[0], new_size[0]))
        self.register_buffer("columns", bicubic_weights(size[1], new_size[1]).T.contiguous())

    def forward(self, pixels: Tensor) -> Tensor:
        """Return resized images ``(n, 3, h', w')`` of images ``(n, 3, h, w)``."""
        return pixels if self.is_identity else self.rows @ pixels @ self.columns


def bicubic_weights(length: int, new_length: int) -> Tensor:
    """Return the weight of each pixel in each resized pixel along one axis, ``(m, k)``.

    Args:
        length: Number k of pixels.
        new_length: Number m of resized pixels.

    Example:
        >>> bicubic_weights(4, 2).sum(1)
        tensor([1., 1.])
    """
    one_pixel_each = Image.fromarray(np.eye(length, dtype=np.float32))
    resized = one_pixel_each.resize((new_length, length), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(resized).T.copy())
