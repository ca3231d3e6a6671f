"""Trained numbers of each tuner at the width of ViT-B-16, as in the papers and their code."""

import open_clip
import pytest
import torch
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer

from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.features import FeatureCache, add_text_feature_cache
from surelabel.methods import METHODS

WIDTH, NAMES = 512, ["lion", "guitar", "sofa|couch"]
LEVEL = 2  # scale and bias, which are ours
PHRASE = {"initial_context": "a photo of a", "context_length": None}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """Create an encoder with the widths of ViT-B-16, and one layer in each tower."""
    config = open_clip.get_model_config("ViT-B-16")
    config["vision_cfg"] |= {"layers": 1, "image_size": 32}
    config["text_cfg"] |= {"layers": 1, "context_length": 24}
    torch.manual_seed(0)
    model = CLIP(**config)
    made = OpenClipEncoder(
        model,
        SimpleTokenizer(context_length=24),
        name="one-layer",
        config=config,
        preprocess_cfg={"size": 32, "mode": "RGB", "mean": [0.5] * 3, "std": [0.5] * 3},
    )
    return add_text_feature_cache(made, FeatureCache(tmp_path_factory.mktemp("texts")))


@pytest.mark.parametrize(
    ("method", "settings", "expected", "more"),
    [
        ("coop", {"context_length": 16}, 8_192, LEVEL),
        ("coop", {"context_length": 16, "class_specific": True}, 3 * 8_192, LEVEL),
        ("cocoop", PHRASE, 2_048 + 33_312, LEVEL),
        ("kgcoop", PHRASE, 2_048, LEVEL),
        ("clip_adapter", {"reduction": 4}, 131_072, LEVEL),
        ("dualcoop", {"context_length": 16}, 2 * 8_192, LEVEL + 1),
        ("tai", {"context_length": 16}, 2 * 8_192, 3 * LEVEL),
        ("tai_plus", {"context_length": 16}, 2 * 8_192 + len(NAMES) * WIDTH, 4 * LEVEL),
    ],
)
def test_a_tuner_trains_as_many_numbers_as_that_of_the_authors(
    method, settings, expected, more, encoder
):
    it = METHODS[method](encoder, NAMES, **settings)
    assert sum(p.numel() for p in it.parameters() if p.requires_grad) == expected + more
    assert not any(p.requires_grad for p in encoder.model.parameters())
