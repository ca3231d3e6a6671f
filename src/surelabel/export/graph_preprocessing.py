"""Preprocess images in a graph: resize as Pillow does, crop or pad, and normalize."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from surelabel.encoders.image_inputs.preprocessing import MAX_ASPECT_RATIO, ImagePreprocessor
from surelabel.views import TileLayout

WHITE = 255.0  # largest pixel value


class _Axis(NamedTuple):
    """Resampling of one axis of an image; all sizes are scalar tensors, int64.

    Attributes:
        length: Number of pixels of the image.
        start: First pixel of the part that is resized.
        end: Pixel after the last pixel of this part.
        resized: Number of pixels of this part after resizing.
        offset: First pixel of the output within the resized part. If it is negative, the output
            begins with padding.
        size: Number of pixels of the output.
    """

    length: Any  # a number of pixels that is unknown during tracing
    start: Tensor
    end: Tensor
    resized: Tensor
    offset: Tensor
    size: int


class GraphPreprocessor(nn.Module):
    """Image preprocessing as a graph, for images of any size; all images of a batch have one size.

    The image is resized with two matrix products, first along the rows and then along the columns.
    The weights are computed from the sizes, with the antialiased filters of Pillow. As in Pillow,
    pixels are rounded and clipped to [0, 255] after each product.

    Args:
        preprocess: Preprocessing of the encoder.
        layouts: Layouts of tiles. If there are layouts, the first view is the whole image, and the
            tiles of each layout follow.

    Differs:
        Pillow computes the products with integer weights of 22 bits, and this module with float32.
        Therefore, a pixel can differ by one level. If an image is cropped before resizing, because
        a side is more than 8 times as long as the other one, the crop can differ by one pixel.

    Example:
        >>> settings = {"size": 8, "mean": [0.5] * 3, "std": [0.25] * 3,
        ...             "interpolation": "bicubic", "resize_mode": "squash"}
        >>> images = torch.full((1, 20, 30, 3), 255, dtype=torch.uint8)
        >>> GraphPreprocessor(ImagePreprocessor(settings))(images)[0, :, 0, 0]
        tensor([2., 2., 2.])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, preprocess: ImagePreprocessor, layouts: Sequence[TileLayout] = ()):
        super().__init__()
        settings = preprocess.settings
        self.size: tuple[int, int] = tuple(settings["size"])
        self.layouts = tuple(layouts)
        self._mode = settings["resize_mode"]
        self._fill = float(settings["fill_color"] or 0)
        height, width = self.size
        # open_clip ignores the interpolation if the shorter side of another shape is resized
        is_bilinear = settings["interpolation"] == "bilinear"
        self._is_bicubic = not is_bilinear or (self._mode == "shortest" and height != width)
        for key in ("mean", "std"):
            values = torch.tensor(settings[key], dtype=torch.float32)
            self.register_buffer(key, values[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return normalized pixels ``(n, 3, down, across)``, or ``(n, t, 3, down, across)``.

        Args:
            images: Upright RGB images, uint8, ``(n, h, w, 3)``.
        """
        return self.normalize(self.resize(images))

    def resize(self, images: Tensor) -> Tensor:
        """Return resized pixels, float32 in [0, 255], in the shape of :meth:`forward`."""
        pixels = images.permute(0, 3, 1, 2).float()
        down, across = self._whole_image(images.shape[1], images.shape[2])
        whole = self._resample(pixels, [down], [across], is_bicubic=self._is_bicubic)[0]
        if not self.layouts:
            return whole
        views = [whole]
        for layout in self.layouts:
            rows = self._tile_axes(images.shape[1], layout.rows, self.size[0])
            columns = self._tile_axes(images.shape[2], layout.columns, self.size[1])
            views += self._resample(pixels, rows, columns, is_bicubic=True)
        return torch.stack(views, dim=1)

    def normalize(self, pixels: Tensor) -> Tensor:
        """Return normalized pixels of resized images, in the same shape."""
        return (pixels / WHITE - self.mean) / self.std

    def _whole_image(self, height: Any, width: Any) -> tuple[_Axis, _Axis]:
        """Return the resampling of the rows and of the columns of the whole image."""
        down, across = self.size
        h, w = _scalar(height), _scalar(width)
        zero = torch.zeros_like(h)
        if self._mode == "squash":
            sizes = (torch.full_like(h, down), torch.full_like(w, across))
            return (
                _Axis(height, zero, h, sizes[0], zero, down),
                _Axis(width, zero, w, sizes[1], zero, across),
            )
        if self._mode == "shortest":
            max_h, max_w = (
                _ceil_divide(MAX_ASPECT_RATIO * down * w, across),
                _ceil_divide(MAX_ASPECT_RATIO * across * h, down),
            )
        else:
            max_h, max_w = 2 * down * w - 2, 2 * across * h - 2
        top, left = ((side - limit).clamp(min=0) // 2 for side, limit in ((h, max_h), (w, max_w)))
        h, w = h - 2 * top, w - 2 * left
        # h / down is at most w / across: the rows need less reduction than the columns
        is_wide = h * across <= w * down
        rows_decide = is_wide if self._mode == "shortest" else is_wide.logical_not()
        divide = _floor_divide if down == across and self._mode == "shortest" else _round_divide
        rows = torch.where(rows_decide, torch.full_like(h, down), divide(h * across, w))
        columns = torch.where(rows_decide, divide(w * down, h), torch.full_like(w, across))
        return (
            _Axis(height, top, top + h, rows, _center_offset(rows, down), down),
            _Axis(width, left, left + w, columns, _center_offset(columns, across), across),
        )

    def _tile_axes(self, length: Any, n_parts: int, size: int) -> list[_Axis]:
        """Return the resampling of each row or column of tiles."""
        side = _scalar(length)
        n_tiles = side.clamp(max=n_parts)  # tiles are repeated if there are fewer pixels
        zero, full = torch.zeros_like(side), torch.full_like(side, size)
        axes = []
        for index in range(n_parts):
            tile = index * n_tiles // n_parts
            start, end = (_round_divide(edge * side, n_tiles) for edge in (tile, tile + 1))
            axes.append(_Axis(length, start, end, full, zero, size))
        return axes

    def _resample(
        self, pixels: Tensor, rows: Sequence[_Axis], columns: Sequence[_Axis], *, is_bicubic: bool
    ) -> list[Tensor]:
        """Return the resized part of the image for each row and each column of parts."""
        across = [_resampling_weights(axis, is_bicubic=is_bicubic) for axis in columns]
        down = [_resampling_weights(axis, is_bicubic=is_bicubic) for axis in rows]
        narrow = [_to_levels(pixels @ weights.transpose(0, 1)) for weights, _ in across]
        parts = []
        for weights, is_row in down:
            for column, (_, is_column) in zip(narrow, across, strict=True):
                part = _to_levels(weights @ column)
                if self._mode == "longest":
                    is_inside = is_row[:, None] & is_column
                    part = torch.where(is_inside, part, torch.full_like(part, self._fill))
                parts.append(part)
        return parts


def _resampling_weights(axis: _Axis, *, is_bicubic: bool) -> tuple[Tensor, Tensor]:
    """Return the weights ``(size, length)`` of an axis, and the pixels that are no padding.

    The centre of an output pixel is computed as an integer and a fraction, so that float32 is
    accurate for long images.
    """
    outputs = torch.arange(axis.size) + axis.offset
    inputs = torch.arange(axis.length)
    part = axis.end - axis.start
    numerator, denominator = (2 * outputs + 1) * part, 2 * axis.resized
    whole = numerator.div(denominator, rounding_mode="floor")
    fraction = (numerator - whole * denominator).float() / denominator.float()
    distance = (inputs - axis.start - whole[:, None]).float() + (0.5 - fraction)[:, None]
    distance = distance / (part.float() / axis.resized.float()).clamp(min=1.0)
    weights = _bicubic(distance) if is_bicubic else (1 - distance.abs()).clamp(min=0.0)
    is_in_part = (inputs >= axis.start) & (inputs < axis.end)
    weights = torch.where(is_in_part, weights, torch.zeros_like(weights))
    total = weights.sum(dim=1, keepdim=True)
    is_inside = (outputs >= 0) & (outputs < axis.resized)
    weights = weights / torch.where(is_inside[:, None], total, torch.ones_like(total))
    return weights, is_inside


def _bicubic(distance: Tensor) -> Tensor:
    """Return the bicubic filter of Pillow (a = -0.5) at each distance in pixels."""
    x = distance.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = -0.5 * (((x - 5) * x + 8) * x - 4)
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _to_levels(pixels: Tensor) -> Tensor:
    """Round pixels to whole levels, and clip them to [0, 255]."""
    return (pixels + 0.5).floor().clamp(0.0, WHITE)


def _scalar(length: Any) -> Tensor:
    """Return a number of pixels, which is unknown during tracing, as a scalar tensor, int64."""
    return torch.scalar_tensor(length, dtype=torch.int64)


def _floor_divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    return numerator.div(denominator, rounding_mode="floor")


def _ceil_divide(numerator: Tensor, denominator: int) -> Tensor:
    return (numerator + denominator - 1).div(denominator, rounding_mode="floor")


def _round_divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return the nearest integer of a ratio >= 0; halves are rounded to even integers."""
    double = 2 * numerator + denominator
    nearest = double.div(2 * denominator, rounding_mode="floor")
    is_half = nearest * 2 * denominator == double
    return nearest - (is_half & (nearest % 2 == 1)).long()


def _center_offset(resized: Tensor, size: int) -> Tensor:
    """Return the first pixel of a center crop; if the image is padded, the offset is negative."""
    crop = _round_divide((resized - size).clamp(min=0), torch.full_like(resized, 2))
    padding = (size - resized).clamp(min=0) // 2
    return crop - padding
