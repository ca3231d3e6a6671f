import pytest
import torch
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.data import collection
from surelabel.encoding import encode, encode_pictures
from surelabel.errors import InputError


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-rn")


@pytest.mark.parametrize("part", ["images", "patches", "attentive", "trunk"])
def test_pictures_in_memory_are_seen_like_files(backbone, part):
    paths = list(collection("scenes-80", split="test").paths[:5])
    files = encode(backbone, paths, part=part)
    memory = encode_pictures(backbone, [Image.open(path) for path in paths], part=part, batch=2)
    torch.testing.assert_close(memory.features.pooled, files.features.pooled, atol=1e-3, rtol=0)
    assert memory.features.grid == files.features.grid
    assert memory.rows.tolist() == [0, 1, 2, 3, 4]
    assert memory.passes.tolist() == [1] * 5
    for one, other in ((memory, files), (files, memory)):
        for name in ("patches", "attention", "layers"):
            assert (getattr(one.features, name) is None) == (getattr(other.features, name) is None)


def test_a_ladder_of_pictures_in_memory_is_that_of_files():
    encoder, paths = load_backbone("tiny-vit"), collection("scenes-80", split="test").paths[:3]
    files = encode(encoder, list(paths), part="ladder/1/2").features
    opened = [Image.open(path) for path in paths]
    memory = encode_pictures(encoder, opened, part="ladder/1/2", batch=2).features
    torch.testing.assert_close(memory.beside, files.beside, atol=4e-3, rtol=2e-3)
    torch.testing.assert_close(memory.layers[-3], files.layers[-3], atol=4e-3, rtol=2e-3)


def test_a_turned_or_grey_picture_is_seen_upright_and_in_colour(backbone):
    picture = Image.effect_noise((60, 40), 80)
    turned = picture.rotate(90, expand=True)
    turned.getexif()[0x0112] = 6
    found = encode_pictures(backbone, [picture, turned, picture.convert("RGB")]).features.pooled
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[0], found[2])


def test_no_pictures_are_refused(backbone):
    with pytest.raises(InputError, match="There are no pictures to encode"):
        encode_pictures(backbone, [])
