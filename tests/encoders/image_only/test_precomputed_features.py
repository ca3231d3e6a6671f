import json

import pytest
import torch

from surelabel.encoders import TEMPLATES, load_encoder
from surelabel.errors import ConfigError, DataError


def test_it_is_a_width_and_nothing_else(tmp_path):
    stand_in = load_encoder("features:1280")
    stand_in.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert (again.name, again.width) == ("features:1280", 1280)
    assert again.fingerprint == stand_in.fingerprint != load_encoder("features:64").fingerprint
    assert again.patch_kinds == ()


def test_images_and_texts_are_refused_in_one_sentence_each():
    stand_in = load_encoder("features:3")
    images = "features:3 needs precomputed features of width 3; got images. Use Labelled"
    for call in (
        lambda: stand_in.preprocess(None),
        lambda: stand_in.encode_images(torch.zeros(1, 3, 8, 8)),
        lambda: stand_in.input_side,
        lambda: stand_in.with_image_size(96),
    ):
        with pytest.raises(ConfigError, match=images):
            call()
    with pytest.raises(ConfigError, match="features:3 has no text tower"):
        stand_in.encode_labels(["dog"], TEMPLATES["one"])
    with pytest.raises(ConfigError, match="features:3 computes one vector per image, but no trunk"):
        stand_in.encode_trunk_tokens(torch.zeros(1, 3, 8, 8))
    with pytest.raises(ConfigError, match="features:3 cannot be trained"):
        stand_in.trainable_network()


@pytest.mark.parametrize("width", ["", "0", "-3", "1.5", "x", "²", "9" * 5000, " 8"])
def test_a_width_that_is_no_whole_number_is_refused(width):
    with pytest.raises(ConfigError, match="WIDTH in features:WIDTH must be an integer"):
        load_encoder(f"features:{width}")


def test_a_saved_width_that_is_no_number_is_refused(tmp_path):
    load_encoder("features:8").save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    about = json.loads(file.read_text())
    for wrong in ("8", None, True, [8]):
        file.write_text(json.dumps({**about, "features": wrong}))
        with pytest.raises(DataError, match="an integer width as features"):
            load_encoder(f"local-dir:{file.parent}")
    file.write_text(json.dumps({**about, "features": 9}))
    with pytest.raises(DataError, match="got the fingerprint"):
        load_encoder(f"local-dir:{file.parent}")
