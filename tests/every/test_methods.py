"""What every method must do. A new line in METHODS is tested here with no more work."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import METHODS, of_patches
from surelabel.records import Features
from surelabel.training import Labelled, Objective, fit, of_elements

every = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
learning = pytest.mark.parametrize(
    "method", [m for m in METHODS.values() if m.learns_from == "labels"], ids=lambda m: m.__name__
)
NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture
def features(backbone):
    generator = torch.Generator().manual_seed(1)
    return Features(F.normalize(torch.randn(8, backbone.width, generator=generator), dim=-1))


def made(method, backbone, names=NAMES):
    torch.manual_seed(0)
    return method(backbone, names).eval()


def trained(method, backbone, features):
    it = made(method, backbone)
    targets = torch.tensor(
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]] + [[0, 0, 0]] * 3
    )
    source = Labelled(features, targets.float(), torch.ones(8, 3, dtype=torch.bool), size=8)
    fit(it, source, objective=Objective(of_elements(binary)), epochs=400, learning_rate=0.03)
    return it, targets


@every
def test_one_score_a_picture_and_name(method, backbone, features):
    assert made(method, backbone)(features).shape == (8, 3)


@every
def test_permuting_the_names_permutes_the_columns(method, backbone, features):
    it, other = made(method, backbone), made(method, backbone, NAMES[::-1])
    torch.testing.assert_close(it(features).flip(1), other(features))


@every
def test_a_name_keeps_its_score_when_others_are_added(method, backbone, features):
    alone, among = made(method, backbone, NAMES[:1]), made(method, backbone)
    torch.testing.assert_close(alone(features), among(features)[:, :1])


@every
def test_each_picture_is_scored_on_its_own(method, backbone, features):
    it = made(method, backbone)
    alone = torch.cat([it(Features(features.pooled[i : i + 1])) for i in range(8)])
    torch.testing.assert_close(it(features), alone)


@every
def test_patches_are_scored_like_pictures(method, backbone, features):
    it = made(method, backbone)
    patches = Features(features.pooled[:2], features.pooled.view(2, 4, -1), (2, 2))
    torch.testing.assert_close(of_patches(it, patches).view(8, 3), it(features))


@every
def test_the_state_alone_gives_the_same_scores_again(method, backbone, features):
    it, other = made(method, backbone), made(method, backbone)
    with torch.no_grad():
        for p in it.parameters():
            p += 0.1
    other.load_state_dict(it.state_dict())
    assert torch.equal(it(features), other(features))


@learning
def test_learns_eight_pictures_by_heart(method, backbone, features):
    it, targets = trained(method, backbone, features)
    assert torch.equal(it(features) > 0, targets.bool())


@learning
def test_training_leaves_the_texts_and_the_encoder_alone(method, backbone, features):
    before = backbone.texts(NAMES, ["a photo of a {}."]).clone()
    it, _ = trained(method, backbone, features)
    assert torch.equal(backbone.texts(NAMES, ["a photo of a {}."]), before)
    for name, buffer in it.named_buffers():
        assert torch.equal(buffer, dict(made(method, backbone).named_buffers())[name])


@learning
def test_same_seed_same_answer(method, backbone, features):
    first, second = (trained(method, backbone, features)[0] for _ in range(2))
    assert torch.equal(first(features), second(features))


of_pixels = pytest.mark.parametrize(
    "method", [m for m in METHODS.values() if "pixels" in m.needs], ids=lambda m: m.__name__
)


@pytest.fixture(scope="module")
def small():
    return load_backbone("timm:test_vit", pretrained=False, size=32)


@pytest.fixture
def noise(small):
    pixels = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    return Features(small.images(pixels).pooled, pixels=pixels)


def started(method, small, noise, names=NAMES):
    it, known = made(method, small, names), torch.ones(8, len(names), dtype=torch.bool)
    it.start(Features(noise.pooled), known.float().tril(), known, Sigmoid())
    with torch.no_grad():
        for p in it.head.parameters():
            p += torch.arange(len(names)).view(-1, *[1] * (p.ndim - 1)) / 100
    return it


@of_pixels
def test_pixels_are_scored_picture_by_picture_as_their_vectors_are(method, small, noise):
    it = started(method, small, noise)
    together = it(noise)
    alone = torch.cat([it(Features(noise.pooled[:0], pixels=x[None])) for x in noise.pixels])
    assert together.shape == (8, 3)
    torch.testing.assert_close(alone, together, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(it(Features(noise.pooled)), together, atol=1e-4, rtol=1e-4)


@of_pixels
def test_a_network_is_trained_and_the_frozen_encoder_is_not(method, small, noise):
    it, mark = started(method, small, noise), small.fingerprint
    before = [p.detach().clone() for p in it.network.parameters()]
    it(noise).square().mean().backward()
    torch.optim.SGD(it.parameters(), lr=0.1).step()
    after = it.network.parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    tuned = it.tuned()
    assert tuned.fingerprint != mark
    assert not any(p.requires_grad for p in tuned.model.parameters())
    torch.testing.assert_close(small.images(noise.pixels).pooled, noise.pooled)
