"""Load train, validation and test images with seen and unseen classes."""

from dataclasses import dataclass
from functools import cached_property

from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.image_splits import (
    ImageSplits,
    load_benchmark_scenes,
    render_benchmark_scenes,
)
from surelabel.bench.open_vocabulary.plan import OpenVocabularyPlan
from surelabel.data.vocabularies import VOCABULARIES, Vocabulary, remove_unseen_vocabulary_classes
from surelabel.encoders import Encoder, load_encoder
from surelabel.records import LabelledImages

ENCODER = "tiny-vit"  # the embedded encoder whose blocks can be run separately


@dataclass(frozen=True, kw_only=True)
class OpenVocabularySplits(ImageSplits):
    """Scenes with 48 seen and 17 unseen classes.

    The training images contain no unseen class, and calibrators use the seen classes only.

    Attributes:
        domain: Domain of the scenes, which determines the weight of the knowledge constraint.
        vocabulary: Names of seen, unseen and unused classes.
        removed: Number of training images removed because they contain an unseen class.
    """

    domain: str
    vocabulary: Vocabulary
    removed: int

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder of all methods, which is loaded once."""
        return load_encoder(ENCODER)

    @property
    def hashed_settings(self) -> tuple[str, ...]:
        """Return the domain and the names of the seen and unseen classes."""
        return (self.domain, *self.vocabulary.names)


OpenVocabularyTask = ComparisonTask[OpenVocabularySplits, OpenVocabularyPlan]


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
        return load_benchmark_scenes(split, quick=True).images.take(range(count))
    return render_benchmark_scenes(split, domain=domain, count=count)
