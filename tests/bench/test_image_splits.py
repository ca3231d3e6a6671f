from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench.image_splits import SPLITS, ImageSplits, load_benchmark_scenes
from surelabel.bench.label_free import LabelFreeSplits
from surelabel.data import collection


@pytest.fixture(scope="module")
def splits():
    images = {split: collection("scenes-80", split=split).take(range(3)) for split in SPLITS}
    return ImageSplits(name="few", **images)


@pytest.mark.parametrize("split", SPLITS)
def test_quick_scenes_are_the_images_of_the_package(split):
    images, expected = (
        load_benchmark_scenes(split, quick=True).images,
        collection("scenes-80", split=split),
    )
    assert list(images.paths) == list(expected.paths)
    np.testing.assert_array_equal(images.targets, expected.targets)


@pytest.mark.parametrize("split", SPLITS)
def test_other_images_and_other_targets_have_another_fingerprint(splits, split):
    images = getattr(splits, split)
    other_targets = replace(images, targets=1 - images.targets)
    for other in (images.take([0, 2, 1]), other_targets):
        assert replace(splits, **{split: other}).fingerprint != splits.fingerprint
    assert replace(splits, name="other title").fingerprint == splits.fingerprint


def test_another_encoder_has_another_fingerprint(splits):
    images = {split: getattr(splits, split) for split in SPLITS}
    main_columns = np.zeros(3, dtype=np.int64)
    one, other = (
        LabelFreeSplits(name="few", encoder=encoder, main_columns=main_columns, **images)
        for encoder in ("tiny-vit", "tiny-rn")
    )
    assert one.fingerprint != other.fingerprint
