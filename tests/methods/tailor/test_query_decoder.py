"""Places and queries, against the library's own pieces and the authors' numbers."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from surelabel.errors import InputError
from surelabel.methods.tailor.query_decoder import QueryDecoder, QueryDecoderTokenAdapter

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tailorclip_adapter.json").read_text())
NAMES = ["lion", "car", "pizza"]
OURS = {  # the authors' names of parts, and these here
    "image_adapter.layer1": "places.bottleneck.0",
    "image_adapter.layer2": "places.bottleneck.2",
    "image_conv": "places.projection",
    "caption_decoder.position_embedding.row_embed.weight": "places.row_positions",
    "caption_decoder.position_embedding.col_embed.weight": "places.column_positions",
    "caption_decoder.decoder": "decoder.layers",
    "caption_decoder.embedding.weight": "decoder.queries",
    "norm": "places.norm",
    "caption_fc.weight": "decoder.weight",
    "caption_fc.bias": "decoder.bias",
}


@pytest.fixture(scope="module")
def pair():
    return filled(classes=5, width=2048, hidden=128)


def filled(*, classes, width, hidden):
    """Both parts with the weights of the golden file."""
    whole = nn.Module()
    whole.places = QueryDecoderTokenAdapter(width, width=256, hidden=hidden)
    whole.decoder = QueryDecoder([str(i) for i in range(classes)], width=256, layers=2, dropout=0.1)
    parameters = dict(whole.named_parameters())
    for k, theirs in enumerate(GOLDEN["forward"]["order"]):
        part = max((old for old in OURS if theirs.startswith(old)), key=len)
        parameter = parameters.pop(theirs.replace(part, OURS[part]))
        places = torch.arange(parameter.numel(), dtype=torch.float64)
        if theirs.endswith("bias") or "norm" in theirs:
            value = 0.1 * torch.sin(places + k) + theirs.endswith("weight")
        else:
            value = 1.5 * torch.sin(1.3 * places + k) / parameter[0].numel() ** 0.5
        parameter.data = value.view(parameter.shape).float()
    assert not parameters
    return whole.eval()


def tokens():
    i = torch.arange(2 * 2048 * 6, dtype=torch.float64)
    maps = torch.sin(0.7 * i + 0.3 * torch.sin(0.001 * i**1.5)).float()
    return maps.view(2, 2048, 6).transpose(1, 2)


def test_scores_are_those_of_the_authors(pair):
    found = pair.decoder(pair.places(tokens(), (2, 3)))
    torch.testing.assert_close(found, torch.tensor(GOLDEN["forward"]["logits"]), rtol=0, atol=1e-5)


def test_each_step_on_the_way_is_that_of_the_authors(pair):
    normed = pair.places(tokens(), (2, 3)) - pair.places.position_embeddings((2, 3))
    expected = torch.tensor(GOLDEN["forward"]["bn_output_first8_of_b0_c0..7_h0w0"])
    torch.testing.assert_close(normed[0, 0, :8], expected, rtol=0, atol=1e-5)
    places = pair.places(tokens(), (2, 3))
    decoded = pair.decoder.layers(pair.decoder.queries.expand(2, -1, -1), places)
    for (n, c), key in {(0, 0): "query_output_b0_class0", (1, 4): "query_output_b1_class4"}.items():
        expected = torch.tensor(GOLDEN["forward"][f"{key}_first8"])
        torch.testing.assert_close(decoded[n, c, :8], expected, rtol=0, atol=1e-5)


def test_the_norm_is_that_of_a_map():
    torch.manual_seed(0)
    places, maps = QueryDecoderTokenAdapter(6, width=16, hidden=3), nn.BatchNorm2d(16)
    x = torch.randn(4, 12, 6)
    mixed = (places.bottleneck(x) + x) / 2
    as_map = places.projection(mixed).transpose(1, 2).unflatten(2, (3, 4))
    expected = maps(as_map).flatten(2).transpose(1, 2) + places.position_embeddings((3, 4))
    torch.testing.assert_close(places(x, (3, 4)), expected)
    torch.testing.assert_close(places.norm.running_mean, maps.running_mean)
    torch.testing.assert_close(places.norm.running_var, maps.running_var)


def test_places_run_across_first_and_know_their_column_and_row():
    places = QueryDecoderTokenAdapter(4, width=4, hidden=1)
    found = places.position_embeddings((2, 3)).unflatten(0, (2, 3))
    for down in range(2):
        for across in range(3):
            expected = [
                *places.column_positions[across].tolist(),
                *places.row_positions[down].tolist(),
            ]
            assert found[down, across].tolist() == expected


def test_more_places_than_positions_are_refused():
    with pytest.raises(
        InputError, match=r"50 rows and columns; got 51 by 2. Use a smaller method.image_size"
    ):
        QueryDecoderTokenAdapter(4, width=4, hidden=1).position_embeddings((51, 2))


def test_a_head_weighs_each_query_by_its_own_vector():
    torch.manual_seed(0)
    it = QueryDecoder(NAMES, width=16, layers=1, dropout=0.0).eval()
    with torch.no_grad():
        it.bias.normal_()
    places = torch.randn(2, 5, 16)
    decoded = it.layers(it.queries.expand(2, -1, -1), places)
    full = F.linear(decoded, it.weight, it.bias)  # every name by every vector, as the authors do
    torch.testing.assert_close(it(places), full.diagonal(dim1=1, dim2=2))


def test_a_layer_is_attention_among_queries_then_to_places_then_a_network():
    torch.manual_seed(0)
    it = QueryDecoder(NAMES, width=16, layers=1, dropout=0.3).eval()
    places, (layer,) = torch.randn(2, 5, 16), it.layers.layers
    x = it.queries.expand(2, -1, -1)
    x = layer.norm1(x + attended(layer.self_attn, x, x))
    x = layer.norm2(x + attended(layer.multihead_attn, x, places))
    hidden = layer.linear1(x)
    x = layer.norm3(x + layer.linear2(torch.where(hidden > 0, hidden, 0.01 * hidden)))
    expected = (it.layers.norm(x) * it.weight).sum(dim=-1) + it.bias
    torch.testing.assert_close(it(places), expected)


def attended(attention, asking, asked):
    """Eight heads, from the weights alone."""
    weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
    query, key, value = (
        F.linear(x, w, b).unflatten(-1, (8, -1)).transpose(1, 2)
        for x, w, b in zip((asking, asked, asked), weights, biases, strict=True)
    )
    looks = (query @ key.transpose(2, 3) / query.shape[-1] ** 0.5).softmax(dim=-1)
    return attention.out_proj((looks @ value).transpose(1, 2).flatten(2))


def test_what_is_drawn_belongs_to_the_name_and_not_to_its_column():
    def drawn(names, seed=0):
        torch.manual_seed(seed)
        return QueryDecoder(names, width=8, layers=1, dropout=0.0)

    one, other = drawn(NAMES), drawn([NAMES[i] for i in (2, 0, 1)])
    for part in ("queries", "weight"):
        assert torch.equal(getattr(one, part)[[2, 0, 1]], getattr(other, part))
    assert not torch.equal(one.queries, drawn(NAMES, seed=1).queries)
