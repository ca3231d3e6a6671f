import pytest
import torch
import torch.nn.functional as F

from surelabel.calibration import Platt
from surelabel.encoders import load_encoder
from surelabel.links import LINKS, Sigmoid
from surelabel.methods import ClipAdapter, ZeroShot
from surelabel.records import Features, TrainingStep
from surelabel.regularizers import class_covariance


def test_with_ratio_zero_it_is_zero_shot():
    encoder, names = load_encoder("tiny-vit"), ["lion", "guitar"]
    features = Features(F.normalize(torch.randn(5, encoder.width), dim=-1))
    adapted, plain = ClipAdapter(encoder, names, ratio=0.0), ZeroShot(encoder, names)
    torch.testing.assert_close(adapted(features), plain(features))


def test_the_blend_is_that_of_the_paper():
    encoder = load_encoder("tiny-vit")
    it = ClipAdapter(encoder, ["lion"], ratio=0.3)
    x = F.normalize(torch.randn(1, encoder.width), dim=-1)
    first, second = it.network[0].weight, it.network[2].weight
    mixed = 0.3 * (second @ (first @ x[0]).clamp(min=0)).clamp(min=0) + 0.7 * x[0]
    expected = ZeroShot(encoder, ["lion"])(Features(F.normalize(mixed, dim=-1)[None]))
    torch.testing.assert_close(it(Features(x)), expected)


def test_it_starts_where_zero_shot_scores_are_log_odds():
    encoder, names = load_encoder("tiny-vit"), ["lion", "guitar"]
    features = Features(F.normalize(torch.randn(40, encoder.width), dim=-1))
    targets = (torch.rand(40, 2) < 0.2).float()
    it = ClipAdapter(encoder, names, ratio=0.0)
    it.initialize(features, targets, torch.ones(40, 2, dtype=torch.bool), Sigmoid())
    found = Platt().fit(ZeroShot(encoder, names)(features).numpy(), targets.numpy())
    expected = torch.as_tensor(found.logits(ZeroShot(encoder, names)(features).numpy()))
    torch.testing.assert_close(it(features).double(), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", LINKS)
def test_it_starts_near_what_is_true_through_every_link(name):
    encoder, names = load_encoder("tiny-vit"), ["lion", "guitar"]
    torch.manual_seed(0)
    features = Features(F.normalize(torch.randn(200, encoder.width), dim=-1))
    targets, known = (torch.rand(200, 2) < 0.2).float(), torch.ones(200, 2, dtype=torch.bool)
    it, link = ClipAdapter(encoder, names, ratio=0.0), LINKS[name]()
    it.initialize(features, targets, known, link)
    said = link.log_odds(it(features)).sigmoid().mean().item()
    assert said == pytest.approx(targets.mean().item(), abs=0.03)


def test_the_gradient_of_the_class_covariance_reaches_only_the_visual_branch():
    encoder, names = load_encoder("tiny-vit"), ["lion", "guitar", "bus"]
    features = Features(F.normalize(torch.randn(16, encoder.width), dim=-1))
    it, zeros = ClipAdapter(encoder, names), torch.zeros(16, 3)
    texts = encoder.encode_labels(names, ["a photo of a {}."]).requires_grad_()
    scores = it(features)
    class_covariance(TrainingStep(scores, scores, zeros, zeros == 0, texts)).backward()
    assert texts.grad is None
    assert not it.zero_shot.text_scorer.texts.requires_grad
    trained = {name for name, parameter in it.named_parameters() if parameter.grad.any()}
    assert trained == {"network.0.weight", "network.2.weight", "log_slope", "bias"}
