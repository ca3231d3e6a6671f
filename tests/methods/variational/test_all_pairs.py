import numpy as np
import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import InputError
from surelabel.methods.variational.all_pairs import (
    all_pair_scores,
    compute_pair_blocks,
    folded_pair_outputs,
    pair_block_sizes,
    shortlist_by_cosine,
    shortlist_pair_scores,
)
from surelabel.methods.variational.folded_heads import fold_posterior_heads
from surelabel.methods.variational.pair_posterior import PairPosterior

LITTLE = 4_000  # bytes: blocks of 3 images


@pytest.fixture
def posterior():
    torch.manual_seed(0)
    posterior = PairPosterior(16, hidden_width=24, s_scale=8.0).eval()
    torch.nn.init.normal_(posterior.mixture_logits)
    return posterior


def unit_vectors(seed, count):
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(count, 16, generator=generator), dim=1)


IMAGES, TEXTS = unit_vectors(1, 20), unit_vectors(2, 50)


@torch.no_grad()
def plain_scores(posterior, images=IMAGES, texts=TEXTS):
    """Return the logits and the mean log variances without folding."""
    latent = posterior.latent(posterior.hidden(images, texts))
    return posterior.logit_mixture(latent).mean(), latent.mean_log_variances()


@pytest.mark.parametrize("available", [None, LITTLE, 0])
def test_all_pairs_equal_the_network_for_every_amount_of_memory(posterior, available):
    results = all_pair_scores(
        fold_posterior_heads(posterior), IMAGES, TEXTS, available_bytes=available
    )
    for result, expected in zip(results, plain_scores(posterior), strict=True):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)


def test_blocks_are_successive_images_that_fit_into_the_memory(posterior):
    heads = fold_posterior_heads(posterior)
    blocks = list(compute_pair_blocks(heads, IMAGES, TEXTS, available_bytes=LITTLE))
    sizes = pair_block_sizes(len(TEXTS), heads, available_bytes=LITTLE)
    assert sizes.images == 3
    assert [block.first_image for block in blocks] == list(range(0, 20, 3))
    assert all(block.logits.nbytes + block.log_variances.nbytes <= LITTLE for block in blocks)
    logits = np.concatenate([block.logits for block in blocks])
    np.testing.assert_allclose(logits, plain_scores(posterior)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 7, 1_000])
def test_outputs_do_not_depend_on_the_chunk_and_on_the_smaller_side(posterior, chunk):
    heads = fold_posterior_heads(posterior)
    outputs = folded_pair_outputs(heads, IMAGES, TEXTS, chunk=chunk)
    swapped = folded_pair_outputs(heads, TEXTS, IMAGES, chunk=chunk)
    torch.testing.assert_close(outputs, torch.stack(plain_scores(posterior)), rtol=0, atol=1e-5)
    torch.testing.assert_close(swapped.transpose(1, 2), outputs, rtol=0, atol=1e-6)


def test_no_pairs_give_empty_results(posterior):
    logits, _ = all_pair_scores(fold_posterior_heads(posterior), IMAGES[:0], TEXTS)
    assert logits.shape == (0, 50)
    logits, _ = all_pair_scores(fold_posterior_heads(posterior), IMAGES, TEXTS[:0])
    assert logits.shape == (20, 0)


def test_a_shortlist_has_the_highest_cosines_and_the_scores_of_the_network(posterior):
    shortlist = shortlist_by_cosine(IMAGES, TEXTS, count=6)
    cosines = IMAGES @ TEXTS.T
    assert torch.equal(shortlist, cosines.argsort(dim=1, descending=True)[:, :6])
    results = shortlist_pair_scores(fold_posterior_heads(posterior), IMAGES, TEXTS, shortlist)
    for result, expected in zip(results, plain_scores(posterior), strict=True):
        np.testing.assert_allclose(result, expected.gather(1, shortlist), rtol=0, atol=1e-5)


def test_a_shortlist_longer_than_the_texts_is_refused():
    with pytest.raises(InputError, match=r"count must be in \[1, 50\].*got 51"):
        shortlist_by_cosine(IMAGES, TEXTS, count=51)


def test_vectors_of_another_width_are_refused(posterior):
    with pytest.raises(InputError, match="texts must have axes"):
        all_pair_scores(fold_posterior_heads(posterior), IMAGES, TEXTS[:, :3])
