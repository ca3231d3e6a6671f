import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.features.feature_kinds import (
    encode_feature_kind,
    ladder_feature_kind,
    parse_ladder_feature_kind,
)


def test_a_ladder_is_named_by_its_blocks():
    assert ladder_feature_kind(2, 4) == "ladder/2/4"
    assert parse_ladder_feature_kind("ladder/2/4") == (2, 4)
    assert parse_ladder_feature_kind("ladder/10/12") == (10, 12)
    assert parse_ladder_feature_kind("trunk") is None


@pytest.mark.parametrize(
    "part", ["ladder", "ladder/1", "ladder/1/2/3", "ladder/a/2", "ladder/-1/2"]
)
def test_a_ladder_without_its_two_numbers_is_refused(part):
    with pytest.raises(ConfigError, match=rf"ladder/FIRST/DEPTH, such as ladder/0/3; got '{part}'"):
        parse_ladder_feature_kind(part)


def test_each_part_is_what_the_encoder_gives_under_its_name():
    encoder = load_encoder("tiny-vit")
    pixels = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    assert torch.equal(
        encode_feature_kind(encoder, "images", pixels).pooled, encoder.encode_images(pixels).pooled
    )
    wanted = encoder.encode_ladder_features(pixels, first_block=1, depth=4)
    found = encode_feature_kind(encoder, "ladder/1/4", pixels)
    assert torch.equal(found.self_aware_sum, wanted.self_aware_sum)
    assert torch.equal(found.layers[-5], wanted.layers[-5])
    with pytest.raises(ConfigError, match=r"from 1 to 6 for this tower; got 7"):
        encode_feature_kind(encoder, "ladder/0/7", pixels)
