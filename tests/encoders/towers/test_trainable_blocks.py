import copy

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP, CustomTextCLIP
from open_clip.tokenizer import SimpleTokenizer

from surelabel.encoders.towers import trainable_blocks as module
from surelabel.encoders.towers.ladder_features import ladder_features
from surelabel.encoders.towers.patch_features import plain_patch_features
from surelabel.encoders.towers.sentence_tokens import sentence_block_tokens, sentence_token_features
from surelabel.encoders.towers.trainable_blocks import TrainableImageBlocks, TrainableLastBlocks
from surelabel.errors import ConfigError
from surelabel.records import Features

VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 3}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
SENTENCES = ["a dog on a hill.", "", "a very long sentence " + "with many words " * 8]
POOLINGS = [{}, {"pool_type": "avg"}, {"pool_type": "avg", "final_ln_after_pool": True}]


def model(kind=CLIP, vision=VIT, **text):
    torch.manual_seed(0)
    made = kind(embed_dim=24, vision_cfg=vision, text_cfg=TEXT | text)
    return made.eval().requires_grad_(False).double()


def pixels(count=3):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(count, 3, 32, 32, generator=generator, dtype=torch.float64)


def image_tokens(whole, depth):
    return ladder_features(whole.visual, pixels(), first_block=2, depth=depth)


def text_tokens(whole, depth):
    tokens = SimpleTokenizer(context_length=16)(SENTENCES)
    return sentence_block_tokens(whole, tokens, depth=depth)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("depth", [1, 3])
def test_image_vectors_before_training_are_those_of_the_tower(depth, pooling):
    whole = model(vision=VIT | pooling)
    blocks = TrainableImageBlocks(whole.visual, depth)
    assert blocks.first_block == 3 - depth
    found = blocks(image_tokens(whole, depth))
    expected = F.normalize(whole.encode_image(pixels()), dim=-1)
    torch.testing.assert_close(found.pooled, expected)
    assert found.grid == (4, 4)
    if not pooling:
        plain = plain_patch_features(whole.visual, pixels())
        torch.testing.assert_close(found.patches, plain.patches)


@pytest.mark.parametrize("kind", [CLIP, CustomTextCLIP])
@pytest.mark.parametrize("depth", [1, 2])
def test_sentence_vectors_before_training_are_those_of_the_tower(depth, kind):
    whole = model(kind)
    found = TrainableLastBlocks(whole, depth).texts(text_tokens(whole, depth))
    expected = sentence_token_features(whole, SimpleTokenizer(context_length=16)(SENTENCES))
    assert torch.equal(found.patch_mask, expected.patch_mask)
    torch.testing.assert_close(found.pooled.float(), expected.pooled)
    torch.testing.assert_close(found.patches.float(), expected.patches)


def test_many_sentences_are_run_in_chunks_with_the_same_vectors(monkeypatch):
    whole = model()
    blocks, tokens = TrainableLastBlocks(whole, 1), text_tokens(whole, 1)
    together = blocks.texts(tokens), blocks.images(image_tokens(whole, 1))
    monkeypatch.setattr(module, "ROWS_PER_CHUNK", 2)
    apart = blocks.texts(tokens), blocks.images(image_tokens(whole, 1))
    for found, expected in zip(apart, together, strict=True):
        torch.testing.assert_close(found.pooled, expected.pooled)
        torch.testing.assert_close(found.patches, expected.patches)


def test_gradients_reach_every_parameter_of_the_copies_and_none_of_the_towers():
    whole = model()
    before = copy.deepcopy(whole.state_dict())
    blocks = TrainableLastBlocks(whole, 1)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
    x, t = blocks.images(image_tokens(whole, 1)), blocks.texts(text_tokens(whole, 1))
    (x.pooled @ t.pooled.T).sigmoid().sum().backward()
    assert {name.split(".")[1] for name, _ in blocks.named_parameters()} == {
        "blocks",
        "norm",
        "projection",
    }
    for name, parameter in blocks.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())
    assert not any(parameter.requires_grad for parameter in whole.parameters())


@pytest.mark.parametrize(
    ("whole", "message"),
    [
        (lambda: model(vision=RESNET), "need a plain ViT .* got ModifiedResNet"),
        (lambda: model(vision=VIT | {"pool_type": "none"}), "got the pooling 'none'"),
        (
            lambda: model(CustomTextCLIP, no_causal_mask=True, pool_type="last"),
            "trained text blocks need a causal text tower .* unsupported TextTransformer",
        ),
    ],
)
def test_other_towers_are_refused(whole, message):
    with pytest.raises(ConfigError, match=message):
        TrainableLastBlocks(whole(), 1)


def test_more_blocks_than_the_smaller_tower_has_are_refused():
    with pytest.raises(ConfigError, match=r"trained_blocks must be .* from 1 to 2 for this"):
        TrainableLastBlocks(model(), 3)


def test_features_without_the_input_tokens_are_refused():
    whole = model()
    blocks = TrainableLastBlocks(whole, 2)
    with pytest.raises(ConfigError, match=r"need their input tokens, features\.layers\[-3\]"):
        blocks.images(image_tokens(whole, 1))
    with pytest.raises(ConfigError, match="got only vectors of images or sentences"):
        blocks.texts(Features(torch.zeros(1, 24)))
