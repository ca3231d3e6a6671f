import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods import CoCoOp, CoOp
from surelabel.methods.cocoop import IMAGES_PER_CHUNK
from surelabel.records import Features

NAMES = ["lion", "guitar"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def images(n=3):
    vectors = torch.randn(n, 128, generator=torch.Generator().manual_seed(0))
    return Features(F.normalize(vectors, dim=-1))


def with_image_network(encoder, **settings):
    torch.manual_seed(0)
    it = CoCoOp(encoder, NAMES, **settings).eval()
    torch.nn.init.normal_(it.image_network[2].weight, std=0.3)
    return it


def test_training_starts_at_the_scores_of_a_context_that_all_images_share(encoder):
    it, plain = (
        method(encoder, NAMES, initial_context="a photo of a").eval() for method in (CoCoOp, CoOp)
    )
    torch.testing.assert_close(it(images()), plain(images()))


@torch.no_grad()
def test_each_image_shifts_the_context_by_its_own_vector(encoder):
    it, plain = with_image_network(encoder), CoOp(encoder, NAMES).eval()
    (w1, b1), (w2, b2) = ((layer.weight, layer.bias) for layer in it.image_network[::2])
    for row, vector in enumerate(images().pooled):
        hidden = [max(0.0, float(w1[i] @ vector + b1[i])) for i in range(8)]
        shift = [float(sum(w * h for w, h in zip(w2[j], hidden, strict=True))) for j in range(128)]
        plain.context.vectors.copy_(it.context.vectors + torch.tensor(shift) + b2)
        expected = plain(Features(vector[None]))[0]
        torch.testing.assert_close(it(images())[row], expected, atol=1e-4, rtol=1e-4)


def test_the_image_network_has_the_size_of_the_paper(encoder):
    it = CoCoOp(encoder, NAMES)
    sizes = {name: tuple(p.shape) for name, p in it.image_network.named_parameters()}
    assert sizes == {"0.weight": (8, 128), "0.bias": (8,), "2.weight": (128, 8), "2.bias": (128,)}
    assert it.context.vectors.shape == (16, 128)


def test_more_images_than_fit_into_a_chunk_are_scored_one_like_another(encoder):
    it, n = with_image_network(encoder), IMAGES_PER_CHUNK + 2
    with torch.no_grad():
        together = it(images(n))
        alone = torch.cat([it(Features(vector[None])) for vector in images(n).pooled])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-5)


def test_a_reduction_below_1_is_refused(encoder):
    with pytest.raises(ConfigError, match="reduction must be 1 or more; got 0"):
        CoCoOp(encoder, NAMES, reduction=0)
