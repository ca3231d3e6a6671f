import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods import DualCoOp
from surelabel.records import Features

NAMES = ["lion", "guitar"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n=2):
    return Features(units(0, n, 128), patches=units(1, n, 6, 128), grid=(2, 3))


@pytest.mark.parametrize("spatial_scale", [0.0, 20.0])
def test_the_score_is_that_of_the_image_and_of_its_weighted_regions(spatial_scale, encoder):
    it = DualCoOp(encoder, NAMES, spatial_scale=spatial_scale).eval()
    with torch.no_grad():
        it.level.log_slope.fill_(math.log(0.5))
        it.level.bias.fill_(-2.0)
        it.negative_weight.fill_(0.3)
        positive, negative, found = it.positive(), it.negative(), it(images())
    tau, reference = encoder.scale, it.text_scorer.reference

    def similarity(x, text):
        mean = sum(math.exp(tau * float(x @ other)) for other in reference) / len(reference)
        return tau * float(x @ text) - math.log(mean)

    for i in range(2):
        regions = [images().pooled[i], *images().patches[i]]
        for c in range(2):
            present = [similarity(x, positive[c]) for x in regions]
            absent = [similarity(x, negative[c]) for x in regions]
            weights = [math.exp(spatial_scale * float(x @ positive[c])) for x in regions]
            local = sum(w * s for w, s in zip(weights, present, strict=True)) / sum(weights)
            without = sum(w * s for w, s in zip(weights, absent, strict=True)) / sum(weights)
            expected = 0.5 * ((present[0] + local) / 2 - 0.3 * without) - 2
            assert found[i, c].item() == pytest.approx(expected, abs=1e-3)


def test_both_contexts_and_numbers_that_all_labels_share_are_trained(encoder):
    it = DualCoOp(encoder, NAMES, context_length=16)
    shapes = {name: tuple(p.shape) for name, p in it.named_parameters() if p.requires_grad}
    assert shapes == {
        **{"positive.vectors": (16, 128), "negative.vectors": (16, 128)},
        **{"negative_weight": (), "level.log_slope": (), "level.bias": ()},
    }


def test_class_specific_contexts_belong_to_the_labels_of_the_fit(encoder):
    it = DualCoOp(encoder, NAMES, class_specific=True)
    assert not it.open_vocabulary
    assert it.positive.vectors.shape == (2, 4, 128)
    assert it(images()).shape == (2, 2)


def test_a_heat_map_is_the_score_of_each_patch_alone(encoder):
    it = DualCoOp(encoder, NAMES).eval()
    patch = images().patches[1, 4][None]
    alone = it(Features(patch, patches=patch[:, None], grid=(1, 1)))
    torch.testing.assert_close(it.heat_maps(images())[1, :, 1, 1], alone[0])


@pytest.mark.parametrize("value", [-1.0, math.inf])
def test_a_spatial_scale_out_of_range_is_refused(value, encoder):
    with pytest.raises(ConfigError, match="spatial_scale must be 0 or more"):
        DualCoOp(encoder, NAMES, spatial_scale=value)
