"""The collection inside the package is whole, small, and what the generator makes."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surelabel.data.benchmark_collections import BENCHMARK_COLLECTIONS
from surelabel.data.bundled_collections import COLLECTIONS, bundled_collection_folder, collection
from surelabel.data.scene_files import read_scenes
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scene_writing import write_scenes
from surelabel.errors import UnknownName

SPLITS = pytest.mark.parametrize("split", ["train", "validation", "test"])
SIZES = {"train": 1500, "validation": 500, "test": 1000}


@SPLITS
def test_a_split_has_its_images_and_all_80_labels_in_the_order_of_the_vocabulary(split):
    images = collection("scenes-80", split=split)
    assert len(images) == SIZES[split]
    assert list(images.names) == [w.name for w in read_scene_vocabulary("scenes-80")]
    assert images.known.all()
    assert set(np.unique(images.targets)) == {0, 1}


@SPLITS
def test_every_label_has_examples_and_every_image_has_a_label(split):
    targets = collection("scenes-80", split=split).targets
    assert targets.sum(axis=0).min() >= 10
    assert targets.sum(axis=1).min() >= 1
    assert 2.5 < targets.sum(axis=1).mean() < 3.5


@SPLITS
def test_a_split_has_captions_of_all_its_images_with_their_relevance(split):
    pairs = collection("scenes-80", split=split, captions=True)
    assert list(pairs.paths) == list(collection("scenes-80", split=split).paths)
    assert np.bincount(pairs.image_rows).tolist() == [
        len({c.text for c in captions})
        for captions in read_scenes(bundled_collection_folder("scenes-80", split=split)).captions
    ]
    is_own = pairs.image_rows[pairs.relevance.caption_rows] == pairs.relevance.image_rows
    assert is_own.sum() == len(pairs)
    assert (pairs.relevance.grades[is_own] == 1).all()


def test_changing_a_collection_does_not_change_the_next_one():
    first = collection("scenes-80", split="validation")
    targets, paths = first.targets.copy(), list(first.paths)
    first.targets[:] = 0.5
    first.known[:] = False
    first.paths.clear()
    second = collection("scenes-80", split="validation")
    np.testing.assert_array_equal(second.targets, targets)
    assert second.known.all()
    assert second.paths == paths


@SPLITS
def test_every_image_is_there_and_no_other(split):
    paths = {Path(p) for p in collection("scenes-80", split=split).paths}
    assert paths == set(bundled_collection_folder("scenes-80", split=split).rglob("*.jpg"))
    with Image.open(min(paths)) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (128, 128))


def test_no_image_comes_twice():
    folder = bundled_collection_folder("scenes-80", split="test").parent
    prints = [hashlib.sha256(f.read_bytes()).digest() for f in folder.rglob("*.jpg")]
    assert len(set(prints)) == len(prints) == 3000


def test_the_collection_is_at_most_20_megabytes():
    folder = bundled_collection_folder("scenes-80", split="test").parent
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) <= 20e6


@SPLITS
def test_the_settings_are_those_of_the_table(split):
    about = json.loads(
        (bundled_collection_folder("scenes-80", split=split) / "about.json").read_text()
    )
    stated = COLLECTIONS["scenes-80"][split]
    assert (about["count"], about["seed"]) == (stated.count, stated.seed)
    assert (about["vocabulary"], about["domain"], about["pixels"]) == ("scenes-80", "photo", 128)


def test_no_two_sets_are_drawn_with_the_same_seed():
    seeds = [
        s.seed
        for table in (COLLECTIONS, BENCHMARK_COLLECTIONS)
        for s in table["scenes-80"].values()
    ]
    assert len(set(seeds)) == len(seeds) == 6


@SPLITS
def test_the_generator_still_makes_these_images(split, tmp_path):
    shipped = read_scenes(bundled_collection_folder("scenes-80", split=split))
    seed = COLLECTIONS["scenes-80"][split].seed
    again = read_scenes(write_scenes(tmp_path / split, count=8, seed=seed))
    assert again.main_labels == shipped.main_labels[:8]
    assert (again.images.targets == shipped.images.targets[:8]).all()
    for new, old in zip(again.images.paths, shipped.images.paths[:8], strict=True):
        change = np.asarray(Image.open(new), dtype=float) - np.asarray(Image.open(old))
        assert abs(change).mean() < 3  # of 255: fonts and JPEG libraries may differ a little


def test_an_unknown_collection_gets_the_list():
    with pytest.raises(UnknownName, match=r"collection must be one of scenes-80; got 'coco'\."):
        collection("coco", split="test")


def test_an_unknown_split_gets_the_list():
    with pytest.raises(UnknownName, match=r"must be one of train, validation, test; got 'dev'\."):
        collection("scenes-80", split="dev")
