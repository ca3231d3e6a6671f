import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.methods import T2IPAL, copy_method_fit
from surelabel.records import Features
from surelabel.training.learning_rates import learning_rate_parameter_groups

NAMES = ["lion", "guitar", "bus"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n=2):
    return Features(units(0, n, 128), patches=units(1, n, 6, 128), grid=(2, 3))


def moved(encoder, names=NAMES, **settings):
    torch.manual_seed(0)
    it = T2IPAL(encoder, names, **settings).eval()
    with torch.no_grad():
        it.prototypes.vectors += 0.1 * units(2, len(names), 128)
        it.local_context.vectors += 0.1
        it.level.log_slope.fill_(math.log(0.5))
        it.level.bias.fill_(-2.0)
    return it


@pytest.mark.parametrize(
    ("spatial_scale", "ratio", "weight"), [(20.0, 0.2, 0.2), (0.0, 1.0, 0.0), (5.0, 0.0, 1.0)]
)
@torch.no_grad()
def test_the_score_is_that_of_adapted_vectors_with_texts_and_prototypes(
    spatial_scale, ratio, weight, encoder
):
    it = moved(encoder, spatial_scale=spatial_scale, ratio=ratio, prototype_weight=weight)
    whole_texts, local_texts, found = it.global_context(), it.local_context(), it(images())
    tau, reference = encoder.scale, it.text_scorer.reference
    first, second = it.adapter[0].weight, it.adapter[2].weight

    def similarity(x, text):
        mean = sum(math.exp(tau * float(x @ other)) for other in reference) / len(reference)
        return tau * float(x @ text) / float(text.norm()) - math.log(mean)

    def adapt(x):
        mixed = ratio * (second @ (first @ x).clamp(min=0)).clamp(min=0) + (1 - ratio) * x
        return mixed / mixed.norm()

    for i in range(2):
        patches = images().patches[i]
        for c in range(len(NAMES)):
            shares = [math.exp(spatial_scale * float(x @ local_texts[c])) for x in patches]
            region = sum(w * x for w, x in zip(shares, patches, strict=True)) / sum(shares)
            region = adapt(region / region.norm())
            whole = similarity(adapt(images().pooled[i]), whole_texts[c])
            local = similarity(region, local_texts[c])
            prototype = similarity(region, it.prototypes.vectors[c])
            merged = (1 - weight) * (whole + local) / 2 + weight * prototype
            assert found[i, c].item() == pytest.approx(0.5 * merged - 2, abs=2e-3)


def test_contexts_prototypes_and_adapter_are_trained_together(encoder):
    it = T2IPAL(encoder, NAMES, context_length=16)
    shapes = {name: tuple(p.shape) for name, p in it.named_parameters() if p.requires_grad}
    assert shapes == {
        **{"global_context.vectors": (16, 128), "local_context.vectors": (16, 128)},
        **{"prototypes.vectors": (3, 128), "adapter.0.weight": (32, 128)},
        **{"adapter.2.weight": (128, 32), "level.log_slope": (), "level.bias": ()},
    }
    it(images()).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in it.parameters())


def test_prototypes_start_at_the_texts_and_have_ten_times_the_learning_rate(encoder):
    it = T2IPAL(encoder, NAMES)
    assert torch.equal(it.prototypes.vectors, it.text_scorer.texts)
    source = torch.nn.Module()  # without parameters
    groups = learning_rate_parameter_groups(it, source, learning_rate=0.1, weight_decay=0.0)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert rates[id(it.prototypes.vectors)] == pytest.approx(1.0)
    assert rates[id(it.adapter[0].weight)] == pytest.approx(0.1)


@torch.no_grad()
def test_the_prototype_of_a_new_label_is_its_text_without_context(encoder):
    it = moved(encoder)
    new = T2IPAL(encoder, ["pizza", "guitar"]).eval()
    copy_method_fit(it, new, encoder)
    assert new.fit_names == NAMES
    torch.testing.assert_close(new(images())[:, 1], it(images())[:, 1])
    prototypes = new.prototypes(new.text_scorer.texts)
    torch.testing.assert_close(prototypes[0], new.text_scorer.texts[0])
    torch.testing.assert_close(prototypes[1], F.normalize(it.prototypes.vectors[1], dim=0))


@torch.no_grad()
def test_a_heat_map_is_the_score_of_each_patch_alone(encoder):
    it = moved(encoder)
    patch = images().patches[1, 4][None]
    alone = it(Features(patch, patches=patch[:, None], grid=(1, 1)))
    torch.testing.assert_close(it.heat_maps(images())[1, :, 1, 1], alone[0])


def test_scale_and_bias_are_those_of_platt_scaling(encoder):
    it, targets = T2IPAL(encoder, NAMES).eval(), (torch.arange(120) % 5 < 1).float().view(40, 3)
    features = Features(units(3, 40, 128), patches=units(4, 40, 6, 128), grid=(2, 3))
    it.initialize(features, targets, targets >= 0, Sigmoid())
    with torch.no_grad():
        assert it(features).sigmoid().mean().item() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spatial_scale": -1.0}, "spatial_scale must be 0 or more, and finite; got -1.0"),
        ({"spatial_scale": math.nan}, "spatial_scale must be 0 or more, and finite; got nan"),
        ({"ratio": 1.1}, r"ratio must be in \[0, 1\]; got 1.1"),
        ({"prototype_weight": -0.1}, r"prototype_weight must be in \[0, 1\]; got -0.1"),
        ({"reduction": 0}, "reduction must be 1 or more; got 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message, encoder):
    with pytest.raises(ConfigError, match=message):
        T2IPAL(encoder, NAMES, **settings)
