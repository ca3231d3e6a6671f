import numpy as np
import pytest
from PIL import Image

from surelabel.data import image_synthesis, label_captioned_images, synthesize_images
from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.image_synthesis import arrange_captions
from surelabel.data.scene_arrangement import MIN_VISIBLE_SHARE, SceneSampler
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scenes import render_scenes
from surelabel.errors import ConfigError, DataError, InputError, UnknownName
from surelabel.records import Captions

WORDS = read_scene_vocabulary("scenes-80")
NAMES = [word.name for word in WORDS]
TEXTS = ["a photo of a lion and a guitar.", "the blue sky", "Two lions, a bus, a pizza", "a bus"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("synthesized") / "out"


@pytest.fixture(scope="module")
def captions(folder):
    return synthesize_images(Captions(TEXTS), folder, seed=3, pixels=64)


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image, dtype=float)


def test_each_caption_that_mentions_a_word_has_an_image(captions, folder):
    assert list(captions.texts) == [TEXTS[0], TEXTS[2], TEXTS[3]]
    assert list(captions.paths) == [str(folder / f"images/0000{i}.jpg") for i in range(3)]
    assert all(pixels(path).shape == (64, 64, 3) for path in captions.paths)
    assert {file.name for file in folder.iterdir()} == {"images", "captions.csv"}


def test_the_captions_give_the_labels_of_the_images(captions):
    labelled = label_captioned_images(captions, ["lion", "bus", "dog"], unmentioned=0.0)
    assert labelled.targets.tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert labelled.known.all()


def test_the_objects_of_a_scene_are_those_of_its_caption_and_visible():
    mentions = [np.array([3, 40, 7, 12, 60, 71, 9]), np.array([5])] * 12
    sprites = draw_sprites(WORDS)
    scenes = arrange_captions(mentions, ["x"] * 24, [[1, i] for i in range(24)], sprites)
    shares = render_scenes(scenes, sprites, 128).visible_shares
    for scene, indices, share in zip(scenes, mentions, shares, strict=True):
        assert sorted(scene.words) == sorted(indices)
        assert scene.sides[0] > scene.sides[1:].max(initial=0)
        assert share[: len(indices)].min() > 0.9 * MIN_VISIBLE_SHARE
    assert len({int(scene.words[0]) for scene in scenes[::2]}) > 2


def test_scenes_are_not_those_of_the_sampler_with_the_same_seed():
    scene = SceneSampler(WORDS, seed=3)(0)
    [other] = arrange_captions([scene.words[:1]], ["x"], [[3, 0]], draw_sprites(WORDS))
    assert other.background != scene.background


def test_the_same_seed_gives_the_same_images_and_another_seed_others(captions, tmp_path):
    again, other, sketch = (
        synthesize_images(Captions(TEXTS), tmp_path / name, seed=seed, pixels=64, domain=domain)
        for name, seed, domain in (("a", 3, "photo"), ("b", 4, "photo"), ("c", 3, "sketch"))
    )
    first = pixels(captions.paths[0])
    assert np.array_equal(pixels(again.paths[0]), first)
    assert not np.array_equal(pixels(other.paths[0]), first)
    assert pixels(sketch.paths[0]).mean() > 180  # lines on a light background


def test_more_objects_than_a_scene_has_are_left_out(tmp_path):
    many = "a scene with " + ", ".join(f"a {name}" for name in NAMES[:8])
    captions = synthesize_images(Captions([many, "a lion"]), tmp_path / "x", seed=0, pixels=16)
    assert list(captions.texts) == ["a lion"]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"seed": -1}, ConfigError, "seed must be at least 0"),
        ({"pixels": 8}, ConfigError, "pixels must be at least 16; got seed 0 and pixels 8"),
        ({"domain": "oil"}, UnknownName, "domain must be one of .*; got 'oil'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, error, message, tmp_path):
    with pytest.raises(error, match=message):
        synthesize_images(Captions(TEXTS), tmp_path / "x", **{"seed": 0} | settings)
    assert not (tmp_path / "x").exists()


def test_a_folder_with_other_files_is_kept(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(
        DataError, match="must be a new or empty folder; got a file or a folder with files"
    ):
        synthesize_images(Captions(TEXTS), tmp_path, seed=0)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_captions_without_a_word_of_the_vocabulary_are_refused(tmp_path):
    with pytest.raises(InputError, match="got 1 caption without any of"):
        synthesize_images(Captions(["the blue sky"]), tmp_path / "x", seed=0)


def test_batches_do_not_change_the_images(captions, tmp_path, monkeypatch):
    monkeypatch.setattr(image_synthesis, "IMAGES_PER_BATCH", 1)
    alone = synthesize_images(Captions(TEXTS), tmp_path / "x", seed=3, pixels=64)
    for one, other in zip(alone.paths, captions.paths, strict=True):
        assert np.array_equal(pixels(one), pixels(other))
