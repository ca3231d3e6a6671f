import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone, reference_names
from surelabel.errors import ConfigError
from surelabel.methods import ZeroShot
from surelabel.records import Features


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


def test_equals_the_formula_one_picture_and_name_at_a_time(backbone):
    pooled = F.normalize(
        torch.randn(3, backbone.width, generator=torch.Generator().manual_seed(0)), dim=-1
    )
    names = ["lion", "guitar"]
    prompt = ["a photo of a {}."]
    texts, usual = backbone.texts(names, prompt), backbone.texts(reference_names(), prompt)
    expected = []
    for x in pooled:
        others = [math.exp(backbone.scale * float(x @ r)) for r in usual]
        level = math.log(sum(others) / len(others))
        expected.append([backbone.scale * float(x @ t) - level for t in texts])
    got = ZeroShot(backbone, names)(Features(pooled))
    torch.testing.assert_close(got, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_spellings_of_one_label_share_a_vector(backbone):
    both = ZeroShot(backbone, ["car|taxi"]).wording.texts
    mean = F.normalize(backbone.texts(["car", "taxi"], ["a photo of a {}."]).mean(0), dim=-1)
    torch.testing.assert_close(both[0], mean)


def test_a_template_without_a_place_for_the_name_is_refused(backbone):
    with pytest.raises(ConfigError, match=r"\{\}"):
        ZeroShot(backbone, ["lion"], templates="a photo")
