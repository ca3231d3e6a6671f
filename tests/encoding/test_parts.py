import pytest
import torch

from surelabel.backbones import load_backbone
from surelabel.encoding.parts import ladder_part, rungs, seen
from surelabel.errors import ConfigError


def test_a_ladder_is_named_by_its_blocks():
    assert ladder_part(2, 4) == "ladder/2/4"
    assert rungs("ladder/2/4") == (2, 4)
    assert rungs("ladder/10/12") == (10, 12)
    assert rungs("trunk") is None


@pytest.mark.parametrize(
    "part", ["ladder", "ladder/1", "ladder/1/2/3", "ladder/a/2", "ladder/-1/2"]
)
def test_a_ladder_without_its_two_numbers_is_refused(part):
    with pytest.raises(ConfigError, match=rf"ladder/FIRST/DEPTH, as ladder/0/3\. Got '{part}'"):
        rungs(part)


def test_each_part_is_what_the_encoder_gives_under_its_name():
    encoder = load_backbone("tiny-vit")
    pixels = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    assert torch.equal(seen(encoder, "images", pixels).pooled, encoder.images(pixels).pooled)
    wanted = encoder.ladder(pixels, first=1, depth=4)
    found = seen(encoder, "ladder/1/4", pixels)
    assert torch.equal(found.beside, wanted.beside)
    assert torch.equal(found.layers[-5], wanted.layers[-5])
    with pytest.raises(ConfigError, match=r"from 1 to 6 for this tower\. Got 7"):
        seen(encoder, "ladder/0/7", pixels)
