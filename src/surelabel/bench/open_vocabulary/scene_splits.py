"""Load train, validation and test images with seen and unseen classes."""

from dataclasses import dataclass, replace
from functools import cached_property

from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.image_splits import (
    EncoderImageSplits,
    ImageSplits,
    load_benchmark_scenes,
    render_benchmark_scenes,
)
from surelabel.bench.open_vocabulary.plan import OpenVocabularyPlan
from surelabel.data.vocabularies import VOCABULARIES, Vocabulary, remove_unseen_vocabulary_classes
from surelabel.encoders import Encoder, load_encoder
from surelabel.records import LabelledImages


@dataclass(frozen=True, kw_only=True)
class OpenVocabularySplits(ImageSplits):
    """Images with seen and unseen classes.

    The training images contain no unseen class, and calibrators use the seen classes only.

    Attributes:
        domain: Visual domain, which determines the weight of the knowledge constraint.
        vocabulary: Names of seen, unseen and unused classes.
        removed: Number of training images removed because they contain an unseen class.
        encoder_name: Name of the encoder of all methods.
    """

    domain: str
    vocabulary: Vocabulary
    removed: int
    encoder_name: str = "tiny-vit"

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder of all methods, which is loaded once."""
        return load_encoder(self.encoder_name)

    @property
    def hashed_settings(self) -> tuple[str, ...]:
        """Return the encoder, the domain and the names of the seen and unseen classes."""
        return (self.encoder_name, self.domain, *self.vocabulary.names)


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


def open_vocabulary_splits_of_images(
    images: EncoderImageSplits, vocabulary: Vocabulary
) -> OpenVocabularySplits:
    """Return the images of a dataset with seen and unseen classes.

    Args:
        images: Train, validation and test images, with the name of an encoder.
        vocabulary: Names of seen and unseen classes.

    Raises:
        InputError: If no training image remains without unseen classes.
    """
    train, removed = remove_unseen_vocabulary_classes(images.train, vocabulary)
    return OpenVocabularySplits(
        name=images.name,
        domain="photo",
        vocabulary=vocabulary,
        train=train,
        removed=removed,
        validation=images.validation,
        test=images.test,
        encoder_name=images.encoder,
    )


def open_vocabulary_plan_of_images(
    plan: OpenVocabularyPlan, images: OpenVocabularySplits
) -> OpenVocabularyPlan:
    """Return the plan with the encoder and all images of a dataset.

    Args:
        plan: Plan of the comparison.
        images: Train, validation and test images.
    """
    return replace(
        plan,
        train_candidates=len(images.train) + images.removed,
        train=len(images.train),
        validation=len(images.validation),
        test=len(images.test),
        encoder=images.encoder_name,
    )


def _load_open_vocabulary_scene_split(
    split: str, count: int, domain: str, quick: bool
) -> LabelledImages:
    if quick and domain == "photo":
        return load_benchmark_scenes(split, quick=True).images.take(range(count))
    return render_benchmark_scenes(split, domain=domain, count=count)
