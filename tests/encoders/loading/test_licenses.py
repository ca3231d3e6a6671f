import open_clip
import pytest
from timm.models import get_pretrained_cfg

from surelabel.encoders import load_encoder
from surelabel.encoders.loading.licenses import (
    model_card_license,
    pretrained_licenses,
    repository_license,
    write_encoder_model_card,
)
from surelabel.records import EncoderLicense


def test_every_pretrained_model_of_open_clip_has_an_entry():
    names = {f"{architecture}/{tag}" for architecture, tag in open_clip.list_pretrained()}
    assert pretrained_licenses().keys() == names


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("ViT-B-16-SigLIP/webli", "vit_base_patch16_siglip_224.webli"),
        ("ViT-B-16-SigLIP2/webli", "vit_base_patch16_siglip_224.v2_webli"),
        ("PE-Core-B-16/meta", "vit_pe_core_base_patch16_224.fb"),
        ("MobileCLIP2-S0/dfndr2b", "fastvit_mci0.apple_mclip2_dfndr2b"),
        ("MobileCLIP-S1/datacompdr", "fastvit_mci1.apple_mclip"),
        ("EVA02-B-16/merged2b_s8b_b131k", "eva02_base_patch16_clip_224.merged2b"),
        ("ViTamin-S/datacomp1b", "vitamin_small_224.datacomp1b_clip"),
        ("ViT-B-16/metaclip_400m", "vit_base_patch16_clip_224.metaclip_400m"),
        (
            "ViT-H-14-worldwide/metaclip2_worldwide",
            "vit_huge_patch14_clip_224.metaclip2_worldwide",
        ),
        ("ViT-H-14/dfn5b", "vit_huge_patch14_clip_224.dfn5b"),
        ("RN50/openai", "resnet50_clip.openai"),
    ],
)
def test_the_license_of_a_family_is_that_of_its_image_tower_in_timm(name, network):
    assert pretrained_licenses()[name].name == get_pretrained_cfg(network).license


def test_a_license_that_was_not_verified_is_unknown():
    assert pretrained_licenses()["nllb-clip-base/v1"] == EncoderLicense()
    assert repository_license("laion/other-model") == EncoderLicense()
    assert repository_license("laion/CLIP-ViT-B-32-laion2B-s34B-b79K").name == "mit"


@pytest.mark.parametrize(
    ("text", "license"),
    [
        ("---\nlicense: MIT\n---\n", EncoderLicense("mit", "card")),
        ('---\r\nlicense: "apache-2.0"\r\ntags: []\r\n---', EncoderLicense("apache-2.0", "card")),
        ("---\nlicense:\n- mit\n---\n", EncoderLicense("mit", "card")),
        (
            "---\nlicense: other\nlicense_name: apple-ascl\n---\n",
            EncoderLicense("apple-ascl", "card"),
        ),
        ("---\nlicense: other\n---\n", EncoderLicense("other", "card")),
        ("---\ntags: [x]\n---\nlicense: mit\n", EncoderLicense()),
        ("# Model\n\nlicense: mit\n", EncoderLicense()),
        ("---\nlicense: \x1b[31mmit\n---\n", EncoderLicense()),
        ("---\nlicense: mit\n", EncoderLicense()),
        ("---" + "\n" * 60_000, EncoderLicense()),
        ("", EncoderLicense()),
    ],
)
def test_the_license_of_a_model_card_is_in_its_metadata(tmp_path, text, license):
    (tmp_path / "README.md").write_bytes(text.encode())
    assert model_card_license(tmp_path / "README.md", "card") == license
    assert model_card_license(tmp_path / "other.md", "card") == EncoderLicense()
    assert model_card_license(None, "card") == EncoderLicense()


@pytest.mark.parametrize(
    "license", [EncoderLicense("mit", f"the model card of {'a' * 90}/b"), EncoderLicense()]
)
def test_a_written_model_card_is_read_again(tmp_path, license):
    write_encoder_model_card(tmp_path, "m", license)
    assert model_card_license(tmp_path / "README.md", "another source") == license
    assert str(license) in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "license"),
    [("tiny-vit", "apache-2.0"), ("features:4", ""), ("timm:test_vit", "")],
)
def test_every_kind_of_encoder_states_its_license(name, license):
    options = {"pretrained": False} if name.startswith("timm:") else {}
    assert load_encoder(name, **options).license.name == license
