import json
import math

import pytest
import torch
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.encoders.loading.model_names import load_encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.encoders.prompts.templates import TEMPLATES
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
    preprocess_cfg = {**PREPROCESS, "size": config["vision_cfg"]["image_size"]}
    tokenizer = SimpleTokenizer(context_length=16)
    return OpenClipEncoder(
        CLIP(**config), tokenizer, name="small", config=config, preprocess_cfg=preprocess_cfg
    )


@pytest.fixture(scope="module")
def small():
    return towers()


def test_a_text_is_the_unit_mean_of_its_unit_sentences(small):
    templates = TEMPLATES["ensemble"][:3]
    texts = small.encode_labels(["dog", "hot dog"], templates)
    for name, text in zip(["dog", "hot dog"], texts, strict=True):
        vectors = [small.encode_sentences([t.replace("{}", name)])[0] for t in templates]
        mean = sum(vectors) / 3
        torch.testing.assert_close(text, mean / mean.norm())


def test_many_sentences_are_encoded_in_parts_and_none_are_no_mistake(small):
    sentences = [f"image {i}" for i in range(300)]
    whole = small.encode_sentences(sentences)
    assert whole.shape == (300, 24)
    torch.testing.assert_close(
        whole[299:], small.encode_sentences(sentences[299:]), atol=1e-5, rtol=0
    )
    assert small.encode_sentences([]).shape == (0, 24)
    assert small.encode_labels([], TEMPLATES["one"]).shape == (0, 24)


def test_a_template_without_a_place_for_the_name_is_refused(small):
    with pytest.raises(ConfigError, match="exactly once"):
        small.encode_labels(["dog"], ["a photo"])


def test_images_of_another_size_are_refused(small):
    with pytest.raises(InputError, match=r"\(n, 3, 32, 32\); got \(1, 3, 40, 40\)"):
        small.encode_images(torch.zeros(1, 3, 40, 40))
    with pytest.raises(InputError, match="axes"):
        small.encode_images(torch.zeros(3, 32, 32))


def test_a_head_can_learn_from_what_the_towers_give(small):
    pooled = small.encode_images(torch.randn(2, 3, 32, 32)).pooled
    head = torch.nn.Linear(24, 1)
    head(pooled).sum().backward()
    assert head.weight.grad.abs().sum() > 0
    assert not pooled.is_inference()


def test_the_scale_is_the_exponential_of_the_logit_scale_with_a_logit_bias_too(tmp_path):
    like_siglip = towers(init_logit_scale=2.0, init_logit_bias=-10.0)
    assert like_siglip.scale == pytest.approx(7.389056)
    like_siglip.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert again.scale == like_siglip.scale
    assert again.fingerprint == like_siglip.fingerprint
    assert float(again.model.logit_bias) == -10.0


def test_towers_at_another_size_are_saved_and_loaded_at_that_size(small, tmp_path):
    large = small.with_image_size(64)
    assert large.preprocess_cfg["size"] == [64, 64]
    assert large.fingerprint != small.fingerprint
    assert small.with_image_size(32) is small
    large.save(tmp_path / "large")
    again = load_encoder(f"local-dir:{tmp_path / 'large'}")
    assert again.fingerprint == large.fingerprint
    pixels = torch.randn(1, 3, 64, 64)
    assert torch.equal(again.encode_patches(pixels).patches, large.encode_patches(pixels).patches)
    assert again.encode_patches(pixels).grid == (8, 8)


def test_images_may_be_decoded_down_to_the_input_size(small):
    assert small.input_side == 32
    assert small.with_image_size(64).input_side == 64
    assert small.with_dense_image_size() is small


@pytest.mark.parametrize(
    ("vision", "parts"),
    [
        (VIT, ("self_aware", "patches")),
        ({**VIT, "layers": 1}, ("self_aware", "patches")),
        ({**VIT, "block_type": "custom"}, ("patches",)),
        ({"timm_model_name": "test_vit", "image_size": 160}, ("self_aware", "patches")),
        ({"timm_model_name": "test_convnext", "timm_pool": "", "image_size": 64}, ("patches",)),
        ({"timm_model_name": "test_byobnet", "timm_pool": "rot_attn", "image_size": 160}, ()),
        ({**VIT, "attentional_pool": True, "attn_pooler_heads": 4}, ("self_aware", "patches")),
        ({**VIT, "attentional_pool": "cascade", "attn_pooler_heads": 4}, ()),
    ],
)
def test_the_supported_kinds_of_patches_are_listed_and_computed(vision, parts):
    some = towers(vision_cfg=vision)
    assert some.patch_kinds == parts
    pixels = torch.randn(1, 3, vision["image_size"], vision["image_size"])
    for part in parts:
        seen = getattr(some, ENCODER_METHODS[part])(pixels)
        assert seen.patches.shape == (1, seen.grid[0] * seen.grid[1], 24)


@pytest.mark.parametrize(
    ("resize_mode", "crop_mode"),
    [("squash", "squash"), ("shortest", "center"), ("longest", "border")],
)
def test_the_crop_mode_follows_from_the_resize_mode(small, resize_mode, crop_mode):
    other = OpenClipEncoder(
        small.model,
        small.tokenizer,
        name="other",
        config=CONFIG,
        preprocess_cfg={**PREPROCESS, "resize_mode": resize_mode},
    )
    assert other.crop_mode == crop_mode
    wide = Image.new("RGB", (64, 32), (255, 255, 255))
    wide.paste((0, 0, 0), (0, 0, 16, 32))  # black left quarter, cut off by "center" alone
    black, white = -2.0, 2.0
    pixels = other.preprocess(wide)[0]
    assert pixels[16, 2] == (white if crop_mode == "center" else black)
    assert pixels[2, 28] == (black if crop_mode == "border" else white)
    assert pixels[16, 28] == white


def test_the_same_weights_with_another_activation_share_no_cache_entry(small):
    assert towers(quick_gelu=True).fingerprint != small.fingerprint


def test_the_ood_score_without_training_info_is_nan(small):
    assert small.training_domain == ""
    assert small.labels_with_untrained_tokens(["dog", "zyxgh"]) == []
    assert math.isnan(small.ood_score(torch.zeros(3, 24)))


def test_saving_where_nothing_can_be_written_is_one_sentence(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        small.save(tmp_path / "file" / "folder")


def test_the_saved_config_states_architecture_and_preprocessing(small, tmp_path):
    small.save(tmp_path / "saved")
    about = json.loads((tmp_path / "saved" / "open_clip_config.json").read_text())
    assert about["model_cfg"] == CONFIG
    assert about["preprocess_cfg"] == {**PREPROCESS, "size": [32, 32], "fill_color": 0}
