import json

import pytest
import torch

from surelabel.backbones import TEMPLATES, load_backbone
from surelabel.errors import ConfigError, DataError


def test_it_is_a_width_and_nothing_else(tmp_path):
    stand_in = load_backbone("features:1280")
    stand_in.save(tmp_path / "saved")
    again = load_backbone(f"local-dir:{tmp_path / 'saved'}")
    assert (again.name, again.width) == ("features:1280", 1280)
    assert again.fingerprint == stand_in.fingerprint != load_backbone("features:64").fingerprint
    assert again.dense_parts == ()


def test_pictures_and_texts_are_refused_in_one_sentence_each():
    stand_in = load_backbone("features:3")
    pictures = "features:3 takes ready-made vectors of 3 numbers and no pictures: give it Labelled"
    for call in (
        lambda: stand_in.prepare(None),
        lambda: stand_in.images(torch.zeros(1, 3, 8, 8)),
        lambda: stand_in.least_side,
        lambda: stand_in.at(96),
    ):
        with pytest.raises(ConfigError, match=pictures):
            call()
    with pytest.raises(ConfigError, match="features:3 knows no words"):
        stand_in.texts(["dog"], TEMPLATES["one"])
    with pytest.raises(ConfigError, match="features:3 gives vectors of whole pictures alone"):
        stand_in.trunk(torch.zeros(1, 3, 8, 8))
    with pytest.raises(ConfigError, match="features:3 cannot be trained"):
        stand_in.network()


@pytest.mark.parametrize("width", ["", "0", "-3", "1.5", "x", "²", "9" * 5000, " 8"])
def test_a_width_that_is_no_whole_number_is_refused(width):
    with pytest.raises(ConfigError, match="features:WIDTH needs the length of the vectors"):
        load_backbone(f"features:{width}")


def test_a_saved_width_that_is_no_number_is_refused(tmp_path):
    load_backbone("features:8").save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_backbone.json"
    about = json.loads(file.read_text())
    for wrong in ("8", None, True, [8]):
        file.write_text(json.dumps({**about, "features": wrong}))
        with pytest.raises(DataError, match="must state a width"):
            load_backbone(f"local-dir:{file.parent}")
    file.write_text(json.dumps({**about, "features": 9}))
    with pytest.raises(DataError, match="was made with weights"):
        load_backbone(f"local-dir:{file.parent}")
