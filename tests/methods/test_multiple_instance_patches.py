import pytest
import torch
import torch.nn.functional as F

from surelabel.config import load_run
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.links import Sigmoid
from surelabel.methods import MultipleInstancePatches, copy_method_fit
from surelabel.metrics import mean_average_precision
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.records import Features

NAMES = ["lion", "guitar", "bus"]
LAYERS = (5, 192)  # of tiny-vit


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def noise(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def units(seed, *shape):
    return F.normalize(noise(seed, *shape), dim=-1)


def images(n):
    return Features(
        units(0, n, 128),
        units(1, n, 12, 128),
        (3, 4),
        views=units(2, n, 1, 128),
        multi_layer=units(3, n, 12, *LAYERS),
    )


@torch.no_grad()
def test_the_image_at_two_sizes_and_the_cells_are_the_instances(encoder):
    method, features = MultipleInstancePatches(encoder, NAMES).eval(), images(2)
    method.layer_map += 0.1 * noise(4, *method.layer_map.shape)
    mapped = torch.einsum("npkw,dkw->npd", features.multi_layer, method.layer_map)
    cells = F.normalize(features.patches + mapped, dim=-1)
    instances = torch.cat([features.pooled[:, None], features.views, cells], dim=1)
    torch.testing.assert_close(method(features), method.scorer(instances))
    assert method.view_scores(features).shape == (2, 2, 3)
    maps = method.heat_maps(features)
    assert maps.shape == (2, 3, 3, 4)
    torch.testing.assert_close(maps[1, 2].flatten(), method.scorer.instance_scores(cells)[1, :, 2])


def test_the_whole_image_is_encoded_again_only_if_the_two_sizes_differ(encoder):
    method = MultipleInstancePatches(encoder, NAMES)
    assert (method.image_size, method.max_views) == (192, 1)
    assert method.next_views(Features(units(0, 2, 128))).regions == ((0, 0, 1, 1),)
    assert method.next_views(images(2)) is None
    same = MultipleInstancePatches(encoder, NAMES, image_size=96)
    assert (same.image_size, same.max_views) == (96, 0)
    assert same.next_views(Features(units(0, 2, 128))) is None
    with pytest.raises(ConfigError, match="multiple of"):
        MultipleInstancePatches(encoder, NAMES, image_size=100)


def test_features_of_another_kind_are_refused(encoder):
    method = MultipleInstancePatches(encoder, NAMES)
    with pytest.raises(InputError, match="Encode images with kind='multi_layer'"):
        method(Features(units(0, 2, 128), units(1, 2, 12, 128), (3, 4)))


@torch.no_grad()
def test_a_new_label_has_the_shared_slope_and_bias_and_moves_no_other_score(encoder):
    method = MultipleInstancePatches(encoder, NAMES).eval()
    targets = torch.eye(3).repeat(4, 1)
    method.initialize(images(12), targets, targets >= 0, Sigmoid())
    method.scorer.classes.biases += 1.0
    method.layer_map += 0.1 * noise(4, *method.layer_map.shape)
    other = MultipleInstancePatches(encoder, ["pizza", "guitar"]).eval()
    copy_method_fit(method, other, encoder)
    torch.testing.assert_close(other(images(2))[:, 1], method(images(2))[:, 1])
    untrained = MultipleInstancePatches(encoder, ["pizza"]).eval()
    untrained.layer_map.copy_(method.layer_map)
    shared = method.scorer.log_slope.exp() * untrained(images(2)) + method.scorer.bias
    torch.testing.assert_close(other(images(2))[:, :1], shared)


def test_planted_layer_outputs_are_learned_although_only_images_are_labelled(encoder):
    targets = (noise(0, 100, 3) > 0.5).float()
    features, prototypes = images(100), units(5, 3, *LAYERS)
    for image, label in targets.nonzero().tolist():  # one cell of the image shows the label
        features.multi_layer[image, (5 * image + 4 * label) % 12] = prototypes[label]
    settings = ["method.name=multiple_instance_patches", "epochs=15", "batch_size=16"]
    run = load_run(overrides=[*settings, "learning_rate=0.02"])
    data = FittingData([""] * 100, features, targets, targets >= 0)
    fitted = fit_recognizer_method(run, encoder, NAMES, data)
    with torch.no_grad():
        probabilities = fitted(features).sigmoid().double().numpy()
        maps = fitted.heat_maps(features).flatten(2)
    assert mean_average_precision(probabilities, targets.numpy()) > 0.9
    image, label = (index.item() for index in targets.nonzero()[0])
    assert maps[image, label].argmax().item() == (5 * image + 4 * label) % 12
