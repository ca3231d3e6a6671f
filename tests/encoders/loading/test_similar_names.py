import open_clip
import pytest

from surelabel.encoders import load_encoder
from surelabel.encoders.loading.similar_names import ORIGINALS, open_clip_name_hint
from surelabel.errors import UnknownName

SIGLIP = """
siglip-base-patch16-224: ViT-B-16-SigLIP
siglip-base-patch16-256-multilingual: ViT-B-16-SigLIP-i18n-256
siglip-large-patch16-384: ViT-L-16-SigLIP-384
siglip-so400m-patch14-384: ViT-SO400M-14-SigLIP-384
siglip-so400m-patch16-256-i18n: ViT-SO400M-16-SigLIP-i18n-256
siglip2-base-patch16-224: ViT-B-16-SigLIP2
siglip2-base-patch16-512: ViT-B-16-SigLIP2-512
siglip2-base-patch32-256: ViT-B-32-SigLIP2-256
siglip2-large-patch16-256: ViT-L-16-SigLIP2-256
siglip2-so400m-patch14-384: ViT-SO400M-14-SigLIP2-378
siglip2-so400m-patch16-512: ViT-SO400M-16-SigLIP2-512
siglip2-giant-opt-patch16-384: ViT-gopt-16-SigLIP2-384
"""
ARCHITECTURES = dict(line.split(": ") for line in SIGLIP.split("\n") if line)


@pytest.mark.parametrize(("name", "architecture"), ARCHITECTURES.items())
def test_a_name_of_siglip_in_transformers_is_answered_with_the_same_weights(name, architecture):
    expected = rf"google/{name}.* available as {architecture}/webli or hf-hub:timm/ViT"
    with pytest.raises(UnknownName, match=expected):
        load_encoder(f"google/{name}")
    assert (architecture, "webli") in open_clip.list_pretrained()


@pytest.mark.parametrize(
    ("repository", "hint"),
    [
        ("openai/clip-vit-base-patch32", "ViT-B-32/openai or hf-hub:timm/vit_base_patch32"),
        ("openai/clip-vit-large-patch14-336", "ViT-L-14-336/openai or hf-hub:timm/vit_large"),
        ("timm/PE-Core-B-16", "PE-Core-B-16/meta or hf-hub:timm/PE-Core-B-16. "),
        ("laion/CLIP-ViT-g-14-laion2B-s12B-b42K", "ViT-g-14/laion2b_s12b_b42k or hf-hub:laion/"),
        ("facebook/PE-Core-B16-224", "PE-Core-B-16/meta or hf-hub:timm/PE-Core-B-16. "),
        ("google/tipsv2-b14", "Load TIPSv2 models with transformers:google/tipsv2-b14. "),
        ("google/siglip2-base-patch16-naflex", "with transformers:google/siglip2-base-patch16-n"),
        ("google/siglip2-large-patch16-224", "most similar weights are ViT-L-16-SigLIP2-256/webli"),
    ],
)
def test_other_names_of_the_hub_are_answered_too(repository, hint):
    assert hint in open_clip_name_hint(repository)


def test_an_unknown_repository_has_no_hint():
    assert open_clip_name_hint("owner/model") == ""
    assert open_clip_name_hint("google/siglip2-tiny-patch16-224") == ""


def test_the_weights_of_a_publisher_have_a_name_in_open_clip():
    assert {tuple(name.split("/")) for name in ORIGINALS.values()} <= {*open_clip.list_pretrained()}
