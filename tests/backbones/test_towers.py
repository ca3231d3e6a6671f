import json
import math

import pytest
import torch
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel.backbones.loading import load_backbone
from surelabel.backbones.templates import TEMPLATES
from surelabel.backbones.towers import Towers
from surelabel.errors import ConfigError, DataError, InputError

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2}
CONFIG = {"embed_dim": 24, "vision_cfg": VIT, "text_cfg": TEXT}
PREPROCESS = {
    "size": 32,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
    "interpolation": "bicubic",
    "resize_mode": "shortest",
}


def towers(**more):
    torch.manual_seed(0)
    config = {**CONFIG, **more}
    preprocess = {**PREPROCESS, "size": config["vision_cfg"]["image_size"]}
    tokenizer = SimpleTokenizer(context_length=16)
    return Towers(CLIP(**config), tokenizer, name="small", config=config, preprocess=preprocess)


@pytest.fixture(scope="module")
def small():
    return towers()


def test_a_text_is_the_unit_mean_of_its_unit_sentences(small):
    templates = TEMPLATES["ensemble"][:3]
    texts = small.texts(["dog", "hot dog"], templates)
    for name, text in zip(["dog", "hot dog"], texts, strict=True):
        vectors = [small.sentences([t.replace("{}", name)])[0] for t in templates]
        mean = sum(vectors) / 3
        torch.testing.assert_close(text, mean / mean.norm())


def test_many_sentences_are_encoded_in_parts_and_none_are_no_mistake(small):
    sentences = [f"picture {i}" for i in range(300)]
    whole = small.sentences(sentences)
    assert whole.shape == (300, 24)
    torch.testing.assert_close(whole[299:], small.sentences(sentences[299:]), atol=1e-5, rtol=0)
    assert small.sentences([]).shape == (0, 24)
    assert small.texts([], TEMPLATES["one"]).shape == (0, 24)


def test_a_template_without_a_place_for_the_name_is_refused(small):
    with pytest.raises(ConfigError, match="exactly one"):
        small.texts(["dog"], ["a photo"])


def test_pictures_of_another_size_are_refused(small):
    with pytest.raises(InputError, match=r"\(n, 3, 32, 32\). Got \(1, 3, 40, 40\)"):
        small.images(torch.zeros(1, 3, 40, 40))
    with pytest.raises(InputError, match="axes"):
        small.images(torch.zeros(3, 32, 32))


def test_a_head_can_learn_from_what_the_towers_give(small):
    pooled = small.images(torch.randn(2, 3, 32, 32)).pooled
    head = torch.nn.Linear(24, 1)
    head(pooled).sum().backward()
    assert head.weight.grad.abs().sum() > 0
    assert not pooled.is_inference()


def test_the_scale_is_the_exponential_of_the_learnt_one_also_beside_a_bias(tmp_path):
    like_siglip = towers(init_logit_scale=2.0, init_logit_bias=-10.0)
    assert like_siglip.scale == pytest.approx(7.389056)
    like_siglip.save(tmp_path / "saved")
    again = load_backbone(f"local-dir:{tmp_path / 'saved'}")
    assert again.scale == like_siglip.scale
    assert again.fingerprint == like_siglip.fingerprint
    assert float(again.model.logit_bias) == -10.0


def test_towers_at_another_size_are_saved_and_loaded_at_that_size(small, tmp_path):
    large = small.at(64)
    assert large.preprocess["size"] == [64, 64]
    assert large.fingerprint != small.fingerprint
    assert small.at(32) is small
    large.save(tmp_path / "large")
    again = load_backbone(f"local-dir:{tmp_path / 'large'}")
    assert again.fingerprint == large.fingerprint
    pixels = torch.randn(1, 3, 64, 64)
    assert torch.equal(again.patches(pixels).patches, large.patches(pixels).patches)
    assert again.patches(pixels).grid == (8, 8)


def test_pictures_may_be_decoded_down_to_the_input_size(small):
    assert small.least_side == 32
    assert small.at(64).least_side == 64
    assert small.dense() is small


@pytest.mark.parametrize(
    ("vision", "parts"),
    [
        (VIT, ("self_aware", "patches")),
        ({**VIT, "layers": 1}, ("patches",)),
        ({"timm_model_name": "test_vit", "image_size": 160}, ("patches",)),
        ({"timm_model_name": "test_convnext", "timm_pool": "", "image_size": 64}, ("patches",)),
        ({"timm_model_name": "test_byobnet", "timm_pool": "rot_attn", "image_size": 160}, ()),
        ({**VIT, "attentional_pool": True, "attn_pooler_heads": 4}, ()),
    ],
)
def test_a_tower_says_which_patches_it_gives_and_gives_them(vision, parts):
    some = towers(vision_cfg=vision)
    assert some.dense_parts == parts
    pixels = torch.randn(1, 3, vision["image_size"], vision["image_size"])
    for part in parts:
        seen = getattr(some, part)(pixels)
        assert seen.patches.shape == (1, seen.grid[0] * seen.grid[1], 24)


@pytest.mark.parametrize(
    ("resize_mode", "cover"), [("squash", "whole"), ("shortest", "middle"), ("longest", "padded")]
)
def test_what_of_a_picture_is_seen_follows_from_how_it_is_resized(small, resize_mode, cover):
    other = Towers(
        small.model,
        small.tokenizer,
        name="other",
        config=CONFIG,
        preprocess={**PREPROCESS, "resize_mode": resize_mode},
    )
    assert other.cover == cover
    wide = Image.new("RGB", (64, 32), (255, 255, 255))
    wide.paste((0, 0, 0), (0, 0, 16, 32))  # black left quarter, cut off by "middle" alone
    black, white = -2.0, 2.0
    pixels = other.prepare(wide)[0]
    assert pixels[16, 2] == (white if cover == "middle" else black)
    assert pixels[2, 28] == (black if cover == "padded" else white)
    assert pixels[16, 28] == white


def test_the_same_weights_with_another_activation_share_no_cache_entry(small):
    assert towers(quick_gelu=True).fingerprint != small.fingerprint


def test_what_is_strange_to_an_unknown_encoder_is_unknown(small):
    assert small.world == ""
    assert small.untrained(["dog", "zyxgh"]) == []
    assert math.isnan(small.strangeness(torch.zeros(3, 24)))


def test_saving_where_nothing_can_be_written_is_one_sentence(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        small.save(tmp_path / "file" / "folder")


def test_the_saved_config_states_architecture_and_preprocessing(small, tmp_path):
    small.save(tmp_path / "saved")
    about = json.loads((tmp_path / "saved" / "open_clip_config.json").read_text())
    assert about["model_cfg"] == CONFIG
    assert about["preprocess_cfg"] == {**PREPROCESS, "size": [32, 32], "fill_color": 0}
