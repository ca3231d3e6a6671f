import pytest
import torch
import torch.nn.functional as F

from surelabel.config import load_run
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.methods import MLDecoder
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
def test_before_the_fit_an_image_with_the_text_vector_in_a_tile_ranks_first(encoder):
    method = MLDecoder(encoder, NAMES).eval()
    features = images(12)
    for label, text in enumerate(method.queries):
        features.views[label, 5] = text
    assert method(features).argmax(dim=0).tolist() == [0, 1, 2]


@torch.no_grad()
def test_the_scores_are_those_of_the_formula_for_one_image_and_one_label(encoder):
    method = MLDecoder(encoder, NAMES).eval()
    features = images(2)
    vectors = torch.cat([features.pooled[:, None], features.views], dim=1)[1]
    query, attended = method.queries[2], 0.1 * method.queries[2]
    for key, value, scale in zip(method.keys, method.values, (18.0, 3.5), strict=True):
        similarities = [
            scale * query @ key(x + p) for x, p in zip(vectors, method.positions, strict=True)
        ]
        weights = torch.stack(similarities).softmax(dim=0)
        attended = attended + sum(w * value(x) for w, x in zip(weights, vectors, strict=True))
    hidden = F.layer_norm(attended, [128])
    hidden = F.layer_norm(hidden + method.feed_forward(hidden), [128])
    expected = hidden @ method.weights[2] + method.bias[2]
    torch.testing.assert_close(method(features)[1, 2], expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_view_has_the_score_of_an_image_that_consists_of_it(encoder):
    method = MLDecoder(encoder, NAMES).eval()
    features = images(2)
    scores = method.view_scores(features)
    assert scores.shape == (2, 14, 3)
    torch.testing.assert_close(scores[:, 0], method(Features(features.pooled)))
    torch.testing.assert_close(scores[:, 4], method(Features(features.views[:, 3])))


@torch.no_grad()
def test_the_size_of_a_batch_changes_no_score(encoder, monkeypatch):
    method = MLDecoder(encoder, NAMES).eval()
    scores = method(images(5))
    monkeypatch.setattr("surelabel.methods.ml_decoder.PAIRS_PER_BATCH", 6)
    torch.testing.assert_close(method(images(5)), scores)


def test_the_initial_scores_are_calibrated_without_dropout_and_the_mode_is_kept(encoder):
    method = MLDecoder(encoder, NAMES, dropout=0.5).train()
    targets = torch.eye(3).repeat(8, 1)
    method.initialize(images(24), targets, targets >= 0, Sigmoid())
    assert method.training
    with torch.no_grad():
        probabilities = method.eval()(images(24)).sigmoid()
    assert probabilities.mean().item() == pytest.approx(1 / 3, abs=0.01)


def test_planted_tiles_are_learned_although_only_images_are_labelled(encoder):
    generator = torch.Generator().manual_seed(0)
    targets = (torch.rand(120, 3, generator=generator) < 0.3).float()
    prototypes, views = units(5, 3, 128), units(6, 120, 13, 128)
    for image, label in targets.nonzero().tolist():  # one tile of the image shows the label
        views[image, (5 * image + 4 * label) % 13] = prototypes[label]
    features = Features(units(7, 120, 128), views=views)
    settings = ["method.name=ml_decoder", "epochs=15", "batch_size=16", "learning_rate=0.01"]
    data = FittingData([""] * 120, features, targets, targets >= 0)
    fitted = fit_recognizer_method(load_run(overrides=settings), encoder, NAMES, data)
    with torch.no_grad():
        unfitted = MLDecoder(encoder, NAMES).eval()(features).sigmoid().double().numpy()
        probabilities = fitted(features).sigmoid().double().numpy()
    assert mean_average_precision(unfitted, targets.numpy()) < 0.6
    assert mean_average_precision(probabilities, targets.numpy()) > 0.9


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_dropout_out_of_range_is_refused(encoder, dropout):
    with pytest.raises(ConfigError, match=r"dropout must be in \[0, 1\); got"):
        MLDecoder(encoder, NAMES, dropout=dropout)
