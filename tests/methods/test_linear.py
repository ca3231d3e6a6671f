import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.links import LINKS, Sigmoid
from surelabel.methods import Linear
from surelabel.records import Features


def test_equals_the_formula():
    encoder = load_encoder("tiny-vit")
    it = Linear(encoder, ["a", "b"])
    with torch.no_grad():
        it.weight.normal_()
        it.bias.normal_()
        weight, level = it.weight.tolist(), it.bias.tolist()
    x = F.normalize(torch.randn(3, encoder.width), dim=-1)
    root = encoder.width**0.5
    expected = [
        [
            root * sum(a * b for a, b in zip(r, w, strict=True)) + v
            for w, v in zip(weight, level, strict=True)
        ]
        for r in x.tolist()
    ]
    torch.testing.assert_close(it(Features(x)), torch.tensor(expected))


def test_the_mean_of_the_training_vectors_is_subtracted_unless_the_setting_is_false():
    encoder = load_encoder("tiny-vit")
    vectors = torch.randn(5, encoder.width) + 2
    targets, known = torch.zeros(5, 2), torch.ones(5, 2, dtype=torch.bool)
    for centred in (True, False):
        it = Linear(encoder, ["a", "b"], centred=centred)
        it.initialize(Features(vectors), targets, known, Sigmoid())
        with torch.no_grad():
            it.weight.normal_()
        mean = torch.stack([sum(column) / 5 for column in vectors.T]) if centred else 0.0
        expected = it.scale * (vectors - mean) @ it.weight.T + it.bias
        torch.testing.assert_close(it(Features(vectors)), expected, atol=1e-3, rtol=1e-4)
        assert ("mean" in it.state_dict()) == centred


def test_heads_of_centred_vectors_are_set():
    it = Linear(load_encoder("tiny-vit"), ["a", "b"])
    weights, biases = torch.randn(2, 128), torch.randn(2)
    it.set_heads(weights, biases, torch.tensor([1.0, 0.1]))
    x = torch.randn(3, 128)
    torch.testing.assert_close(it(Features(x)), x @ weights.T + biases, atol=1e-4, rtol=1e-4)
    assert it.penalties.tolist() == pytest.approx([1.0, 0.1])


def test_it_starts_at_how_common_each_label_is():
    it = Linear(load_encoder("tiny-vit"), ["lion", "guitar"])
    targets = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    known = torch.tensor([[True, True], [True, True], [True, False], [True, True]])
    it.initialize(Features(torch.zeros(4, it.weight.shape[1])), targets, known, Sigmoid())
    expected = torch.tensor([1.5 / 3.5, 0.5 / 3.5]).log()  # half an image more on either side
    torch.testing.assert_close(it.bias.detach(), expected)


@pytest.mark.parametrize("name", LINKS)
def test_every_link_reads_the_start_as_how_common_each_label_is(name):
    it, link = Linear(load_encoder("tiny-vit"), ["lion", "guitar"]), LINKS[name]()
    targets = torch.zeros(99, 2)
    targets[:4, 0], targets[:59, 1] = 1.0, 1.0
    features = Features(torch.zeros(99, it.weight.shape[1]))
    it.initialize(features, targets, torch.ones(99, 2, dtype=torch.bool), link)
    said = link.log_odds(it(features))[0].sigmoid().detach()
    torch.testing.assert_close(said, torch.tensor([0.045, 0.595]), atol=1e-4, rtol=0)
