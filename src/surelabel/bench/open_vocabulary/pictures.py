"""Pictures of which some labels are learnt, and others only asked for."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from surelabel.backbones import Backbone, load_backbone
from surelabel.bench.open_vocabulary.plan import Plan
from surelabel.data import collection, default_folder
from surelabel.data.collections import BENCHMARKS
from surelabel.data.generate import read_scenes, write_scenes
from surelabel.data.vocabularies import VOCABULARIES, Vocabulary, without_unseen
from surelabel.records import LabelledImages

ENCODER = "tiny-vit"  # the embedded one whose blocks can be run one by one


@dataclass(frozen=True)
class Pictures:
    """Scenes 48/17.

    Attributes:
        name: In tables.
        domain: Their look; what knowledge weighs depends on it.
        vocabulary: Names that are seen, unseen, and unused.
        train: No unseen label is in any of them.
        removed: Pictures that were left out because one was.
        validation: What calibrators are fitted on, by seen labels alone.
        test: What is measured on, by all labels.
    """

    name: str
    domain: str
    vocabulary: Vocabulary
    train: LabelledImages
    removed: int
    validation: LabelledImages
    test: LabelledImages

    @cached_property
    def backbone(self) -> Backbone:
        """The encoder, loaded once for all."""
        return load_backbone(ENCODER)

    @cached_property
    def identity(self) -> str:
        """What tells these pictures, labels and names from others."""
        text = hashlib.sha256("\n".join((self.domain, *self.vocabulary.names)).encode())
        for part in (self.train, self.validation, self.test):
            text.update("\n".join(part.paths).encode())
            text.update(np.ascontiguousarray(part.targets).tobytes())
        return text.hexdigest()


def of_scenes(plan: Plan, *, domain: str = "photo", quick: bool = False) -> Pictures:
    """Scenes of 80 labels: 48 seen, 17 unseen, 15 unused.

    Args:
        plan: How many pictures.
        domain: Their look, as of ``surelabel scenes``.
        quick: Photographs come from inside the package; all others are drawn into the cache.

    Raises:
        MissingPart: pictures are to be drawn and no colour-emoji font is installed.
    """
    counts = {"train": plan.drawn, "validation": plan.validation, "test": plan.test}
    parts = {part: _scenes(part, count, domain, quick) for part, count in counts.items()}
    vocabulary = VOCABULARIES["scenes-48-17"]
    train, removed = without_unseen(parts["train"], vocabulary)
    look = "" if domain == "photo" else f", {domain}"
    return Pictures(
        name=f"Scenes {len(vocabulary.seen)}/{len(vocabulary.unseen)}{look}",
        domain=domain,
        vocabulary=vocabulary,
        train=train.take(range(min(plan.train, len(train)))),
        removed=removed,
        validation=parts["validation"],
        test=parts["test"],
    )


def _scenes(part: str, count: int, domain: str, quick: bool) -> LabelledImages:
    if quick and domain == "photo":
        return collection("scenes-80", split=part).take(range(count))
    folder = Path(default_folder()) / "scenes" / f"scenes-80-{domain}-{part}-{count}"
    seed = BENCHMARKS["scenes-80"][part].seed
    return read_scenes(write_scenes(folder, count=count, seed=seed, domain=domain)).images
