"""Load the features and targets of a dataset in three splits: train, validation and test."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from surelabel.bench.image_splits import SPLITS, ImageSplits, load_benchmark_scenes
from surelabel.bench.result_cache import result_cache_digest
from surelabel.data import read_feature_archive
from surelabel.encoders import load_encoder
from surelabel.errors import DataError
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.progress import Progress
from surelabel.records import LabelledFeatures, LabelledImages


@dataclass(frozen=True)
class FeatureSplits:
    """Features of one dataset from one encoder, in three splits.

    Attributes:
        name: Title of the dataset in tables.
        encoder: Name of the encoder. For precomputed features, the value is ``features:`` followed
            by their width, such as ``features:512``.
        train: Training split, used to fit linear heads.
        validation: Validation split, used to select settings and to fit calibrators.
        test: Test split, used only for the measurements.
    """

    name: str
    encoder: str
    train: LabelledFeatures
    validation: LabelledFeatures
    test: LabelledFeatures

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of encoder name, features, targets and masks of known targets."""
        splits = (self.train, self.validation, self.test)
        return result_cache_digest(
            self.encoder,
            *(array for s in splits for array in (s.features, s.targets, s.known)),
        )


def load_scene_feature_splits(
    encoder: str, *, quick: bool = False, progress: Progress | None = None
) -> FeatureSplits:
    """Encode generated images (scenes) with 80 labels and return train, validation and test splits.

    Args:
        encoder: Name of an embedded encoder: ``tiny-vit`` or ``tiny-rn``.
        quick: If True, use the 3,000 images inside the package. If False, render 35,000 images into
            the cache folder on first use.
        progress: Function called with the number of encoded images and the total number of images.
    """
    splits = ImageSplits(
        name="scenes-80",
        **{split: load_benchmark_scenes(split, quick=quick).images for split in SPLITS},
    )
    return encode_feature_splits(splits, encoder, progress=progress)


def encode_feature_splits(
    splits: ImageSplits, encoder: str, *, progress: Progress | None = None
) -> FeatureSplits:
    """Return the features of annotated images.

    Args:
        splits: Training, validation and test images.
        encoder: Name of an encoder.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        DataError: If an image cannot be read.
    """
    cache, loaded_encoder = FeatureCache(default_feature_cache_folder()), load_encoder(encoder)
    features = []
    for split in SPLITS:
        images: LabelledImages = getattr(splits, split)
        encoded = encode_image_files(
            loaded_encoder, images.paths, cache=cache, strict=True, progress=progress
        )
        vectors = encoded.features.pooled.numpy()
        features.append(LabelledFeatures(vectors, images.names, images.targets, images.known))
    return FeatureSplits(f"{splits.name}, {encoder}", encoder, *features)


def load_feature_splits(path: str | Path) -> FeatureSplits:
    """Load precomputed features and targets from a NumPy archive.

    Args:
        path: ``.npz`` file in the format of `read_feature_archive`, with the splits train,
            validation and test.

    Raises:
        DataError: If the file cannot be read or a split is missing.
    """
    archive = read_feature_archive(path)
    missing = [split for split in SPLITS if split not in archive.splits]
    if missing:
        raise DataError(
            f"{path} must contain rows of the splits train, validation and test; got no rows of "
            f"{', '.join(missing)}. Name the split of each row in the array `part` of the file."
        )
    width = archive.all_rows.features.shape[1]
    return FeatureSplits(
        Path(path).stem, f"features:{width}", *(archive.splits[split] for split in SPLITS)
    )
