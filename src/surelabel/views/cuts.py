"""What to look at again: which parts of a picture are cut out and encoded on their own."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from surelabel.errors import InputError
from surelabel.views.boxes import Box
from surelabel.views.crops import random_crops
from surelabel.views.tiles import tiles

NARROWEST = 3 / 4  # width over height of a random crop, at least


class Cut(Protocol):
    """Parts of a picture, fixed by its content.

    Attributes:
        name: Keys the cache: the same name and the same picture give the same boxes.
        finest: Least side of a part, as a share of the picture's shorter side, in (0, 1]; so much
            finer the picture has to be decoded for its parts to be seen as sharply as a whole one.
    """

    @property
    def name(self) -> str: ...

    @property
    def finest(self) -> float: ...

    def boxes(self, size: tuple[int, int], content: str) -> list[Box]:
        """One box or more, in pixels of a picture of this width and height.

        ``content`` stands for what the picture shows: the hash of its file, or of its pixels.
        """


@dataclass(frozen=True)
class Tiles:
    """A regular grid; see :func:`tiles`.

    Attributes:
        down: Tiles in a column, at least 1.
        across: Tiles in a row, at least 1.

    Raises:
        InputError: a number is below 1.

    Example:
        >>> [(box.left, box.top) for box in Tiles(2, 2).boxes((10, 6), "any picture")]
        [(0, 0), (5, 0), (0, 3), (5, 3)]
    """

    down: int = 3
    across: int = 3

    def __post_init__(self) -> None:
        if min(self.down, self.across) < 1:
            raise InputError(f"Tiles must be 1 or more down and across. Got {self}.")

    @property
    def name(self) -> str:
        """Both numbers."""
        return f"tiles {self.down} by {self.across}"

    @property
    def finest(self) -> float:
        """Share of the shorter side."""
        return 1 / max(self.down, self.across)

    def boxes(self, size: tuple[int, int], content: str) -> list[Box]:
        """Row by row; in a picture with fewer pixels than tiles, several tiles are one pixel."""
        down, across = min(self.down, size[1]), min(self.across, size[0])
        found = tiles(size, down=down, across=across)
        rows = [i * down // self.down for i in range(self.down)]
        columns = [j * across // self.across for j in range(self.across)]
        return [found[row * across + column] for row in rows for column in columns]


@dataclass(frozen=True)
class Crops:
    """Random crops, the same whenever the same picture is asked; see :func:`random_crops`.

    Each crop has a number of its own that fixes it, so crops 5 to 9 go on where 0 to 4 ended.

    Attributes:
        count: How many, at least 1.
        first: Number of the first one, at least 0.
        seed: Other seeds draw other crops.
        area: Least and greatest part of the picture that a crop covers, in (0, 1].

    Raises:
        InputError: a number is out of its range.

    Example:
        >>> early, late = Crops(count=2), Crops(count=1, first=1)
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
                f"Crops must be 1 or more, the first numbered 0 or more. Got count={self.count}, "
                f"first={self.first}."
            )
        if not isinstance(self.area, Sequence) or len(self.area) != 2:
            raise InputError(
                f"area must be two parts in (0, 1], the lesser first. Got {self.area!r}."
            )
        object.__setattr__(self, "area", tuple(self.area))
        random_crops((1, 1), 0, generator=torch.Generator(), area=self.area)  # refuses bad areas

    @property
    def name(self) -> str:
        """All numbers."""
        least, greatest = self.area
        last = self.first + self.count - 1
        return f"crops {self.first} to {last}, seed {self.seed}, area {least} to {greatest}"

    @property
    def finest(self) -> float:
        """Share of the shorter side that the smallest and narrowest crop has."""
        return math.sqrt(self.area[0] * NARROWEST)

    def boxes(self, size: tuple[int, int], content: str) -> list[Box]:
        """One box for each number."""
        return [
            random_crops(size, 1, generator=self._generator(content, number), area=self.area)[0]
            for number in range(self.first, self.first + self.count)
        ]

    def _generator(self, content: str, number: int) -> torch.Generator:
        text = f"{content} {self.seed} {number}".encode()
        digest = hashlib.blake2b(text, digest_size=7).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest))


@dataclass(frozen=True)
class Regions:
    """Parts that somebody chose.

    Attributes:
        parts: Left, top, right and bottom of each, as shares of width and height, in [0, 1].

    Raises:
        InputError: there is none, or one is empty or reaches out of the picture.

    Example:
        >>> Regions([(0.5, 0, 1, 1)]).boxes((10, 6), "any picture")
        [Box(left=5, top=0, width=5, height=6, flipped=False)]
    """

    parts: Sequence[tuple[float, float, float, float]]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("Regions must be one part or more; None stands for no parts at all.")
        parts = tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in self.parts)
        for left, top, right, bottom in parts:
            if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
                raise InputError(
                    "A region must be left, top, right and bottom as shares in [0, 1], the lesser "
                    f"first. Got {(left, top, right, bottom)}."
                )
        object.__setattr__(self, "parts", parts)

    @property
    def name(self) -> str:
        """A hash of all parts."""
        digest = hashlib.blake2b(repr(self.parts).encode(), digest_size=16).hexdigest()
        return f"regions {digest}"

    @property
    def finest(self) -> float:
        """The least width or height."""
        return min(min(right - left, bottom - top) for left, top, right, bottom in self.parts)

    def boxes(self, size: tuple[int, int], content: str) -> list[Box]:
        """The nearest whole pixels, at least one."""
        found = []
        for left, top, right, bottom in self.parts:
            x, width = _pixels(left, right, size[0])
            y, height = _pixels(top, bottom, size[1])
            found.append(Box(x, y, width, height))
        return found


def _pixels(low: float, high: float, length: int) -> tuple[int, int]:
    """The first pixel, and how many there are."""
    first = min(round(low * length), length - 1)
    return first, max(round(high * length) - first, 1)
