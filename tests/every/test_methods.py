"""What every method must do. A new line in METHODS is tested here with no more work."""

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.losses import binary
from surelabel.methods import METHODS, of_patches
from surelabel.records import Features
from surelabel.training import Labelled, fit

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
    fit(it, source, loss=binary, epochs=400, learning_rate=0.03)
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
