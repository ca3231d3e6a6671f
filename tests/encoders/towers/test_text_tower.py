import pytest
import torch
from open_clip.model import CLIP, CustomTextCLIP

from surelabel.encoders.towers.text_tower import causal_text_tower, text_token_mask, text_tower
from surelabel.errors import ConfigError

VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
TEXT = {"context_length": 8, "vocab_size": 20, "width": 16, "heads": 2, "layers": 1}
TOKENS = torch.tensor([[18, 3, 19, 0, 0, 0, 0, 0], [18, 3, 7, 4, 5, 6, 19, 19]])


def model(kind=CLIP, **text):
    torch.manual_seed(0)
    made = kind(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT | text)
    return made.eval().requires_grad_(False)


@pytest.mark.parametrize("kind", [CLIP, CustomTextCLIP])
@pytest.mark.parametrize(
    "text", [{}, {"proj_bias": True}, {"pool_type": "eos", "eos_id": 19}, {"proj_type": "none"}]
)
def test_its_parts_together_are_what_open_clip_gives(kind, text):
    whole = model(kind, **text)
    parts = causal_text_tower(whole)
    mask = torch.full((8, 8), -torch.inf).triu(1)
    seen = parts.transformer(parts.embed_tokens(TOKENS), attn_mask=mask)
    last = seen[[0, 1], parts.end_positions(TOKENS)]
    torch.testing.assert_close(parts.project(last), whole.encode_text(TOKENS), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("pool", "places"), [("argmax", [2, 6]), ("first", [0, 0]), ("last", [7, 7])]
)
def test_the_token_of_a_sentence_is_where_the_tower_pools(pool, places):
    parts = text_tower(model(CustomTextCLIP, pool_type=pool))
    outputs = torch.arange(16.0).view(2, 8, 1)
    found = parts.select_sentence_token(outputs, parts.end_positions(TOKENS))
    assert found.flatten().tolist() == [places[0], 8 + places[1]]


def test_only_a_causal_tower_has_an_attention_mask():
    embeddings = torch.zeros(2, 3, 16)
    mask = text_tower(model()).attention_mask(embeddings)
    assert mask.exp().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert text_tower(model(CustomTextCLIP, no_causal_mask=True)).attention_mask(embeddings) is None


def test_padding_is_zero_or_the_repeated_end_token():
    assert text_token_mask(TOKENS).sum(dim=1).tolist() == [3, 7]
    assert text_token_mask(TOKENS[:, :3]).all()  # no padding


def test_all_tokens_after_a_known_end_token_are_padding():
    xlm = torch.tensor([[0, 5, 2, 1, 1, 1, 1, 1], [0, 5, 6, 7, 8, 9, 4, 2]])  # padding 1, end 2
    parts = text_tower(model(pool_type="eos", eos_id=2))
    assert parts.token_mask(xlm).sum(dim=1).tolist() == [3, 8]
    assert torch.equal(text_tower(model()).token_mask(TOKENS), text_token_mask(TOKENS))


def test_an_end_is_the_largest_id_or_the_first_of_its_own():
    assert causal_text_tower(model()).end_positions(TOKENS).tolist() == [2, 6]
    other = causal_text_tower(model(pool_type="eos", eos_id=7))
    assert other.end_positions(TOKENS[1:]).tolist() == [2]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CLIP, {"pool_type": "last"}),
        (CustomTextCLIP, {"no_causal_mask": True}),
        (CustomTextCLIP, {"embed_cls": True}),
        (CLIP, {"block_type": "custom"}),
    ],
)
def test_a_text_tower_of_another_kind_is_refused(kind, text):
    with pytest.raises(
        ConfigError, match=r"causal text tower .* got an unsupported .*\. Use tiny-vit"
    ):
        causal_text_tower(model(kind, **text))


def test_a_model_without_a_text_tower_is_refused():
    with pytest.raises(ConfigError, match=r"got an unsupported NoneType\. Use tiny-vit"):
        causal_text_tower(torch.nn.Linear(2, 2))
