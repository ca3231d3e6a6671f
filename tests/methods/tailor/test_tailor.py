"""The student: its size, its rules of thumb, and that it needs no words."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders.towers.position_embeddings import interpolate_position_embeddings
from surelabel.errors import ConfigError, InputError
from surelabel.links import Sigmoid
from surelabel.methods import Tailor
from surelabel.records import Features

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_adapter.json").read_text())
NAMES = ["lion", "car", "pizza"]
WIDE = {"RN101_2048": (2048, 512), "ViT_768": (768, 768)}  # of the tokens, of the joint space


class Tower:
    """An encoder of which only its sizes are known; whoever asks it for more fails."""

    input_side = 224

    def __init__(self, trunk_width, width):
        self.trunk_width, self.width = trunk_width, width


def tailored(names=NAMES, trunk=24, joint=16, **settings):
    torch.manual_seed(0)
    return Tailor(Tower(trunk, joint), names, **{"width": 16} | settings).eval()


def seen(n=4, grid=(2, 3), trunk=24):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(n, grid[0] * grid[1], trunk, generator=generator)
    return Features(torch.zeros(n, 16), grid=grid, layers={-1: tokens})


@pytest.mark.parametrize("key", GOLDEN["counts"])
def test_it_is_as_large_as_that_of_the_authors(key):
    trunk, classes = key.rsplit("_C", 1)
    names = [f"name {i}" for i in range(int(classes))]
    it, counts = tailored(names, *WIDE[trunk], width=256), GOLDEN["counts"][key]
    assert sum(p.numel() for p in it.parameters()) == counts["total"]
    outside = sum(p.numel() for p in it.token_adapter.norm.parameters())
    assert counts["total"] - outside == counts["in_optimizer"]


@pytest.mark.parametrize(
    ("trunk", "joint", "hidden"), [(2048, 512, 128), (2048, 1024, 128), (768, 512, 384), (8, 4, 1)]
)
def test_the_bottleneck_is_narrower_in_a_resnet(trunk, joint, hidden):
    assert tailored(trunk=trunk, joint=joint).token_adapter.bottleneck[0].out_features == hidden
    chosen = (
        tailored(trunk=trunk, joint=joint, reduction=4).token_adapter.bottleneck[0].out_features
    )
    assert chosen == trunk // 4


def test_it_looks_twice_as_closely_as_the_encoder_was_made_for():
    assert tailored().image_size == 448
    assert tailored(image_size=224).image_size == 224
    assert Tailor.image_size is None


def test_the_order_of_names_is_that_of_the_columns():
    one, other = tailored(), tailored(NAMES[::-1])
    torch.testing.assert_close(one(seen()), other(seen()).flip(1))


def test_each_image_is_scored_on_its_own_once_it_is_fitted():
    it, features = tailored(), seen()
    it.train()(features)  # moves the statistics of the norm
    it.eval()
    alone = [
        it(Features(features.pooled[:1], grid=(2, 3), layers={-1: x[None]}))
        for x in features.layers[-1]
    ]
    torch.testing.assert_close(it(features), torch.cat(alone))


def test_many_images_are_scored_as_few_are():
    it, features = tailored(), seen(70)
    few = Features(features.pooled[60:], grid=(2, 3), layers={-1: features.layers[-1][60:]})
    torch.testing.assert_close(it(features)[60:], it(few))
    torch.testing.assert_close(it.heat_maps(features)[60:], it.heat_maps(few))


def test_all_images_of_a_batch_share_the_statistics_of_the_norm():
    it, features = tailored(dropout=0.0).train(), seen(70)
    tokens = features.layers[-1]
    expected = it.token_adapter.projection((it.token_adapter.bottleneck(tokens) + tokens) / 2)
    it(features)
    found = 10 * it.token_adapter.norm.running_mean  # a tenth of the way from 0
    torch.testing.assert_close(found, expected.mean(dim=(0, 1)), atol=1e-5, rtol=1e-4)


def test_its_state_is_all_it_takes():
    it, other = tailored(), tailored(["a", "b", "c"])
    it.train()(seen())
    other.load_state_dict(it.state_dict())
    assert torch.equal(it.eval()(seen()), other(seen()))


def test_it_learns_by_heart_what_is_at_which_place():
    it = tailored(dropout=0.0)
    features = seen(8)
    targets = (torch.rand(8, 3, generator=torch.Generator().manual_seed(2)) < 0.5).float()
    optimizer = torch.optim.AdamW(it.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(it.train()(features), targets).backward()
        optimizer.step()
    assert torch.equal(it.eval()(features) > 0, targets.bool())
    assert all(p.grad is not None for p in it.parameters())


def test_levels_start_at_how_common_each_label_is():
    it, targets = tailored(), torch.zeros(99, 3)
    targets[:4, 0], targets[:59, 1] = 1.0, 1.0
    it.initialize(seen(), targets, torch.ones(99, 3, dtype=torch.bool), Sigmoid())
    expected = torch.tensor([0.045, 0.595, 0.005])
    torch.testing.assert_close(it.decoder.bias.sigmoid(), expected, atol=1e-4, rtol=0)


def test_a_map_is_the_score_of_each_place_alone():
    it, features = tailored(), seen()
    maps, places = it.heat_maps(features), it.token_adapter(features.layers[-1], (2, 3))
    assert maps.shape == (4, 3, 2, 3)
    for image in range(4):
        for down in range(2):
            for across in range(3):
                one = 3 * down + across
                alone = it.decoder(places[image : image + 1, one : one + 1])[0]
                torch.testing.assert_close(maps[image, :, down, across], alone)


def test_slow_parts_are_parts_that_it_has():
    it = tailored()
    (prefix,) = it.learning_rate_scales
    slow = [name for name, _ in it.named_parameters() if name.startswith(prefix + ".")]
    assert len(slow) == len(list(it.decoder.layers.parameters())) > 0
    assert tailored(decoder_learning_rate_scale=1.0).learning_rate_scales == {prefix: 1.0}


def test_positions_of_a_larger_image_keep_the_class_row_first():
    wanted, numbers = GOLDEN["resize"], torch.arange(50.0)  # 7 by 7 places after the class row
    plain = {"size": (14, 14), "mode": "bilinear", "align_corners": False}
    straight = F.interpolate(numbers[1:].view(1, 1, 7, 7), **plain).flatten()
    assert straight[:4].tolist() == wanted["correct_first5"][1:]
    assert straight[-3:].tolist() == wanted["correct_last3"]
    class_last = F.interpolate(numbers[:-1].view(1, 1, 7, 7), **plain).flatten()
    assert class_last[:5].tolist() == wanted["code_first5"]
    found = interpolate_position_embeddings(numbers[:, None], (7, 7), (14, 14))[:, 0]
    assert found[0] == 0
    assert (found[1:] - straight).abs().max() < 0.75  # cubic where that is straight
    assert wanted["max_abs_diff"] == 5.25


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_size": 0}, "image_size must be a whole number of at least 1; got 0"),
        ({"image_size": 96.5}, "image_size must be a whole number of at least 1; got 96.5"),
        ({"width": 12}, "width must be a multiple of 8; got 12"),
        ({"layers": 0}, "layers must be a whole number of at least 1; got 0"),
        ({"reduction": -1}, "reduction must be a whole number of at least 1; got -1"),
        (
            {"dropout": 1.0},
            r"dropout must be in \[0, 1\) and decoder_learning_rate_scale 0 or more; "
            "got dropout=1.0",
        ),
        (
            {"decoder_learning_rate_scale": -1.0},
            "decoder_learning_rate_scale 0 or more; "
            "got dropout=0.1, decoder_learning_rate_scale=-1.0",
        ),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        tailored(**settings)


def test_features_without_tokens_are_refused():
    with pytest.raises(
        InputError, match=r"tailor needs features.grid and the last tokens .* kind='trunk'"
    ):
        tailored()(Features(torch.zeros(1, 16)))


def test_a_thousand_names_are_scored():
    names = [f"name {i}" for i in range(1000)]
    with torch.no_grad():
        assert tailored(names)(seen(2)).shape == (2, 1000)
