"""Steps from picture files, decoded and varied anew in each pass."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from surelabel.data import open_picture
from surelabel.records import Features
from surelabel.training.batch import Batch, check_known

SQUAREST = 3 / 4  # least ratio of the sides of a part, as its proportions vary


@dataclass(frozen=True)
class Variation:
    """How a picture is varied between passes.

    Attributes:
        least_area: Least share of the picture that is kept, in (0, 1]; 1 keeps all of it.
        mirrored: Whether every second one is mirrored.
    """

    least_area: float = 0.6
    mirrored: bool = True

    def __call__(self, picture: Image.Image, seed: int) -> Image.Image:
        """A part of ``picture``, perhaps mirrored; the same for the same seed."""
        random = np.random.default_rng(seed)
        across, down = picture.size
        area = random.uniform(self.least_area, 1) * across * down
        ratio = math.exp(random.uniform(math.log(SQUAREST), -math.log(SQUAREST)))
        wide = min(across, max(1, round(math.sqrt(area * ratio * across / down))))
        high = min(down, max(1, round(area / wide)))
        left, top = int(random.integers(across - wide + 1)), int(random.integers(down - high + 1))
        if self.least_area < 1:
            picture = picture.crop((left, top, left + wide, top + high))
        if self.mirrored and random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return picture


class Pictures:
    """Labelled picture files, for methods that train the network that looks at pixels.

    Args:
        paths: ``n`` files that can be read.
        targets: In [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        prepare: From an upright picture to pixels, ``(3, h, w)``.
        least_side: Pictures may be decoded smaller, down to this many pixels.
        size: Pictures a batch.
        variation: How they are varied.
        workers: Decoding processes; one a core when left out.
    """

    def __init__(
        self,
        paths: Sequence[str],
        targets: Tensor,
        known: Tensor,
        *,
        prepare: Callable[[Image.Image], Tensor],
        least_side: int,
        size: int,
        variation: Variation | None = None,
        workers: int | None = None,
    ):
        check_known(known)
        self._paths, self._targets, self._known, self._size = paths, targets, known, size
        self._prepare, self._side = prepare, least_side
        self._variation = variation or Variation()
        self._workers = min(8, os.cpu_count() or 1) if workers is None else workers

    def parameters(self) -> list[nn.Parameter]:
        """None: labels are given."""
        return []

    def batches(self, generator: torch.Generator, skip: int = 0) -> Iterator[Batch]:
        """One pass in random order without its first ``skip`` batches.

        Every picture is varied by a seed of its own.
        """
        order = torch.randperm(len(self._paths), generator=generator).tolist()
        seeds = torch.randint(2**62, (len(order),), generator=generator).tolist()
        pixels = _Pixels(self, list(zip(order, seeds, strict=True))[skip * self._size :])
        loader = DataLoader(
            pixels,
            batch_size=self._size,
            num_workers=self._workers,
            multiprocessing_context="fork" if self._workers else None,
            generator=torch.Generator(),  # its own, so that it takes no draws from anybody
        )
        for rows, batch in loader:
            # a batch of pixels has no vectors yet: the method makes them
            features = Features(pooled=batch.new_zeros(len(rows), 0), pixels=batch)
            yield Batch(features, self._targets[rows], self._known[rows])

    def __len__(self) -> int:
        return math.ceil(len(self._paths) / self._size)

    def pixels(self, row: int, seed: int) -> Tensor:
        """One picture, varied and prepared."""
        picture = open_picture(self._paths[row], least_side=self._side)
        return self._prepare(self._variation(picture, seed))


class _Pixels(Dataset[tuple[int, Tensor]]):
    def __init__(self, source: Pictures, drawn: list[tuple[int, int]]):
        self._source, self._drawn = source, drawn

    def __len__(self) -> int:
        return len(self._drawn)

    def __getitem__(self, place: int) -> tuple[int, Tensor]:
        row, seed = self._drawn[place]
        return row, self._source.pixels(row, seed)
