import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods import CoOpMatching, copy_method_fit
from surelabel.methods.coop_matching import IMAGES_PER_BATCH
from surelabel.records import Features
from surelabel.transport import sinkhorn

NAMES = ["lion", "guitar", "pizza"]
TARGETS = torch.tensor([[1.0, 0, 1], [0, 0, 0]])
KNOWN = torch.ones(2, 3, dtype=torch.bool)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n=2):
    return Features(units(0, n, 128), patches=units(1, n, 6, 128), grid=(2, 3))


REGIONS = torch.cat([images().pooled[:, None], images().patches], dim=1)


def moved(encoder, names=NAMES, **settings):
    """Return a method whose context and level differ from their initial values."""
    it = CoOpMatching(encoder, names, **settings).eval()
    with torch.no_grad():
        it.context.vectors += 0.02 * units(3, *it.context.vectors.shape)
        it.level.log_slope.fill_(math.log(0.5))
        it.level.bias.fill_(-2.0)
    return it


def plan_by_hand(encoder, texts, teacher_cost=0.0, regularization=0.1):
    """Return the transport plan of regions and labels of equal weight, ``(n, p, c)``."""
    cosines = REGIONS @ texts.T
    cost = 1 - (encoder.scale * cosines).softmax(2) + teacher_cost
    rows = (10 * cosines.amax(2)).softmax(1)
    columns = torch.full((2, len(texts)), 1 / len(texts))
    return sinkhorn(cost, rows, columns, regularization=regularization, max_steps=10_000).matrix


def score_by_hand(it, encoder, i, c, texts, plan):
    """Return the score of one image and label, with loops over the regions."""

    def relative(x):
        others = [math.exp(encoder.scale * float(x @ r)) for r in it.text_scorer.reference]
        return encoder.scale * float(x @ texts[c]) - math.log(sum(others) / len(others))

    shares = [float(plan[i, r, c]) / float(plan[i, :, c].sum()) for r in range(7)]
    local = sum(w * relative(x) for w, x in zip(shares, REGIONS[i], strict=True))
    return 0.5 * (relative(images().pooled[i]) + local) / 2 - 2


def test_the_score_is_that_of_the_image_and_of_its_matched_regions(encoder):
    it = moved(encoder)
    with torch.no_grad():
        found, texts = it(images()), it.context()
    plan = plan_by_hand(encoder, texts)
    for i in range(2):
        for c in range(3):
            expected = score_by_hand(it, encoder, i, c, texts, plan)
            assert found[i, c].item() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_regions_are_matched_with_the_teacher_plan_in_training(weight, encoder):
    it = moved(encoder, knowledge_weight=weight)
    with torch.no_grad():
        found, texts = it.training_scores(images(), TARGETS, KNOWN), it.context()
    probabilities = (encoder.scale * REGIONS @ it.text_scorer.texts.T).softmax(2)
    teacher = -weight * (20 * probabilities).log_softmax(1) * TARGETS[:, None]
    plan = plan_by_hand(encoder, texts, teacher, 0.1 + weight)
    assert found.shape == (1, 2, 3)
    for i in range(2):
        for c in range(3):
            expected = score_by_hand(it, encoder, i, c, texts, plan)
            assert found[0, i, c].item() == pytest.approx(expected, abs=2e-3)
    assert torch.allclose(found[0], it(images()), atol=1e-4) == (weight == 0)


def test_an_unknown_target_has_no_teacher(encoder):
    it = moved(encoder, knowledge_weight=0.5)
    unknown = it.training_scores(images(), TARGETS, ~KNOWN)
    torch.testing.assert_close(unknown, it.training_scores(images(), 0 * TARGETS, KNOWN))
    assert not torch.allclose(unknown, it.training_scores(images(), TARGETS, KNOWN), atol=1e-3)


def test_gradients_reach_the_context_and_the_shared_scale_and_bias_only(encoder):
    it = moved(encoder)
    it.training_scores(images(), TARGETS, KNOWN).square().sum().backward()
    shapes = {name: tuple(p.shape) for name, p in it.named_parameters() if p.grad.any()}
    assert shapes == {"context.vectors": (4, 128), "level.log_slope": (), "level.bias": ()}


def test_other_new_labels_have_no_influence_on_the_score_of_a_label(encoder):
    it = moved(encoder)
    many = CoOpMatching(encoder, ["bus", "guitar", "cow", "sofa|couch"]).eval()
    few = CoOpMatching(encoder, ["cow"]).eval()
    for other in (many, few):
        copy_method_fit(it, other, encoder)
        assert other.fit_names == NAMES
    with torch.no_grad():
        found = many(images())
        torch.testing.assert_close(found[:, 1], it(images())[:, 1], atol=2e-4, rtol=0)
        torch.testing.assert_close(found[:, 2:3], few(images()), atol=2e-4, rtol=0)


def test_batches_of_images_are_scored_like_one_image(encoder):
    it, n = moved(encoder), IMAGES_PER_BATCH + 3
    with torch.no_grad():
        last = Features(images(n).pooled[-1:], patches=images(n).patches[-1:], grid=(2, 3))
        torch.testing.assert_close(it(images(n))[-1:], it(last), atol=2e-4, rtol=0)


def test_a_heat_map_is_the_score_of_each_patch_alone(encoder):
    it = moved(encoder)
    patch = images().patches[1, 4][None]
    alone = it(Features(patch, patches=patch[:, None], grid=(1, 1)))
    torch.testing.assert_close(it.heat_maps(images())[1, :, 1, 1], alone[0])


def test_class_specific_contexts_belong_to_the_labels_of_the_fit(encoder):
    it = CoOpMatching(encoder, NAMES, class_specific=True)
    assert not it.open_vocabulary
    assert it(images()).shape == (2, 3)
    with pytest.raises(ConfigError, match=r"only for the labels of the fit.*class_specific=false"):
        it.use_fit_labels(encoder, ["bus"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularization": 0.0}, "regularization must be above 0"),
        ({"knowledge_weight": -1.0}, "knowledge_weight must be 0 or more"),
        ({"presence_scale": math.inf}, "presence_scale must be 0 or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message, encoder):
    with pytest.raises(ConfigError, match=message):
        CoOpMatching(encoder, NAMES, **settings)
