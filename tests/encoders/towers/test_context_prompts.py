import functools

import pytest
import torch
import torch.nn.functional as F
from open_clip.model import CLIP, CustomTextCLIP
from open_clip.tokenizer import SimpleTokenizer

from surelabel.encoders.towers import context_prompts
from surelabel.encoders.towers.context_prompts import ContextPromptTextEncoder
from surelabel.errors import ConfigError, InputError

VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
NAMES = ["lion", "hot dog", "a long name of words", "sea"]
WORDS = "a photo of a"
TOWERS = [
    (CLIP, {}),
    (CustomTextCLIP, {"pool_type": "eos", "eos_id": 49407}),
    (CustomTextCLIP, {"pool_type": "last", "no_causal_mask": True}),
    (CustomTextCLIP, {"pool_type": "first", "no_causal_mask": True}),
    (CustomTextCLIP, {"pool_type": "last"}),
]
every_tower = pytest.mark.parametrize(("kind", "text"), TOWERS)


def model(kind=CLIP, **text):
    torch.manual_seed(0)
    made = kind(embed_dim=24, vision_cfg=VISION, text_cfg=TEXT | text)
    return made.eval().requires_grad_(False).double()


@functools.cache
def tokenizer():
    return SimpleTokenizer(context_length=16)


def texts(whole, sentences):
    return F.normalize(whole.encode_text(tokenizer()(sentences)), dim=-1).float()


def encoder(whole, names=NAMES, length=4):
    return ContextPromptTextEncoder(whole, tokenizer(), names, length=length)


def contexts(*shape):
    return torch.randn(*shape, 16, generator=torch.Generator().manual_seed(1))


def at_full_length(whole, name, context):
    """Replace the embeddings of placeholder words by the context, at the whole context length."""
    tokens = tokenizer()([f"{' '.join(['x'] * len(context))} {name}."])
    embedded = whole.token_embedding(tokens)
    embedded[0, 1 : 1 + len(context)] = context.double()
    mask = torch.full((16, 16), -torch.inf, dtype=torch.float64).triu(1)
    hidden = whole.transformer(embedded + whole.positional_embedding, attn_mask=mask)
    vector = whole.ln_final(hidden[0, tokens[0].tolist().index(49407)]) @ whole.text_projection
    return F.normalize(vector, dim=-1).float()


@every_tower
def test_the_embeddings_of_words_as_context_give_the_texts_of_the_tower(kind, text):
    whole = model(kind, **text)
    it = encoder(whole)
    words = it.embed_words(WORDS)
    assert words.shape == (4, 16)
    expected = texts(whole, [f"{WORDS} {name}." for name in NAMES])
    torch.testing.assert_close(it.encode(words), expected, atol=1e-6, rtol=0)


def test_a_context_replaces_the_embeddings_of_the_words_before_the_label():
    whole, context = model(), contexts(5)
    expected = torch.stack([at_full_length(whole, name, context) for name in NAMES])
    found = encoder(whole, length=5).encode(context)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@every_tower
def test_contexts_of_labels_and_of_images_are_those_of_single_calls(kind, text):
    it, many = encoder(model(kind, **text)), contexts(4, 4)
    alone = torch.stack([it.encode(context) for context in many])
    torch.testing.assert_close(it.encode(many), alone.diagonal().T, atol=1e-6, rtol=0)
    torch.testing.assert_close(it.encode_for_images(many), alone, atol=1e-6, rtol=0)


def test_a_label_with_spellings_is_the_normalized_mean_of_their_texts():
    it, context = encoder(model(), ["sea", "sofa|couch"]), contexts(4)
    single = encoder(model(), ["sofa", "couch"]).encode(context)
    torch.testing.assert_close(it.encode(context)[1], F.normalize(single.mean(0), dim=-1))


def test_chunks_give_the_same_vectors_and_gradients(monkeypatch):
    it, found = encoder(model()), []
    for size in (128, 3):
        monkeypatch.setattr(context_prompts, "SENTENCES_PER_CHUNK", size)
        given = contexts(2, 4).requires_grad_()
        vectors = it.encode_for_images(given)
        (vectors * torch.arange(24)).sum().backward()
        found.append((vectors.detach(), given.grad))
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-5)
    assert found[0][1].abs().max() > 0


def test_other_labels_use_the_same_tower():
    it, context = encoder(model()), contexts(4)
    other = it.with_names(["cow"]).encode(context)
    torch.testing.assert_close(other, encoder(model(), ["cow"]).encode(context))


@pytest.mark.parametrize(("kind", "text"), TOWERS[:2])
def test_a_context_that_leaves_no_room_for_a_label_is_refused_with_the_numbers(kind, text):
    # start token, 5 words, full stop and end token
    longest = encoder(model(kind, **text), length=8)
    assert longest.encode(contexts(8)).isfinite().all()
    with pytest.raises(
        ConfigError,
        match=r"at most 16 tokens.* got 9 context vectors and 8 tokens of 'a long .* at most 8",
    ):
        encoder(model(kind, **text), length=9)


def test_a_label_that_the_tokenizer_cuts_off_is_refused_without_a_shorter_context():
    with pytest.raises(ConfigError, match=r" 16 or more tokens of 'sea .*'\. Use a shorter label"):
        encoder(model(), ["sea " * 40], length=1)


@pytest.mark.parametrize("length", [0, -1, 2.0])
def test_a_number_of_context_vectors_below_1_is_refused(length):
    with pytest.raises(ConfigError, match="must be a whole number of at least 1; got"):
        encoder(model(), length=length)


@pytest.mark.parametrize("shape", [(3, 16), (4, 8), (3, 4, 16)])
def test_a_context_of_another_shape_is_refused(shape):
    with pytest.raises(InputError, match=r"must have shape \(4, 16\) or \(4, 4, 16\); got"):
        encoder(model()).encode(torch.zeros(shape))


def test_contexts_of_images_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"must have shape \(n, 4, 16\); got \(4, 16\)"):
        encoder(model()).encode_for_images(contexts(4))


@pytest.mark.parametrize("whole", [model(CustomTextCLIP, embed_cls=True), torch.nn.Linear(2, 2)])
def test_a_text_tower_of_another_kind_is_refused(whole):
    with pytest.raises(ConfigError, match=r"Learned prompts need .* Use tiny-vit"):
        encoder(whole)
