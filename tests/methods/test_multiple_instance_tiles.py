import pytest
import torch
import torch.nn.functional as F

from surelabel.config import load_run
from surelabel.encoders import load_encoder
from surelabel.links import Sigmoid
from surelabel.methods import MultipleInstanceTiles, copy_method_fit
from surelabel.metrics import mean_average_precision
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.records import Features

NAMES = ["lion", "guitar", "bus"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n, views=13):
    return Features(units(0, n, 128), views=units(1, n, views, 128))


@torch.no_grad()
def test_the_whole_image_and_the_tiles_are_the_instances(encoder):
    method = MultipleInstanceTiles(encoder, NAMES).eval()
    features = images(2)
    instances = torch.cat([features.pooled[:, None], features.views], dim=1)
    torch.testing.assert_close(method(features), method.scorer(instances))
    assert method.view_scores(features).shape == (2, 14, 3)
    without_tiles = method(Features(features.pooled))
    torch.testing.assert_close(without_tiles, method.scorer(features.pooled[:, None]))


@torch.no_grad()
def test_each_cell_of_a_heat_map_is_the_mean_of_the_tiles_that_contain_it(encoder):
    method = MultipleInstanceTiles(encoder, NAMES).eval()
    scores, maps = method.view_scores(images(2))[1, :, 2].tolist(), method.heat_maps(images(2))
    assert maps.shape == (2, 3, 6, 6)
    for row in range(6):
        for column in range(6):
            coarse = scores[1 + 2 * (row // 3) + column // 3]
            fine = scores[5 + 3 * (row // 2) + column // 2]
            assert maps[1, 2, row, column].item() == pytest.approx((coarse + fine) / 2, abs=1e-4)


@torch.no_grad()
def test_a_new_label_has_the_shared_slope_and_bias_and_moves_no_other_score(encoder):
    method = MultipleInstanceTiles(encoder, NAMES).eval()
    targets = torch.eye(3).repeat(4, 1)
    method.initialize(images(12), targets, targets >= 0, Sigmoid())
    method.scorer.classes.biases += 1.0
    other = MultipleInstanceTiles(encoder, ["pizza", "guitar"]).eval()
    copy_method_fit(method, other, encoder)
    assert other.fit_names == NAMES
    torch.testing.assert_close(other(images(2))[:, 1], method(images(2))[:, 1])
    untrained = MultipleInstanceTiles(encoder, ["pizza"]).eval()
    shared = method.scorer.log_slope.exp() * untrained(images(2)) + method.scorer.bias
    torch.testing.assert_close(other(images(2))[:, :1], shared)


def test_planted_instances_are_learned_although_only_images_are_labelled(encoder):
    generator = torch.Generator().manual_seed(0)
    targets = (torch.rand(120, 3, generator=generator) < 0.3).float()
    prototypes = units(5, 3, 128)
    views = units(6, 120, 13, 128)
    for image, label in targets.nonzero().tolist():  # one tile of the image shows the label
        views[image, (5 * image + 4 * label) % 13] = prototypes[label]
    features = Features(units(7, 120, 128), views=views)
    settings = ["method.name=multiple_instance_tiles", "epochs=15", "batch_size=16"]
    run = load_run(overrides=[*settings, "learning_rate=0.02"])
    data = FittingData([""] * 120, features, targets, targets >= 0)
    fitted = fit_recognizer_method(run, encoder, NAMES, data)
    with torch.no_grad():
        unfitted = MultipleInstanceTiles(encoder, NAMES)(features).sigmoid().double().numpy()
        probabilities = fitted(features).sigmoid().double().numpy()
    assert mean_average_precision(unfitted, targets.numpy()) < 0.6
    assert mean_average_precision(probabilities, targets.numpy()) > 0.9
    image, label = (index.item() for index in targets.nonzero()[0])
    winner = fitted.view_scores(features)[image, 1:, label].argmax().item()
    assert winner == (5 * image + 4 * label) % 13
