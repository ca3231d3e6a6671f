"""Steps from sewn pictures, whose labels learn from the student."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import RandAugment  # type: ignore[import-untyped]

from surelabel.backbones import Backbone
from surelabel.data import open_picture
from surelabel.errors import InputError
from surelabel.pseudolabels import Borrowed, Estimator, Sewing, expectation
from surelabel.records import Features
from surelabel.training.batch import Batch
from surelabel.views import blended, overlay_boxes, overlay_rows, sewn


@dataclass(frozen=True)
class Canvases(Batch):
    """A batch of sewn pictures, first all in their weak views, then all in their strong ones.

    Attributes:
        borrowed: Their rows of the estimator.
    """

    borrowed: Borrowed = None  # type: ignore[assignment]  # always given


class Tailoring:
    """Unlabelled pictures sewn together, seen through a frozen encoder in two views.

    Each picture is a canvas once a pass; the pictures sewn onto it are drawn anew. The weak view
    is as the encoder takes any picture. The strong one is mirrored every second time and varied by
    RandAugment.

    Args:
        paths: ``n`` files that can be read.
        log_odds: Their pseudo-labels, ``(n, c)``.
        patches: Rows of the pictures that may be sewn onto others.
        backbone: Frozen, at the student's size; its ``trunk`` sees the canvases.
        sewing: The settings.
        size: Canvases a batch.
        workers: Processes that decode and sew; one a core when left out.
        progress: Called with the canvases of the pass that are done and their number.

    Attributes:
        estimator: The labels as they are now.

    Raises:
        InputError: there is not one row of labels for each picture.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3 to 3.5 and algorithm 1.

    Differs:
        The strong view and its weight are those of the authors' code; the paper has none. A large
        JPEG is decoded at a half, quarter or eighth of its size, so that canvas and overlays keep
        their proportions and not their pixels, and a picture larger than the encoder takes is
        reduced before it is strongly varied. Labels rest unless their picture is looked at
        (``Estimator``). The step size falls along a cosine, where the code's stays: after four
        passes over 1,000 pictures the student of tiny-rn has 55.0 mAP, and 54.7 if it stays.
    """

    def __init__(
        self,
        paths: Sequence[str],
        log_odds: Tensor,
        patches: Tensor,
        *,
        backbone: Backbone,
        sewing: Sewing,
        size: int,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ):
        if len(paths) != len(log_odds):
            raise InputError(
                f"log_odds must have one row for each of {len(paths)} pictures. "
                f"Got {len(log_odds)}."
            )
        rate, decay = (sewing.rate, sewing.decay) if sewing.rate else (1.0, 0.0)  # it stays
        self.estimator = Estimator(log_odds, lr=rate, weight_decay=decay)
        self._paths, self._patches, self._size = paths, patches.tolist(), size
        self._backbone, self._sewing, self._progress = backbone, sewing, progress
        self._workers = min(8, os.cpu_count() or 1) if workers is None else workers

    def parameters(self) -> list[nn.Parameter]:
        """None: the labels are moved by ``learn``."""
        return []

    def batches(self, generator: torch.Generator, skip: int = 0) -> Iterator[Canvases]:
        """One pass in random order without its first ``skip`` batches.

        Every canvas is sewn by a seed of its own.
        """
        order = torch.randperm(len(self._paths), generator=generator).tolist()
        seeds = torch.randint(2**62, (len(order),), generator=generator).tolist()
        loader = DataLoader(
            _Drawn(self, list(zip(order, seeds, strict=True))[skip * self._size :]),
            batch_size=self._size,
            num_workers=self._workers,
            collate_fn=list,
            multiprocessing_context="fork" if self._workers else None,
            generator=torch.Generator(),  # its own, so that it takes no draws from anybody
        )
        for done, canvases in enumerate(loader, skip + 1):
            yield self._batch(canvases)
            if self._progress:
                self._progress(min(done * self._size, len(order)), len(order))

    def __len__(self) -> int:
        return math.ceil(len(self._paths) / self._size)

    def learn(self, batch: Canvases, scores: Tensor) -> None:
        """Move the labels of a batch towards what the student says of its weak views.

        Its scores are log-odds; each label moves in the picture that it came from.
        """
        if not self._sewing.rate:
            return
        labels = blended(batch.borrowed.log_odds, batch.borrowed.places)
        expectation(labels, scores[: len(labels)]).mean().backward()
        self.estimator.step(batch.borrowed)

    def state_dict(self) -> dict[str, Any]:
        """The labels, and what moves them."""
        return self.estimator.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put them back."""
        self.estimator.load_state_dict(state)

    def canvas(self, row: int, seed: int) -> tuple[list[int], list[Tensor]]:
        """Rows of the pictures on one canvas, its own first, and its views, each prepared."""
        generator = torch.Generator().manual_seed(seed)
        rows = [row, *self._overlays(generator)]
        main, *overlays = [
            open_picture(self._paths[r], least_side=self._backbone.least_side) for r in rows
        ]
        boxes = overlay_boxes(
            main.size,
            [overlay.size for overlay in overlays],
            generator=generator,
            side=self._sewing.side,
            most=max(self._sewing.overlays, 1),
            variant=self._sewing.variant,
        )
        views = [whole := sewn(main, overlays, boxes)]
        if self._sewing.strong:
            seed = int(torch.randint(2**62, (1,), generator=generator))
            views.append(strongly_varied(whole, side=self._backbone.least_side, seed=seed))
        return rows, [self._backbone.prepare(view) for view in views]

    def _overlays(self, generator: torch.Generator) -> list[int]:
        if not self._sewing.overlays:
            return []
        places = overlay_rows(
            len(self._patches),
            generator=generator,
            most=self._sewing.overlays,
            chance=self._sewing.chance,
            variant=self._sewing.variant,
        )
        return [self._patches[place] for place in places]

    def _batch(self, canvases: list[tuple[list[int], list[Tensor]]]) -> Canvases:
        rows, views = zip(*canvases, strict=True)
        kinds = list(zip(*views, strict=True))  # weak, strong
        borrowed = self.estimator.borrow(rows)
        targets = blended(borrowed.log_odds.detach(), borrowed.places).sigmoid().float()
        counts = torch.tensor([1.0, self._sewing.strong][: len(kinds)])
        seen = self._backbone.trunk(torch.cat([torch.stack(kind) for kind in kinds]))
        return Canvases(
            features=_on_cpu(seen),
            targets=targets.repeat(len(kinds), 1),
            known=torch.ones(len(kinds) * len(targets), targets.shape[1], dtype=torch.bool),
            weights=counts.repeat_interleave(len(targets)),
            borrowed=borrowed,
        )


def strongly_varied(picture: Image.Image, *, side: int, seed: int) -> Image.Image:
    """A picture mirrored every second time and varied by RandAugment; the same for the same seed.

    Args:
        picture: Upright, in RGB.
        side: Shorter side to which a larger picture is reduced before, in pixels.
        seed: Of what is drawn.
    """
    larger = min(picture.size) / side
    if larger > 1:
        size = (round(picture.width / larger), round(picture.height / larger))
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if torch.rand(()) < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        varied: Image.Image = RandAugment()(picture)
    return varied


def _on_cpu(seen: Features) -> Features:
    """Where the student is, wherever the encoder runs."""
    layers = {layer: tokens.cpu() for layer, tokens in (seen.layers or {}).items()}
    return replace(seen, pooled=seen.pooled.cpu(), layers=layers)


class _Drawn(Dataset[tuple[list[int], list[Tensor]]]):
    def __init__(self, source: Tailoring, drawn: list[tuple[int, int]]):
        self._source, self._drawn = source, drawn

    def __len__(self) -> int:
        return len(self._drawn)

    def __getitem__(self, place: int) -> tuple[list[int], list[Tensor]]:
        return self._source.canvas(*self._drawn[place])
