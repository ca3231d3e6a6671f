"""Split a dataset into base labels, which have training images, and new labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.image_splits import (
    EncoderImageSplits,
    ImageSplits,
    load_benchmark_scenes,
    render_benchmark_scenes,
)
from surelabel.bench.result_cache import result_cache_digest
from surelabel.data import (
    VOCABULARIES,
    Vocabulary,
    align_to_vocabulary,
    label_captioned_images,
    label_captions,
    read_captions,
    sample_shots,
    synthesize_images,
)
from surelabel.encoders import Encoder, load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.metrics import neighbour_proximity
from surelabel.records import Captions, LabelledImages, LabelledTexts

SYNTHESIS_SEED = 280  # added to the seed of a sample; splits of scenes have seeds up to 182
HALVES, OPEN_VOCABULARY_SPLIT = "halves", "48/17"


@dataclass(frozen=True, kw_only=True)
class BaseNewSplits(ImageSplits):
    """Annotated images of one dataset for few-shot fits on base labels.

    Attributes:
        encoder_name: Name of the encoder.
        captions: Captions of the training images, for methods that are fitted on texts.
        domains: Test images in other visual domains, by the name of the domain.
        large_train: Training images for samples that need more images than ``train`` contains.
    """

    encoder_name: str
    captions: Captions
    domains: Mapping[str, LabelledImages] = field(default_factory=dict)
    large_train: LabelledImages

    @property
    def hashed_settings(self) -> tuple[str, ...]:
        """Return the name of the encoder and the paths of the images in other domains."""
        return (
            self.encoder_name,
            *(path for images in self.domains.values() for path in images.paths),
        )

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder of all methods, which is loaded once."""
        return load_encoder(self.encoder_name)

    @cached_property
    def test_proximity(self) -> Array:
        """Return the proximity of each test image to the validation images, ``(n,)``."""
        cache = FeatureCache(default_feature_cache_folder())
        features = [
            encode_image_files(self.encoder, list(images.paths), cache=cache, strict=True)
            for images in (self.test, self.validation)
        ]
        test, validation = (encoded.features.pooled.numpy() for encoded in features)
        return neighbour_proximity(test, validation)


def base_new_splits_of_images(images: EncoderImageSplits) -> BaseNewSplits:
    """Return the images of a dataset without captions and without other domains.

    Args:
        images: Train, validation and test images, with the name of an encoder.
    """
    return BaseNewSplits(
        name=images.name,
        encoder_name=images.encoder,
        train=images.train,
        large_train=images.train,
        captions=Captions([]),
        validation=images.validation,
        test=images.test,
    )


def base_new_vocabulary(names: Sequence[str], split: str) -> Vocabulary:
    """Return the base labels (``seen``) and the new labels (``unseen``) of a dataset.

    Args:
        names: Labels of the dataset.
        split: ``halves`` for the first and the second half of the labels, or ``48/17`` for the 48
            seen and 17 unseen classes of the open-vocabulary comparison.
    """
    if split == OPEN_VOCABULARY_SPLIT:
        return VOCABULARIES["scenes-48-17"]
    n_base = (len(names) + 1) // 2
    return Vocabulary(seen=tuple(names[:n_base]), unseen=tuple(names[n_base:]))


def few_shot_images(
    images: LabelledImages, labels: Sequence[str], shots: int, seed: int
) -> LabelledImages:
    """Return a few-shot sample of the images, with one column for each of the labels.

    Args:
        images: Training images.
        labels: Base labels.
        shots: Number of positive images per label; see ``sample_shots``.
        seed: Seed of the sample.
    """
    aligned, _ = align_to_vocabulary(images, labels)
    rng = np.random.default_rng(seed)
    return aligned.take(sample_shots(aligned.targets, aligned.known, shots, rng))


def few_shot_texts(
    captions: Captions, labels: Sequence[str], shots: int, seed: int
) -> LabelledTexts:
    """Return a few-shot sample of captions, to which a fit adds sentences of prompt templates.

    Args:
        captions: Captions of the training images.
        labels: Base labels.
        shots: Number of captions that mention each label; see ``sample_shots``.
        seed: Seed of the sample.
    """
    labelled = label_captions(captions, labels)
    rng = np.random.default_rng(seed)
    return labelled.take(sample_shots(labelled.targets, labelled.known, shots, rng))


def few_shot_synthesized_images(texts: LabelledTexts, domain: str, seed: int) -> LabelledImages:
    """Return an image for each text, with the labels of the text as positive labels.

    All other labels are negative. The images are synthesized into the cache folder, or loaded if
    they are already there.

    Args:
        texts: Captions with labels.
        domain: Visual domain of the images, such as ``photo`` or ``sketch``.
        seed: Seed of the images.
    """
    digest = result_cache_digest("\n".join(texts.texts))[:16]
    folder = default_feature_cache_folder() / "scenes" / f"captions-{domain}-{seed}-{digest}"
    if folder.exists():
        captions = read_captions(folder / "captions.csv")
    else:
        captions = synthesize_images(
            Captions(texts.texts), folder, seed=SYNTHESIS_SEED + seed, domain=domain
        )
    return label_captioned_images(captions, texts.names, unmentioned=0.0)


def load_base_new_scenes(
    encoder: str,
    *,
    validation: int,
    test: int,
    domains: Sequence[str] = (),
    quick: bool = False,
) -> BaseNewSplits:
    """Load generated images (scenes) with 80 labels for few-shot fits with an embedded encoder.

    The package contains the training and validation images. The test images are rendered into the
    cache folder, with the same scenes in every domain.

    Args:
        encoder: Name of an embedded encoder: ``tiny-vit`` or ``tiny-rn``.
        validation: Number of validation images.
        test: Number of test images in each domain.
        domains: Visual domains of the test images in addition to ``photo``, such as ``night``.
        quick: If True, ``large_train`` has the same images as ``train``. Otherwise, the training
            images of the complete benchmark are rendered into the cache folder on first use.
    """
    train = load_benchmark_scenes("train", quick=True)
    return BaseNewSplits(
        name=f"scenes-80, {encoder}",
        encoder_name=encoder,
        train=train.images,
        large_train=train.images if quick else load_benchmark_scenes("train", quick=False).images,
        captions=Captions([caption.text for captions in train.captions for caption in captions]),
        validation=load_benchmark_scenes("validation", quick=True).images.take(range(validation)),
        test=render_benchmark_scenes("test", domain="photo", count=test),
        domains={d: render_benchmark_scenes("test", domain=d, count=test) for d in domains},
    )
