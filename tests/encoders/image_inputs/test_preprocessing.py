import math
import pickle

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image

from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor, check_preprocess_cfg
from surelabel.errors import ConfigError

SETTINGS = {
    "size": 24,
    "mean": [0.4, 0.5, 0.6],
    "std": [0.2, 0.25, 0.3],
    "interpolation": "bicubic",
    "resize_mode": "squash",
}


def random_image(width, height):
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def normalized(image):
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255
    mean, std = (torch.tensor(SETTINGS[k])[:, None, None] for k in ("mean", "std"))
    return (pixels - mean) / std


def test_squash_keeps_everything_and_shortest_crops_the_middle():
    image = random_image(60, 30)
    squashed = image.resize((24, 24), Image.Resampling.BICUBIC)
    torch.testing.assert_close(ImagePreprocessor(SETTINGS)(image), normalized(squashed))
    cropped = image.resize((48, 24), Image.Resampling.BILINEAR).crop((12, 0, 36, 24))
    shortest = {**SETTINGS, "resize_mode": "shortest", "interpolation": "bilinear"}
    torch.testing.assert_close(ImagePreprocessor(shortest)(image), normalized(cropped))


@pytest.mark.parametrize("resize_mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_images_are_prepared_as_open_clip_prepares_them(resize_mode, interpolation):
    settings = {**SETTINGS, "resize_mode": resize_mode, "interpolation": interpolation}
    arguments = {k: v for k, v in settings.items() if k != "size"}
    theirs = open_clip.image_transform(24, is_train=False, **arguments)
    for size in ((31, 77), (24, 24), (10, 9)):
        image = random_image(*size)
        assert torch.equal(ImagePreprocessor(settings)(image), theirs(image))


@pytest.mark.parametrize("resize_mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("side", [24, 37])
def test_normalized_batches_of_resized_images_have_the_bits_of_single_images(resize_mode, side):
    prepare = ImagePreprocessor({**SETTINGS, "resize_mode": resize_mode, "size": side})
    images = [random_image(*size) for size in ((31, 77), (side, side), (10, 9), (900, 11))]
    resized = np.stack([prepare.resize(image) for image in images])
    assert (resized.dtype, resized.shape) == (np.uint8, (4, side, side, 3))
    expected = torch.stack([prepare(image) for image in images])
    assert torch.equal(prepare.normalize(resized), expected)


@pytest.mark.parametrize("size", [(8 * 10, 10), (10, 8 * 10 + 1), (75, 10)])
def test_up_to_eight_times_as_long_as_wide_nothing_is_cut_before(size):
    settings = {**SETTINGS, "resize_mode": "shortest"}
    arguments = {k: v for k, v in settings.items() if k != "size"}
    theirs = open_clip.image_transform(24, is_train=False, **arguments)
    assert torch.equal(
        ImagePreprocessor(settings)(random_image(*size)), theirs(random_image(*size))
    )


@pytest.mark.parametrize("size", [(3000, 6), (5, 999), (4001, 30)])
@pytest.mark.parametrize("towers_size", [24, (24, 24), (16, 24), (24, 16)])
def test_of_a_very_oblong_image_the_middle_is_prepared_almost_as_before(size, towers_size):
    settings = {**SETTINGS, "size": towers_size, "resize_mode": "shortest"}
    arguments = {k: v for k, v in settings.items() if k != "size"}
    theirs = open_clip.image_transform(towers_size, is_train=False, **arguments)
    smooth = random_image(7, 7).resize(size, Image.Resampling.BICUBIC)
    torch.testing.assert_close(
        ImagePreprocessor(settings)(smooth), theirs(smooth), atol=0.1, rtol=0
    )


def test_a_very_oblong_image_needs_little_memory():
    settings = {**SETTINGS, "size": 224, "resize_mode": "shortest"}
    preprocess, sizes = ImagePreprocessor(settings), []
    preprocess._transform.transforms.insert(
        1, lambda resized: sizes.append(resized.size) or resized
    )
    preprocess(random_image(20_000, 2))
    assert sizes == [(1792, 224)]


def test_a_worker_gets_a_small_copy_that_does_the_same():
    ours = ImagePreprocessor(SETTINGS)
    copy = pickle.dumps(ours)
    assert len(copy) < 4000
    assert torch.equal(pickle.loads(copy)(random_image(9, 9)), ours(random_image(9, 9)))


@pytest.mark.parametrize("missing", ["mean", "std", "interpolation", "resize_mode"])
def test_a_setting_that_is_missing_is_demanded(missing):
    left = {k: v for k, v in SETTINGS.items() if k != missing}
    with pytest.raises(ConfigError, match=f"in here must contain .*; got no {missing}. Add"):
        check_preprocess_cfg(left, "here")
    check_preprocess_cfg(SETTINGS, "here")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"resize_mode": "fit"}, "resize_mode in here must be one of shortest, .* got 'fit'"),
        ({"interpolation": "nearest"}, "interpolation in here must be one of bicubic, bilinear"),
        ({"mean": 0.5}, "mean in here must be three numbers"),
        ({"std": [1, 2]}, "std in here must be three numbers"),
        ({"std": [0, 0, 0]}, r"std in here must be three numbers above 0.* got \[0, 0, 0\]"),
        ({"std": [0.2, 0.2, -0.2]}, "std in here must be three numbers above 0"),
        ({"mean": ["a", "b", "c"]}, "mean in here must be three numbers"),
        ({"mean": [0.5, math.nan, 0.5]}, "mean in here must be three numbers"),
        ({"mean": [0.5, math.inf, 0.5]}, "mean in here must be three numbers"),
        ({"mean": [True, 0.5, 0.5]}, "mean in here must be three numbers"),
    ],
)
def test_an_invalid_setting_is_refused(wrong, sentence):
    with pytest.raises(ConfigError, match=sentence):
        check_preprocess_cfg({**SETTINGS, **wrong}, "here")


@pytest.mark.parametrize("size", [(1, 4000), (4000, 1), (3, 20_000), (20_000, 10)])
def test_an_image_that_is_too_long_for_longest_is_cropped_to_one_pixel(size):
    settings = {**SETTINGS, "resize_mode": "longest"}
    image = Image.new("RGB", size, "white")
    pixels = ImagePreprocessor(settings)(image)
    assert pixels.shape == (3, 24, 24)
    is_white = (pixels[0] == pixels[0].max()).float()
    assert is_white.sum() == 24  # one row or column; the rest is black padding


def test_the_limit_of_pillow_does_not_apply_to_crops(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    settings = {**SETTINGS, "resize_mode": "shortest"}
    assert ImagePreprocessor(settings)(random_image(4000, 100)).shape == (3, 24, 24)
