import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.pseudolabels import SEWINGS, Sewing
from surelabel.tables import settings


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"overlays": -1}, "overlays must be a whole number, 0 or more"),
        ({"overlays": 1.0}, "overlays must be a whole number"),
        ({"patches": 0}, "patches must be a whole number, 1 or more"),
        ({"chance": 1.5}, r"chance must be in \[0, 1\]. Got 1.5"),
        ({"side": 0.0}, r"side must be in \(0, 1\], a part of a side. Got 0.0"),
        ({"strong": -0.1}, "strong must be 0 or more. Got -0.1"),
        ({"rate": float("nan")}, "rate must be 0 or more, such as 0.01. Got nan"),
        ({"decay": -1.0}, r"decay must be in \[0, 1 / rate\], 0 for none. Got -1.0"),
        ({"variant": "mine"}, 'variant must be "paper" or "code"'),
    ],
)
def test_a_setting_out_of_its_range_is_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        Sewing(**wrong)


def test_its_fields_are_the_settings_of_its_section():
    assert settings(SEWINGS["sewn"]) == vars(Sewing())


@pytest.mark.parametrize(("pictures", "count"), [(10, 1), (250, 10), (5000, 200), (6000, 200)])
def test_each_name_gives_fewer_of_few_pictures(pictures, count):
    scores = torch.arange(float(pictures))[:, None].repeat(1, 1)
    assert Sewing().chosen(scores).tolist() == list(range(pictures - count, pictures))


def test_all_pictures_alike_give_the_first_ones():
    assert Sewing(patches=5000).chosen(torch.zeros(10, 4)).tolist() == list(range(10))
    assert Sewing().chosen(torch.zeros(10, 4)).tolist() == [0]
