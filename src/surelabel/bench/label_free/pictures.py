"""Pictures that methods without labels are compared on."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.bench.label_free.plan import Plan
from surelabel.data import default_folder
from surelabel.data.collections import benchmark_scenes, collection_folder
from surelabel.data.generate import ScenesTruth, read_scenes
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class Pictures:
    """One archive, and the labels by which methods that never see them are judged.

    Attributes:
        name: In tables.
        encoder: That all methods share.
        train: Its labels are hidden from all but the linear probe.
        validation: What the best one-pass row is chosen on.
        test: What is measured on.
        mains: The most prominent label of each test picture, its column, ``(n,)``; -1 for none.
    """

    name: str
    encoder: str
    train: LabelledImages
    validation: LabelledImages
    test: LabelledImages
    mains: npt.NDArray[np.int64]

    @cached_property
    def identity(self) -> str:
        """What tells these pictures and labels from others."""
        text = hashlib.sha256(self.encoder.encode())
        for part in (self.train, self.validation, self.test):
            text.update("\n".join(part.paths).encode())
            text.update(np.ascontiguousarray(part.targets).tobytes())
        return text.hexdigest()


def of_scenes(encoder: str, plan: Plan, *, quick: bool = False) -> Pictures:
    """Scenes of 80 labels, for an embedded encoder.

    Args:
        encoder: ``tiny-vit`` or ``tiny-rn``.
        plan: How many pictures.
        quick: The pictures inside the package in place of those that are drawn into the cache.

    Raises:
        MissingPart: pictures are to be drawn and no colour-emoji font is installed.
    """
    truths = {part: _truth(part, quick) for part in ("train", "validation", "test")}
    parts = {part: truth.images for part, truth in truths.items()}
    column = {name: c for c, name in enumerate(parts["test"].names)}
    mains = np.array([column.get(main, -1) for main in truths["test"].mains])
    return Pictures(
        name=f"scenes-80, {encoder}",
        encoder=encoder,
        train=parts["train"].take(range(min(plan.labelled, len(parts["train"])))),
        validation=parts["validation"].take(range(plan.validation)),
        test=parts["test"].take(range(plan.test)),
        mains=mains[: plan.test],
    )


def _truth(part: str, quick: bool) -> ScenesTruth:
    if quick:
        return read_scenes(collection_folder("scenes-80", split=part))
    return benchmark_scenes("scenes-80", split=part, cache_folder=default_folder() / "scenes")
