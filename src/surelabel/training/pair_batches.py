"""Compute training batches of image-caption pairs with frozen features in memory."""

from collections.abc import Generator

import torch
from torch import Tensor, nn

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.features import SentenceFeatures
from surelabel.records import Features
from surelabel.training.batches import WHOLE_BATCH, Batch, BatchPart
from surelabel.training.feature_batches import select_feature_batch_rows


class PairBatches:
    """Batch source of captions with their images, shuffled in each epoch.

    A batch contains some captions and the image of each caption, in the order of the captions. The
    target of an image and a caption is 1 if the caption describes the image. Therefore, two
    captions of one image in a batch have four positive targets. All targets are known.

    Args:
        images: Features of n images.
        texts: Features of u different texts.
        image_rows: Row of the image of each caption, ``(s,)``.
        text_rows: Row of the text of each caption, ``(s,)``; captions can be equal.
        batch_size: Number of captions per batch; a smaller value than 2 is replaced by 2. If one
            caption remains, it is added to the last batch, because a batch of one caption has no
            negative target.

    Raises:
        InputError: If all captions have the same image, or there is no caption.
    """

    def __init__(
        self,
        images: Features,
        texts: Features | SentenceFeatures,
        image_rows: Tensor,
        text_rows: Tensor,
        *,
        batch_size: int,
    ):
        if not (image_rows != image_rows[:1]).any():
            raise InputError(
                "Training on pairs needs captions of at least 2 images, because the captions of "
                f"other images are the negatives; got {format_count(len(image_rows), 'caption')} "
                f"of {format_count(min(len(image_rows), 1), 'image')}. Add images with captions."
            )
        self._images, self._image_rows = images, image_rows
        self._texts, self._text_rows = texts, text_rows
        self._batch_size = max(batch_size, 2)

    def parameters(self) -> list[nn.Parameter]:
        """Return an empty list, because the targets are constant."""
        return []

    def batches(
        self, generator: torch.Generator, skip: int = 0, part: BatchPart = WHOLE_BATCH
    ) -> Generator[Batch]:
        """Yield the batches of one epoch in random order, except the first ``skip`` batches.

        A part of a batch contains some images and all captions of the batch.
        """
        order = torch.randperm(len(self._image_rows), generator=generator)
        starts = torch.arange(len(self)) * self._batch_size
        for rows in order.tensor_split(starts[1:])[skip:]:
            image_rows = self._image_rows[rows][part.rows(len(rows))]
            targets = (image_rows[:, None] == self._image_rows[rows]).float()
            yield Batch(
                select_feature_batch_rows(self._images, image_rows),
                targets,
                torch.ones_like(targets, dtype=torch.bool),
                texts=select_feature_batch_rows(self._texts, self._text_rows[rows]),
                is_part=part.is_divided(len(rows)),
            )

    def __len__(self) -> int:
        full, remainder = divmod(len(self._image_rows), self._batch_size)
        return max(full + (remainder > 1), 1)
