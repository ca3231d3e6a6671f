import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import (
    encode_sentence_block_features,
    encode_sentence_features,
    sentence_features,
)

SENTENCES = ["a lion.", "a photo of a guitar and a pizza.", "lion", "two buses beside a tall tree."]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def rounded(vectors):
    return torch.nn.functional.normalize(vectors.half().float(), dim=-1)


@pytest.mark.parametrize("block", [1, 3, 256])
def test_the_vectors_are_those_of_the_encoder_in_half_precision(block, encoder, monkeypatch):
    monkeypatch.setattr(sentence_features, "SENTENCES_PER_BLOCK", block)
    rows = torch.tensor([3, 0, 1])
    packed = encode_sentence_features(encoder, SENTENCES)
    found, expected = packed.take(rows), encoder.encode_sentence_tokens(SENTENCES)
    mask = expected.patch_mask[rows]
    assert len(packed) == 4
    assert torch.equal(found.patch_mask, mask)
    torch.testing.assert_close(found.pooled, rounded(expected.pooled)[rows], atol=5e-4, rtol=0)
    torch.testing.assert_close(found.patches, rounded(expected.patches)[rows], atol=5e-4, rtol=0)
    torch.testing.assert_close(found.patches.norm(dim=-1), mask.float())


def test_only_tokens_are_stored_and_not_the_padding(encoder):
    packed = encode_sentence_features(encoder, SENTENCES)
    lengths = encoder.encode_sentence_tokens(SENTENCES).patch_mask.sum(dim=1)
    assert packed.starts.tolist() == [0, *lengths.cumsum(0).tolist()]
    assert packed.tokens.shape == (int(lengths.sum()), 128)
    assert packed.tokens.dtype == packed.pooled.dtype == torch.float16


def test_a_batch_is_padded_only_to_its_longest_sentence(encoder):
    packed = encode_sentence_features(encoder, SENTENCES)
    assert packed.take(torch.tensor([2])).patches.shape == (1, 3, 128)
    assert packed.take(torch.tensor([2])).patch_mask.all()


def test_progress_counts_sentences(encoder, monkeypatch):
    monkeypatch.setattr(sentence_features, "SENTENCES_PER_BLOCK", 3)
    steps = []
    encode_sentence_features(encoder, SENTENCES, progress=lambda *step: steps.append(step))
    assert steps == [(3, 4), (4, 4)]


def test_an_encoder_without_a_text_tower_is_refused():
    with pytest.raises(ConfigError, match="features:8 has no text tower"):
        encode_sentence_features(load_encoder("features:8"), SENTENCES)


@pytest.mark.parametrize("block", [1, 256])
def test_block_tokens_are_stored_in_half_precision_without_normalization(
    block, encoder, monkeypatch
):
    monkeypatch.setattr(sentence_features, "SENTENCES_PER_BLOCK", block)
    rows = torch.tensor([3, 0, 1])
    packed = encode_sentence_block_features(encoder, SENTENCES, depth=2)
    found, expected = packed.take(rows), encoder.encode_sentence_block_tokens(SENTENCES, depth=2)
    assert found.patches is None
    assert torch.equal(found.patch_mask, expected.patch_mask[rows])
    tokens = expected.layers[-3][rows].half().float()
    torch.testing.assert_close(found.layers[-3], tokens, atol=2e-3, rtol=1e-3)
    assert not found.layers[-3][~found.patch_mask].any()


def test_block_tokens_beyond_half_precision_are_refused(encoder, monkeypatch):
    whole = encoder.encode_sentence_block_tokens(SENTENCES, depth=1)
    whole.layers[-2][0, 0, 0] = 1e6
    monkeypatch.setattr(
        type(encoder), "encode_sentence_block_tokens", lambda self, sentences, depth: whole
    )
    with pytest.raises(
        InputError,
        match="input tokens of the last 1 text blocks of tiny-vit must be finite in fp16",
    ):
        encode_sentence_block_features(encoder, SENTENCES, depth=1)
