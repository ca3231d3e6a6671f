import pytest
import torch
from PIL import Image

from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import InputError
from surelabel.features import encode_image_files, encode_images_in_memory


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-rn")


@pytest.mark.parametrize("part", ["images", "patches", "attentive", "trunk"])
def test_images_in_memory_are_seen_like_files(encoder, part):
    paths = list(collection("scenes-80", split="test").paths[:5])
    files = encode_image_files(encoder, paths, kind=part)
    memory = encode_images_in_memory(
        encoder, [Image.open(path) for path in paths], kind=part, batch_size=2
    )
    torch.testing.assert_close(memory.features.pooled, files.features.pooled, atol=1e-3, rtol=0)
    assert memory.features.grid == files.features.grid
    assert memory.rows.tolist() == [0, 1, 2, 3, 4]
    assert memory.encoder_passes.tolist() == [1] * 5
    for one, other in ((memory, files), (files, memory)):
        for name in ("patches", "attention", "layers"):
            assert (getattr(one.features, name) is None) == (getattr(other.features, name) is None)


def test_a_ladder_of_images_in_memory_is_that_of_files():
    encoder, paths = load_encoder("tiny-vit"), collection("scenes-80", split="test").paths[:3]
    files = encode_image_files(encoder, list(paths), kind="ladder/1/2").features
    opened = [Image.open(path) for path in paths]
    memory = encode_images_in_memory(encoder, opened, kind="ladder/1/2", batch_size=2).features
    torch.testing.assert_close(memory.self_aware_sum, files.self_aware_sum, atol=4e-3, rtol=2e-3)
    torch.testing.assert_close(memory.layers[-3], files.layers[-3], atol=4e-3, rtol=2e-3)


def test_a_turned_or_grey_image_is_seen_upright_and_in_colour(encoder):
    image = Image.effect_noise((60, 40), 80)
    turned = image.rotate(90, expand=True)
    turned.getexif()[0x0112] = 6
    found = encode_images_in_memory(encoder, [image, turned, image.convert("RGB")]).features.pooled
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[0], found[2])


def test_no_images_are_refused(encoder):
    with pytest.raises(InputError, match="at least one image; got none"):
        encode_images_in_memory(encoder, [])


def test_times_are_sums_over_images_and_over_passes(encoder, timed):
    images = [Image.effect_noise((60, 40), 80) for _ in range(5)]
    found = encode_images_in_memory(timed(encoder), images, batch_size=2)
    assert (found.n_cached, found.decode_seconds, found.model_seconds) == (0, 5 * 10, 3 * 1000)
