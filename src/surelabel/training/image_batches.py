"""Compute training batches of image files with random augmentation."""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor, nn

from surelabel.data import open_image
from surelabel.records import Features
from surelabel.training.batches import (
    WHOLE_BATCH,
    Batch,
    BatchPart,
    check_training_batch_targets,
    empty_training_batch,
)
from surelabel.training.seeded_loader import SeededLoader

ImageItem = tuple[int, npt.NDArray[np.float32]]  # row number, pixels

MIN_ASPECT_FACTOR = 3 / 4  # smallest ratio of the aspect ratios of crop and image


@dataclass(frozen=True)
class RandomCropFlip:
    """Random augmentation of an image by a resized crop and a horizontal flip.

    Attributes:
        min_area: Minimum area of the crop as a fraction of the image area, in (0, 1]. If 1, images
            are not cropped.
        flip: Whether the image is flipped horizontally with probability 1/2.
    """

    min_area: float = 0.6
    flip: bool = True

    def __call__(self, image: Image.Image, seed: int) -> Image.Image:
        """Return a random crop of an image, possibly flipped; equal seeds result in equal crops."""
        random = np.random.default_rng(seed)
        width, height = image.size
        area = random.uniform(self.min_area, 1) * width * height
        ratio = math.exp(random.uniform(math.log(MIN_ASPECT_FACTOR), -math.log(MIN_ASPECT_FACTOR)))
        crop_width = min(width, max(1, round(math.sqrt(area * ratio * width / height))))
        crop_height = min(height, max(1, round(area / crop_width)))
        left = int(random.integers(width - crop_width + 1))
        top = int(random.integers(height - crop_height + 1))
        if self.min_area < 1:
            edges = (left, top, left + crop_width, top + crop_height)
            # Image.crop raises an error if Pillow's global limit of pixels is exceeded
            image = image.transform((crop_width, crop_height), Image.Transform.EXTENT, edges)
        if self.flip and random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return image


class ImageBatches:
    """Batch source of labelled image files, for methods that train an image encoder.

    Args:
        paths: Paths of the image files, length n.
        targets: Targets in [0, 1], ``(n, c)``, for c labels.
        known: True where the target is known, ``(n, c)``.
        preprocess: Function from an upright image to pixels ``(3, h, w)`` of height h and width w.
        min_side: Minimum length of the shorter side, in pixels, if an image is reduced during
            decoding.
        batch_size: Number of images per batch.
        augmentation: Random augmentation of images. If None, ``RandomCropFlip()`` is used.
        workers: Number of worker processes that decode images. If None, there is one process per
            CPU core, at most 8.

    Raises:
        InputError: If no target is known.
    """

    def __init__(
        self,
        paths: Sequence[str],
        targets: Tensor,
        known: Tensor,
        *,
        preprocess: Callable[[Image.Image], Tensor],
        min_side: int,
        batch_size: int,
        augmentation: RandomCropFlip | None = None,
        workers: int | None = None,
    ):
        check_training_batch_targets(known)
        self._paths, self._targets, self._known = paths, targets, known
        self._preprocess, self._min_side = preprocess, min_side
        self._augmentation = augmentation or RandomCropFlip()
        self._loader = SeededLoader(
            self.load_item,
            self._paths_of_item,
            len(paths),
            batch_size=batch_size,
            workers=workers,
        )

    def parameters(self) -> list[nn.Parameter]:
        """Return an empty list, because the targets are constant."""
        return []

    def batches(
        self, generator: torch.Generator, skip: int = 0, part: BatchPart = WHOLE_BATCH
    ) -> Generator[Batch]:
        """Yield the batches of one epoch in random order, except the first ``skip`` batches.

        Each image is augmented with a separate random seed. If the worker processes that decode an
        image are killed twice, the image is removed from the batch with a warning.
        """
        with closing(self._loader.batches(generator, skip, part)) as batches:
            for items, is_part in batches:
                yield self._make_batch(items, is_part=is_part)

    def __len__(self) -> int:
        return len(self._loader)

    def load_item(self, row: int, seed: int) -> ImageItem:
        """Return the row number and the augmented, preprocessed pixels of one image."""
        image = open_image(self._paths[row], min_side=self._min_side)
        return row, self._preprocess(self._augmentation(image, seed)).numpy()

    def _paths_of_item(self, row: int, _: int) -> list[str]:
        return [self._paths[row]]

    def _make_batch(self, items: list[ImageItem], *, is_part: bool) -> Batch:
        if not items:
            return empty_training_batch(self._targets.shape[1], is_part=is_part)
        rows, pixels = (list(column) for column in zip(*items, strict=True))
        # pooled features are empty: the method computes them from the pixels
        features = Features(torch.zeros(len(rows), 0), pixels=torch.from_numpy(np.stack(pixels)))
        return Batch(features, self._targets[rows], self._known[rows], is_part=is_part)
