import shutil
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.errors import DataError, InputError, NoReadableImage
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.recognizer.prediction_blocks import (
    IMAGES_PER_BLOCK,
    IMAGES_PER_PATCH_BLOCK,
    IMAGES_PER_VIEW_BLOCK,
    images_per_prediction_block,
)

NAMES = ["lion", "guitar", "apple"]


@pytest.fixture(scope="module")
def paths():
    return tuple(collection("scenes-80", split="test").paths[:7])


@pytest.fixture
def images(paths, tmp_path, monkeypatch):
    """Seven images, of which the second and the third cannot be read."""
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    copies = [str(shutil.copy(path, tmp_path / "images")) for path in paths]
    for path in copies[1:3]:
        open(path, "wb").close()
    return copies


@pytest.fixture
def recognizer(images):
    return Recognizer.zero_shot("tiny-vit", NAMES)


def test_the_blocks_together_are_the_predictions(recognizer, images):
    whole = recognizer.predict(images)
    blocks = list(recognizer.predict_blocks(images, block_size=3))
    assert [len(block) for block in blocks] == [1, 3, 1]
    assert [path for block in blocks for path in block.paths] == list(whole.paths)
    assert [image for block in blocks for image in block.skipped] == list(whole.skipped)
    assert [digest for block in blocks for digest in block.hashes] == list(whole.hashes)
    for name in ("scores", "logits", "features"):
        parts = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_allclose(parts, getattr(whole, name), atol=1e-5)
    assert {block.model for block in blocks} == {recognizer.fingerprint}


def test_predict_joins_blocks_of_any_size(recognizer, images, monkeypatch):
    whole = recognizer.predict(images)
    monkeypatch.setattr("surelabel.recognizer.prediction_blocks.IMAGES_PER_BLOCK", 2)
    joined = recognizer.predict(images)
    assert isinstance(joined.features, np.memmap)
    assert (joined.paths, joined.skipped) == (whole.paths, whole.skipped)
    assert list(joined.hashes) == list(whole.hashes)
    for name in ("scores", "logits", "features"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), atol=1e-5)
    assert joined.encoding_stats.n_cached == 5
    assert joined.encoding_stats.encoder_passes == whole.encoding_stats.encoder_passes == 5


def test_a_block_without_a_readable_image_has_no_rows(recognizer, images):
    blocks = list(recognizer.predict_blocks(images[1:4], block_size=2))
    assert [len(block) for block in blocks] == [0, 1]
    assert blocks[0].logits.shape == (0, 3)
    assert blocks[0].features.shape == (0, recognizer.encoder.width)
    assert [image.path for image in blocks[0].skipped] == images[1:3]


def test_if_no_image_of_any_block_is_readable_the_end_is_an_error(recognizer, images):
    blocks = recognizer.predict_blocks(images[1:3], block_size=1)
    assert [len(next(blocks)) for _ in range(2)] == [0, 0]
    with pytest.raises(
        NoReadableImage, match=r"got 2 unreadable images\. The first error: .*1\.jpg: empty file"
    ):
        next(blocks)


def test_strict_stops_at_the_first_unreadable_image(recognizer, images):
    blocks = recognizer.predict_blocks(images, block_size=1, strict=True)
    assert len(next(blocks)) == 1
    with pytest.raises(DataError, match=r"00001\.jpg: empty file"):
        next(blocks)


@pytest.mark.parametrize("block_size", [0, -1, 2.5, "3", float("nan")])
def test_a_block_size_that_is_no_number_of_images_is_refused_at_once(
    recognizer, images, block_size
):
    expected = f"block_size must be an integer of at least 1, or None; got {block_size!r}. Omit"
    with pytest.raises(InputError, match=expected):
        recognizer.predict_blocks(images, block_size=block_size)


@pytest.mark.parametrize("workers", [-1, 2.5, "3"])
def test_a_number_of_workers_that_is_no_count_is_refused_at_once(recognizer, images, workers):
    expected = f"workers must be an integer of at least 0, or None; got {workers!r}. Omit workers"
    with pytest.raises(InputError, match=expected):
        recognizer.predict(images, workers=workers)
    with pytest.raises(InputError, match=expected):
        recognizer.predict_blocks(images, workers=workers)


def test_vectors_and_images_in_memory_have_blocks_too(recognizer, images):
    vectors = recognizer.predict(images).features.astype(np.float32)
    blocks = list(recognizer.predict_blocks(vectors, block_size=2))
    assert [len(block) for block in blocks] == [2, 2, 1]
    scores = np.concatenate([block.scores for block in blocks])
    np.testing.assert_allclose(scores, recognizer.predict(vectors).scores, atol=1e-5)
    pictures = [Image.open(path) for path in (images[0], images[3], images[4])]
    (block,) = recognizer.predict_blocks(pictures, block_size=2)
    assert block.paths == ["image 0", "image 1", "image 2"]


def test_progress_counts_the_images_of_all_blocks(recognizer, images):
    calls = []
    list(
        recognizer.predict_blocks(
            images, block_size=3, progress=lambda done, total: calls.append((done, total))
        )
    )
    assert calls == [(3, 7), (6, 7), (7, 7)]


def test_the_warning_of_foreign_images_is_given_once_for_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    paths = []
    for number in range(8):
        paths.append(str(tmp_path / f"{number}.png"))
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(paths[-1])
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES)
    with pytest.warns(UserWarning, match="These 8 images are out of distribution") as caught:
        list(recognizer.predict_blocks(paths, block_size=3))
    assert len(caught) == 1


@pytest.mark.parametrize("name", METHODS)
def test_the_block_size_follows_from_the_features_of_the_method(name):
    sizes = {"patches": IMAGES_PER_PATCH_BLOCK, "views": IMAGES_PER_VIEW_BLOCK}
    recognizer = Recognizer(Run(method=Choice(name)), NAMES)
    needs = set(METHODS[name].needs) | (
        {"patches"}
        if {"trunk", "attention", "self_aware", "multi_layer"} & set(METHODS[name].needs)
        else set()
    )
    if name == "recover_match":
        needs |= {"patches"}
    expected = next((size for need, size in sizes.items() if need in needs), IMAGES_PER_BLOCK)
    assert images_per_prediction_block(recognizer.method) == expected


def test_patch_features_of_only_one_block_are_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("surelabel.recognizer.prediction_blocks.IMAGES_PER_PATCH_BLOCK", 8)
    recognizer = Recognizer(Run(method=Choice("dense_regions", {"windows": 0})), NAMES)
    paths = collection("scenes-80", split="test").paths[:64]
    recognizer.predict(paths[:1])
    peaks = []
    for count in (16, 64):
        recognizer.predict(paths[:count], workers=0)  # fills the cache
        tracemalloc.start()
        recognizer.predict(paths[:count], workers=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
