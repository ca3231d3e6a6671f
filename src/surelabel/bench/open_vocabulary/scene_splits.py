"""Train, validation and test images with seen and unseen classes."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from surelabel.bench.open_vocabulary.plan import OpenVocabularyPlan
from surelabel.data import collection
from surelabel.data.bundled_collections import BENCHMARK_COLLECTIONS
from surelabel.data.scene_files import read_scenes, write_scenes
from surelabel.data.vocabularies import VOCABULARIES, Vocabulary, remove_unseen_vocabulary_classes
from surelabel.encoders import Encoder, load_encoder
from surelabel.features import default_feature_cache_folder
from surelabel.records import LabelledImages

ENCODER = "tiny-vit"  # the embedded encoder whose blocks can be run separately


@dataclass(frozen=True)
class OpenVocabularySplits:
    """Scenes with 48 seen and 17 unseen classes.

    Attributes:
        name: Title of the dataset in tables.
        domain: Domain of the scenes, which determines the weight of the knowledge constraint.
        vocabulary: Names of seen, unseen and unused classes.
        train: Training images without unseen classes.
        removed: Number of training images removed because they contain an unseen class.
        validation: Images on which calibrators are fitted, with the seen classes only.
        test: Test images with all classes, used for the measurements.
    """

    name: str
    domain: str
    vocabulary: Vocabulary
    train: LabelledImages
    removed: int
    validation: LabelledImages
    test: LabelledImages

    @cached_property
    def encoder(self) -> Encoder:
        """Encoder of all methods, loaded once."""
        return load_encoder(ENCODER)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the domain, the class names, the image paths and the targets."""
        digest = hashlib.sha256("\n".join((self.domain, *self.vocabulary.names)).encode())
        for split in (self.train, self.validation, self.test):
            digest.update("\n".join(split.paths).encode())
            digest.update(np.ascontiguousarray(split.targets).tobytes())
        return digest.hexdigest()


def load_open_vocabulary_scene_splits(
    plan: OpenVocabularyPlan, *, domain: str = "photo", quick: bool = False
) -> OpenVocabularySplits:
    """Load scenes of 80 labels: 48 seen, 17 unseen and 15 unused classes.

    Args:
        plan: Plan with the number of images of each split.
        domain: Domain of the scenes, such as ``photo``, ``sketch`` or ``night``.
        quick: If True and the domain is ``photo``, use the images inside the package. Otherwise,
            render images into the cache folder.
    """
    counts = {"train": plan.train_candidates, "validation": plan.validation, "test": plan.test}
    images = {
        split: _load_open_vocabulary_scene_split(split, count, domain, quick)
        for split, count in counts.items()
    }
    vocabulary = VOCABULARIES["scenes-48-17"]
    train, removed = remove_unseen_vocabulary_classes(images["train"], vocabulary)
    suffix = "" if domain == "photo" else f", {domain}"
    return OpenVocabularySplits(
        name=f"Scenes {len(vocabulary.seen)}/{len(vocabulary.unseen)}{suffix}",
        domain=domain,
        vocabulary=vocabulary,
        train=train.take(range(min(plan.train, len(train)))),
        removed=removed,
        validation=images["validation"],
        test=images["test"],
    )


def _load_open_vocabulary_scene_split(
    split: str, count: int, domain: str, quick: bool
) -> LabelledImages:
    if quick and domain == "photo":
        return collection("scenes-80", split=split).take(range(count))
    folder = Path(default_feature_cache_folder()) / "scenes" / f"scenes-80-{domain}-{split}-{count}"
    seed = BENCHMARK_COLLECTIONS["scenes-80"][split].seed
    return read_scenes(write_scenes(folder, count=count, seed=seed, domain=domain)).images
