import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder, reference_names
from surelabel.errors import ConfigError
from surelabel.methods import ZeroShot
from surelabel.records import Features


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def test_equals_the_formula_one_image_and_name_at_a_time(encoder):
    pooled = F.normalize(
        torch.randn(3, encoder.width, generator=torch.Generator().manual_seed(0)), dim=-1
    )
    names = ["lion", "guitar"]
    prompt = ["a photo of a {}."]
    texts, usual = (
        encoder.encode_labels(names, prompt),
        encoder.encode_labels(reference_names(), prompt),
    )
    expected = []
    for x in pooled:
        others = [math.exp(encoder.scale * float(x @ r)) for r in usual]
        level = math.log(sum(others) / len(others))
        expected.append([encoder.scale * float(x @ t) - level for t in texts])
    got = ZeroShot(encoder, names)(Features(pooled))
    torch.testing.assert_close(got, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_spellings_of_one_label_share_a_vector(encoder):
    both = ZeroShot(encoder, ["car|taxi"]).text_scorer.texts
    mean = F.normalize(encoder.encode_labels(["car", "taxi"], ["a photo of a {}."]).mean(0), dim=-1)
    torch.testing.assert_close(both[0], mean)


def test_a_template_without_a_place_for_the_name_is_refused(encoder):
    with pytest.raises(ConfigError, match=r"\{\}"):
        ZeroShot(encoder, ["lion"], templates="a photo")
