import functools

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP, CustomTextCLIP
from open_clip.tokenizer import SimpleTokenizer

from surelabel.encoders.towers.sentence_tokens import sentence_block_tokens, sentence_token_features
from surelabel.errors import ConfigError

VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
SENTENCES = ["a dog on a hill.", "", "a very long sentence " + "with many words " * 8]
LENGTHS = [8, 2, 16]  # with start and end token; the last sentence is cut
TOWERS = [
    (CLIP, {}),
    (CustomTextCLIP, {"pool_type": "eos", "eos_id": 49407}),
    (CustomTextCLIP, {"pool_type": "last", "no_causal_mask": True}),
    (CustomTextCLIP, {"pool_type": "first", "no_causal_mask": True}),
]


@functools.cache
def model(kind=CLIP, **text):
    torch.manual_seed(0)
    made = kind(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT | text)
    return made.eval().requires_grad_(False).double()


def tokens(sentences=SENTENCES):
    return SimpleTokenizer(context_length=16)(sentences)


@pytest.mark.parametrize(("kind", "text"), TOWERS)
def test_the_vectors_are_those_of_the_whole_tower_at_every_token(kind, text):
    whole = model(kind, **text)
    found = sentence_token_features(whole, tokens())
    torch.testing.assert_close(
        found.pooled, F.normalize(whole.encode_text(tokens()), dim=-1).float(), atol=1e-6, rtol=0
    )
    tower = whole if kind is CLIP else whole.text
    hidden = whole.token_embedding(tokens()) if kind is CLIP else tower.token_embedding(tokens())
    hidden = tower.transformer(hidden + tower.positional_embedding, attn_mask=tower.attn_mask)
    joint = F.normalize(tower.ln_final(hidden) @ tower.text_projection, dim=-1).float()
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(
            found.patches[row, :length], joint[row, :length], atol=1e-6, rtol=0
        )


def test_the_mask_ends_at_the_end_token_and_padding_is_zero():
    found = sentence_token_features(model(), tokens())
    assert found.patch_mask.sum(dim=1).tolist() == LENGTHS
    assert found.patches.shape == (3, 16, 24)
    assert not found.patches[~found.patch_mask].any()
    torch.testing.assert_close(found.patches[0, 7], found.pooled[0])


def test_a_sentence_does_not_depend_on_longer_ones_beside_it():
    whole = model()
    together, alone = (sentence_token_features(whole, tokens(s)) for s in (SENTENCES, ["", ""]))
    assert alone.patches.shape == (2, 2, 24)
    torch.testing.assert_close(together.patches[1, :2], alone.patches[0], atol=1e-6, rtol=0)


def test_a_text_tower_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match="got an unsupported"):
        sentence_token_features(torch.nn.Linear(2, 2), tokens())


@pytest.mark.parametrize("depth", [1, 2])
def test_block_tokens_enter_the_last_blocks_without_padding(depth):
    whole = model()
    found = sentence_block_tokens(whole, tokens(), depth=depth)
    expected = sentence_token_features(whole, tokens())
    assert torch.equal(found.patch_mask, expected.patch_mask)
    torch.testing.assert_close(found.pooled, expected.pooled)
    hidden = whole.token_embedding(tokens()) + whole.positional_embedding
    for block in whole.transformer.resblocks[:-depth]:
        hidden = block(hidden, attn_mask=whole.attn_mask)
    assert list(found.layers) == [-depth - 1]
    torch.testing.assert_close(
        found.layers[-depth - 1], hidden * found.patch_mask[..., None], atol=1e-9, rtol=0
    )


def test_block_tokens_of_no_causal_tower_or_of_too_many_blocks_are_refused():
    with pytest.raises(ConfigError, match="trained text blocks need a causal text tower"):
        sentence_block_tokens(
            model(CustomTextCLIP, pool_type="last", no_causal_mask=True), tokens(), depth=1
        )
    with pytest.raises(ConfigError, match="depth must be a number of blocks from 1 to 2"):
        sentence_block_tokens(model(), tokens(), depth=3)
