import copy
import functools
import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer

from surelabel.encoders import load_encoder, prompt_templates
from surelabel.encoders.towers.deep_text_prompts import TEXT_BATCH, DeepPromptTextEncoder
from surelabel.errors import ConfigError, InputError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/recover_match_towers.json").read_text())
VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 3}
NAMES = ["lion", "hot dog", "a very long name of many words indeed", "sea"]
ONE = ("a photo of a {}.",)


def numbers(found):
    return torch.tensor(found, dtype=torch.float64)


def model(**text):
    torch.manual_seed(0)
    made = CLIP(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT | text)
    return made.eval().requires_grad_(False).double()


@functools.cache
def tokenizer():
    return SimpleTokenizer(context_length=16)


def prompts(depth, count=4, width=16):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(depth, count, width, generator=generator, dtype=torch.float64)


def at_full_length(whole, sentences, prompted):
    """The tower at its whole context, layer by layer, with prompts behind the start token."""
    tokens = tokenizer()(sentences)
    seen = whole.token_embedding(tokens) + whole.positional_embedding
    without = len(whole.transformer.resblocks) - len(prompted)
    for number, layer in enumerate(whole.transformer.resblocks):
        inside = prompted[number - without] if number >= without else seen[0, :0]
        rows = torch.stack([torch.cat([row[:1], inside, row[1:]]) for row in seen])
        k = rows.shape[1]
        mask = torch.zeros(k, k, dtype=torch.float64)
        for query in range(k):
            mask[query, query + 1 :] = -torch.inf
        rows = layer(rows, attn_mask=mask)
        seen = torch.cat([rows[:, :1], rows[:, 1 + len(inside) :]], dim=1)
    ends = [row.tolist().index(49407) for row in tokens]
    last = torch.stack([row[end] for row, end in zip(seen, ends, strict=True)])
    return whole.ln_final(last) @ whole.text_projection


@pytest.mark.parametrize("depth", [1, 2, 3, 12])
def test_without_prompts_it_gives_the_towers_own_vectors(depth):
    whole = model()
    texts = DeepPromptTextEncoder(whole, tokenizer(), NAMES, ONE, depth=depth)
    expected = whole.encode_text(tokenizer()([ONE[0].format(name) for name in NAMES]))
    torch.testing.assert_close(texts.encode(), expected, atol=1e-12, rtol=0)
    assert (texts.depth, texts.width) == (min(depth, 3), 16)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_prompts_stand_behind_the_start_token_of_each_of_the_last_layers(depth):
    whole, given = model(), prompts(depth)
    found = DeepPromptTextEncoder(whole, tokenizer(), NAMES, ONE, depth=depth).encode(given)
    expected = at_full_length(whole, [ONE[0].format(name) for name in NAMES], given)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert (
        found - at_full_length(whole, [f"a photo of a {n}." for n in NAMES], [])
    ).abs().max() > 0.1


@pytest.mark.parametrize("end", [1, 2, 3, 4])
def test_the_released_text_tower_gives_the_same_tokens(end):
    """Ids say which token of which sentence; the end token has the largest."""
    found, sentences = GOLDEN["text"], [0, 1, 2]
    whole = model(context_length=7, vocab_size=124, width=8, proj_type="none")
    whole.transformer = (
        CLIP(6, VISION, TEXT | {"context_length": 7, "width": 8}, quick_gelu=True)
        .transformer.eval()
        .double()
        .requires_grad_(False)
    )
    weights = {name: numbers(values) for name, values in found["weights"].items()}
    whole.transformer.load_state_dict(weights, strict=True)
    whole.ln_final = torch.nn.Identity()
    whole.positional_embedding.zero_()
    ids = torch.tensor([[7 * s + t + 100 * (t == end) for t in range(7)] for s in sentences])
    whole.token_embedding.weight[ids] = numbers(found["tokens"])
    texts = DeepPromptTextEncoder(whole, lambda lines: ids, ["a", "b", "c"], ("{}",), depth=2)
    expected = numbers(found["after"])[:, end]
    got = texts.encode(numbers(found["prompts"]))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_a_sentence_that_fills_the_context_still_hears_its_prompts():
    long = " ".join(["cat"] * 30)
    whole = model()
    texts = DeepPromptTextEncoder(whole, tokenizer(), [long], ("{}",), depth=2)
    expected = at_full_length(whole, [long], prompts(2))
    torch.testing.assert_close(texts.encode(prompts(2)), expected, atol=1e-12, rtol=0)


def test_a_name_does_not_depend_on_the_others_nor_on_how_many_are_read_at_once():
    many = [f"name {number} {'of words ' * (number % 4)}" for number in range(TEXT_BATCH + 9)]
    whole = model(layers=2)
    together = DeepPromptTextEncoder(whole, tokenizer(), many, ("{}",), depth=1).encode(prompts(1))
    for row in (0, 3, TEXT_BATCH, TEXT_BATCH + 8):
        alone = DeepPromptTextEncoder(whole, tokenizer(), [many[row]], ("{}",), depth=1).encode(
            prompts(1)
        )
        torch.testing.assert_close(together[row], alone[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("templates", [ONE, ("a photo of a {}.", "the {} here.", "{}")])
def test_spellings_and_templates_are_means_of_unit_vectors(templates):
    whole, names = model(), ["sofa| couch", "lion", "cup|mug|beaker"]
    found = DeepPromptTextEncoder(whole, tokenizer(), names, templates, depth=2).encode(prompts(2))
    for row, name in zip(found, names, strict=True):
        spelled, lengths = [], []
        for spelling in name.split("|"):
            lines = [template.replace("{}", spelling.strip()) for template in templates]
            read = at_full_length(whole, lines, prompts(2))
            spelled.append(F.normalize(F.normalize(read, dim=-1).mean(0), dim=0))
            lengths += read.norm(dim=-1).tolist()
        counted = len(templates) * len(name.split("|"))
        assert row.norm().item() == pytest.approx(sum(lengths) / counted, abs=1e-12)
        expected = F.normalize(sum(spelled), dim=0)
        torch.testing.assert_close(F.normalize(row, dim=0), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["tiny-vit", "tiny-rn"])
@pytest.mark.parametrize("choice", ["one", "ensemble"])
def test_an_encoder_without_prompts_gives_the_direction_of_its_texts(name, choice):
    encoder, templates = load_encoder(name), prompt_templates(choice)[:5]
    names = ["lion", "zygote", "hot dog", "lion"]
    texts = encoder.deep_prompt_text_encoder(names, templates, depth=1)
    expected = encoder.encode_labels(names, templates)
    torch.testing.assert_close(F.normalize(texts.encode(), dim=-1), expected, atol=1e-6, rtol=0)
    assert not texts.encode().requires_grad


def test_gradients_reach_prompts_of_each_layer_and_not_the_tower():
    whole = model()
    texts = DeepPromptTextEncoder(whole, tokenizer(), NAMES, ONE, depth=3)
    given = prompts(3).requires_grad_()
    texts.encode(given).square().sum().backward()
    assert all(layer.norm() > 0 for layer in given.grad)
    assert all(p.grad is None and not p.requires_grad for p in whole.parameters())
    assert not texts.encode(prompts(3)).requires_grad
    few = DeepPromptTextEncoder(whole, tokenizer(), ["cat", "cat|dog"], ONE, depth=2)
    small = prompts(2, count=1).requires_grad_()
    assert torch.autograd.gradcheck(few.encode, small, fast_mode=True)


def test_its_weights_are_in_no_state_and_a_copy_is_itself():
    holder = torch.nn.Module()
    holder.texts = DeepPromptTextEncoder(model(), tokenizer(), NAMES, ONE, depth=2)
    assert not holder.state_dict()
    assert copy.deepcopy(holder).texts is holder.texts


def test_what_cannot_be_read_is_refused():
    whole = model()
    for depth in (0, -1, 1.5):
        with pytest.raises(ConfigError, match=rf"depth, .* must be 1 or more; got {depth}"):
            DeepPromptTextEncoder(whole, tokenizer(), NAMES, ONE, depth=depth)
    with pytest.raises(ConfigError, match=r"\{\} exactly once"):
        DeepPromptTextEncoder(whole, tokenizer(), NAMES, ("a photo.",), depth=1)
    with pytest.raises(InputError, match=r"prompts must have shape \(2, m, 16\)"):
        DeepPromptTextEncoder(whole, tokenizer(), NAMES, ONE, depth=2).encode(prompts(3))
