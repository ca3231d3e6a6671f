"""Load annotated images in three splits, such as generated scenes with 80 labels."""

from dataclasses import dataclass
from functools import cached_property

from surelabel.bench.result_cache import result_cache_digest
from surelabel.data.benchmark_collections import (
    BENCHMARK_COLLECTIONS,
    benchmark_collection_scenes,
)
from surelabel.data.bundled_collections import bundled_collection_folder
from surelabel.data.scene_files import AnnotatedScenes, read_scenes
from surelabel.data.scene_writing import write_scenes
from surelabel.features import default_feature_cache_folder
from surelabel.records import LabelledImages

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class ImageSplits:
    """Annotated images of one dataset, in three splits.

    Attributes:
        name: Title of the dataset in tables.
        train: Training images.
        validation: Images used to select rows or settings and to fit calibrators.
        test: Test images, used only for the measurements.
    """

    name: str
    train: LabelledImages
    validation: LabelledImages
    test: LabelledImages

    @property
    def hashed_settings(self) -> tuple[str, ...]:
        """Return the settings of the dataset that are part of its fingerprint."""
        return ()

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the settings, the image paths and the targets."""
        splits = (self.train, self.validation, self.test)
        return result_cache_digest(
            "\n".join(self.hashed_settings),
            *(part for split in splits for part in ("\n".join(split.paths), split.targets)),
        )

    def with_encoder(self, encoder: str) -> "EncoderImageSplits":
        """Return the images for recognizers with one encoder, whose name is added to the title."""
        return EncoderImageSplits(
            name=f"{self.name}, {encoder}",
            train=self.train,
            validation=self.validation,
            test=self.test,
            encoder=encoder,
        )


@dataclass(frozen=True, kw_only=True)
class EncoderImageSplits(ImageSplits):
    """Annotated images of one dataset, for recognizers with one encoder.

    Attributes:
        encoder: Name of the encoder of all recognizers.
    """

    encoder: str

    @property
    def hashed_settings(self) -> tuple[str, ...]:
        """Return the name of the encoder."""
        return (self.encoder,)


def load_benchmark_scenes(split: str, *, quick: bool) -> AnnotatedScenes:
    """Load one split of the generated images (scenes) with 80 labels.

    Args:
        split: ``train``, ``validation`` or ``test``.
        quick: If True, read the images inside the package. If False, render the images of the
            complete benchmark into the cache folder on first use.
    """
    if quick:
        return read_scenes(bundled_collection_folder("scenes-80", split=split))
    return benchmark_collection_scenes(
        "scenes-80", split=split, cache_folder=default_feature_cache_folder() / "scenes"
    )


def render_benchmark_scenes(split: str, *, domain: str, count: int) -> LabelledImages:
    """Return the annotated images of :func:`render_benchmark_scene_captions`."""
    return render_benchmark_scene_captions(split, domain=domain, count=count).images


def render_benchmark_scene_captions(split: str, *, domain: str, count: int) -> AnnotatedScenes:
    """Render scenes with 80 labels into the cache folder, or load the scenes of an earlier call.

    Args:
        split: ``train``, ``validation`` or ``test``.
        domain: Visual domain of the scenes, such as ``photo``, ``sketch`` or ``night``. Scenes with
            equal numbers differ between domains only in their appearance.
        count: Number of images, starting with the first image of the split.
    """
    folder = default_feature_cache_folder() / "scenes" / f"scenes-80-{domain}-{split}-{count}"
    seed = BENCHMARK_COLLECTIONS["scenes-80"][split].seed
    return read_scenes(write_scenes(folder, count=count, seed=seed, domain=domain))
