"""Define view layouts, which select the parts of an image to crop and encode separately."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from surelabel.errors import InputError
from surelabel.views.boxes import Box
from surelabel.views.crops import random_crop_boxes
from surelabel.views.tile_grid import tile_grid_boxes

MIN_ASPECT = 3 / 4  # smallest width divided by height of a random crop


class ViewLayout(Protocol):
    """Define the interface of a rule that selects the views of an image.

    Attributes:
        name: Part of the key in the feature cache. Layouts with equal names return equal boxes for
            equal images.
        min_side_share: Smallest side of a view as a fraction of the shorter side of the image, in
            (0, 1]. The image is decoded at a resolution at which a view of this size is not
            enlarged before it is encoded.
    """

    @property
    def name(self) -> str: ...

    @property
    def min_side_share(self) -> float: ...

    def boxes(self, size: tuple[int, int], image_hash: str) -> list[Box]:
        """Return one or more boxes in pixels, for an image of the given width and height.

        ``image_hash`` is the hash of the image file or of its pixels.
        """


@dataclass(frozen=True)
class TileLayout:
    """Select the tiles of a regular grid; see :func:`tile_grid_boxes`.

    Attributes:
        rows: Number of tile rows, at least 1.
        columns: Number of tile columns, at least 1.

    Raises:
        InputError: If ``rows`` or ``columns`` is below 1.

    Example:
        >>> [(box.left, box.top) for box in TileLayout(2, 2).boxes((10, 6), "any image")]
        [(0, 0), (5, 0), (0, 3), (5, 3)]
    """

    rows: int = 3
    columns: int = 3

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1:
            raise InputError(
                f"rows and columns must be 1 or more; got {self.rows} and {self.columns}."
            )

    @property
    def name(self) -> str:
        """Return a part of the cache key that contains the numbers of rows and columns."""
        return f"tiles {self.rows} by {self.columns}"

    @property
    def min_side_share(self) -> float:
        """Return the minimum side of a tile as a fraction of the shorter side of the image."""
        return 1 / max(self.rows, self.columns)

    def boxes(self, size: tuple[int, int], image_hash: str) -> list[Box]:
        """Return the tiles row by row; tiles are repeated if a side has fewer pixels than tiles."""
        n_rows, n_columns = min(self.rows, size[1]), min(self.columns, size[0])
        tiles = tile_grid_boxes(size, rows=n_rows, columns=n_columns)
        rows = [i * n_rows // self.rows for i in range(self.rows)]
        columns = [j * n_columns // self.columns for j in range(self.columns)]
        return [tiles[row * n_columns + column] for row in rows for column in columns]


@dataclass(frozen=True)
class CropLayout:
    """Select random crops, with equal boxes for equal images; see :func:`random_crop_boxes`.

    Each box depends only on the image, ``seed``, ``area`` and the index of the crop, so that crops
    5 to 9 can be added to crops 0 to 4.

    Attributes:
        count: Number of crops, at least 1.
        first: Index of the first crop, at least 0.
        seed: Seed of the random numbers.
        area: Smallest and largest fraction of the image area that a crop covers, in (0, 1].

    Raises:
        InputError: If a setting is out of range.

    Example:
        >>> early, late = CropLayout(count=2), CropLayout(count=1, first=1)
        >>> early.boxes((90, 60), "ab")[1:] == late.boxes((90, 60), "ab")
        True
    """

    count: int = 5
    first: int = 0
    seed: int = 0
    area: tuple[float, float] = (0.1, 0.2)

    def __post_init__(self) -> None:
        if self.count < 1 or self.first < 0:
            raise InputError(
                f"count must be 1 or more and first 0 or more; got count={self.count}, "
                f"first={self.first}."
            )
        if not isinstance(self.area, Sequence) or len(self.area) != 2:
            raise InputError(
                f"area must be two fractions in (0, 1], the smaller first; got {self.area!r}."
            )
        object.__setattr__(self, "area", tuple(self.area))
        random_crop_boxes((1, 1), 0, generator=torch.Generator(), area=self.area)  # checks area

    @property
    def name(self) -> str:
        """Return a part of the cache key that contains all settings."""
        min_area, max_area = self.area
        last = self.first + self.count - 1
        return f"crops {self.first} to {last}, seed {self.seed}, area {min_area} to {max_area}"

    @property
    def min_side_share(self) -> float:
        """Return the minimum side of a crop as a fraction of the shorter side of the image."""
        return math.sqrt(self.area[0] * MIN_ASPECT)

    def boxes(self, size: tuple[int, int], image_hash: str) -> list[Box]:
        """Return one box for each crop."""
        return [
            random_crop_boxes(
                size, 1, generator=self._generator(image_hash, number), area=self.area
            )[0]
            for number in range(self.first, self.first + self.count)
        ]

    def _generator(self, image_hash: str, number: int) -> torch.Generator:
        text = f"{image_hash} {self.seed} {number}".encode()
        digest = hashlib.blake2b(text, digest_size=7).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest))


@dataclass(frozen=True)
class RegionLayout:
    """Select given regions, measured as fractions of the width and height of the image.

    Attributes:
        regions: Left, top, right and bottom edge of each region, in [0, 1].

    Raises:
        InputError: If there is no region, or a region is empty or extends beyond the image.

    Example:
        >>> RegionLayout([(0.5, 0, 1, 1)]).boxes((10, 6), "any image")
        [Box(left=5, top=0, width=5, height=6, flipped=False)]
    """

    regions: Sequence[tuple[float, float, float, float]]

    def __post_init__(self) -> None:
        if not self.regions:
            raise InputError(
                "regions must contain at least one region; got none. For an image without views, "
                "use None instead of a layout."
            )
        regions = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in self.regions)
        for left, top, right, bottom in regions:
            if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
                raise InputError(
                    "A region must be (left, top, right, bottom) in [0, 1], with left < right and "
                    f"top < bottom; got {(left, top, right, bottom)}."
                )
        object.__setattr__(self, "regions", regions)

    @property
    def name(self) -> str:
        """Return a part of the cache key that contains a hash of all regions."""
        digest = hashlib.blake2b(repr(self.regions).encode(), digest_size=16).hexdigest()
        return f"regions {digest}"

    @property
    def min_side_share(self) -> float:
        """Return the smallest width or height of a region, in the unit of ``regions``."""
        return min(min(right - left, bottom - top) for left, top, right, bottom in self.regions)

    def boxes(self, size: tuple[int, int], image_hash: str) -> list[Box]:
        """Return the regions rounded to whole pixels, at least one pixel wide and high."""
        boxes = []
        for left, top, right, bottom in self.regions:
            x, width = _layout_interval_to_pixels(left, right, size[0])
            y, height = _layout_interval_to_pixels(top, bottom, size[1])
            boxes.append(Box(x, y, width, height))
        return boxes


def _layout_interval_to_pixels(low: float, high: float, length: int) -> tuple[int, int]:
    """Return the first pixel of an interval, and its number of pixels."""
    first = min(round(low * length), length - 1)
    return first, max(round(high * length) - first, 1)
