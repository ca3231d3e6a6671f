"""Load images with captions of one dataset, in three splits and in other domains."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from surelabel.bench.base_new_splits import BaseNewSplits, load_base_new_scenes
from surelabel.bench.image_splits import load_benchmark_scenes, render_benchmark_scene_captions
from surelabel.bench.result_cache import result_cache_digest
from surelabel.bench.similarity.plan import SimilarityPlan
from surelabel.data import scene_pairs
from surelabel.encoders import Encoder
from surelabel.features import FeatureCache, default_feature_cache_folder
from surelabel.recognizer.pair_fitting import PairFittingData, encode_pair_data
from surelabel.records import Pairs


@dataclass(frozen=True, kw_only=True)
class CaptionSplits:
    """Images with captions of one dataset.

    Attributes:
        name: Title of the dataset in tables.
        train: Training images with captions.
        validation: Images with captions on which the learning rate is selected.
        test: Test images with captions.
        domains: Test images with captions in other visual domains, by the name of the domain.
        labelled: Annotated images of the same dataset, for methods that predict labels.
    """

    name: str
    train: Pairs
    validation: Pairs
    test: Pairs
    domains: Mapping[str, Pairs] = field(default_factory=dict)
    labelled: BaseNewSplits

    @property
    def encoder(self) -> Encoder:
        """Return the encoder of all methods, which is loaded once."""
        return self.labelled.encoder

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the encoder, the image paths and the captions."""
        splits = (self.train, self.validation, self.test, *self.domains.values())
        return result_cache_digest(
            self.encoder.fingerprint,
            *("\n".join([*split.paths, *split.captions]) for split in splits),
        )

    @cached_property
    def train_data(self) -> PairFittingData:
        """Return the features of the training images and captions."""
        return self.encode(self.train)

    @cached_property
    def validation_data(self) -> PairFittingData:
        """Return the features of the validation images and captions."""
        return self.encode(self.validation)

    @cached_property
    def test_data(self) -> PairFittingData:
        """Return the features of the test images and captions."""
        return self.encode(self.test)

    @cached_property
    def domain_data(self) -> dict[str, PairFittingData]:
        """Return the features of the images and captions of each other domain."""
        return {domain: self.encode(pairs) for domain, pairs in self.domains.items()}

    def noisy_train_data(self, ratio: float, seed: int) -> PairFittingData:
        """Return the features of the training images, with a fraction of the captions permuted."""
        return self.encode(self.train.with_noise(ratio, seed=seed)) if ratio else self.train_data

    def encode(self, pairs: Pairs) -> PairFittingData:
        """Return the vectors of images and captions."""
        cache = FeatureCache(default_feature_cache_folder())
        return encode_pair_data(pairs, None, self.encoder, cache)


def load_caption_splits(
    encoder: str, plan: SimilarityPlan, *, quick: bool = False
) -> CaptionSplits:
    """Load generated images (scenes) with captions.

    The package contains the training, validation and test images. The images of other domains are
    rendered into the cache folder on first use.

    Args:
        encoder: Name of an embedded encoder: ``tiny-vit`` or ``tiny-rn``.
        plan: Numbers of images, and domains.
        quick: If True, no additional training images are rendered for methods that predict labels.
    """
    sizes = {"train": plan.images, "validation": plan.validation, "test": plan.test}
    splits = {
        split: scene_pairs(load_benchmark_scenes(split, quick=True)).take(range(size))
        for split, size in sizes.items()
    }
    return CaptionSplits(
        name=f"scenes-80, {encoder}",
        **splits,
        domains={
            domain: scene_pairs(
                render_benchmark_scene_captions("test", domain=domain, count=plan.domain_images)
            )
            for domain in plan.domains
        },
        labelled=load_base_new_scenes(
            encoder,
            validation=plan.validation,
            test=plan.test,
            domains=plan.domains,
            quick=quick,
        ),
    )
