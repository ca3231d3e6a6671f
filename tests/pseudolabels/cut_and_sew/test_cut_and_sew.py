import pytest
import torch

from surelabel.errors import ConfigError
from surelabel.pseudolabels import SEWINGS, CutAndSew
from surelabel.tables import table_entry_settings


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"max_overlays": -1}, "max_overlays must be a whole number of at least 0"),
        ({"max_overlays": 1.0}, "max_overlays must be a whole number"),
        ({"images_per_label": 0}, "images_per_label must be a whole number of at least 1"),
        ({"overlay_probability": 1.5}, r"overlay_probability must be in \[0, 1\]; got 1.5"),
        ({"overlay_scale": 0.0}, r"must be a fraction of a side, in \(0, 1\]; got 0.0"),
        ({"strong_view_weight": -0.1}, "strong_view_weight must be 0 or more; got -0.1"),
        (
            {"label_learning_rate": float("nan")},
            "label_learning_rate must be 0 or more, such as 0.01; got nan",
        ),
        (
            {"label_weight_decay": -1.0},
            r"label_weight_decay must be in \[0, 1 / label_learning_rate\]; got -1.0",
        ),
        ({"variant": "mine"}, 'variant must be "paper" or "code"'),
    ],
)
def test_a_setting_out_of_its_range_is_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        CutAndSew(**wrong)


def test_its_fields_are_the_settings_of_its_section():
    assert table_entry_settings(SEWINGS["cut_and_sew"]) == vars(CutAndSew())


@pytest.mark.parametrize(("images", "count"), [(10, 1), (250, 10), (5000, 200), (6000, 200)])
def test_each_name_gives_fewer_of_few_images(images, count):
    scores = torch.arange(float(images))[:, None].repeat(1, 1)
    assert CutAndSew().select_overlay_images(scores).tolist() == list(range(images - count, images))


def test_all_images_alike_give_the_first_ones():
    assert CutAndSew(images_per_label=5000).select_overlay_images(
        torch.zeros(10, 4)
    ).tolist() == list(range(10))
    assert CutAndSew().select_overlay_images(torch.zeros(10, 4)).tolist() == [0]
