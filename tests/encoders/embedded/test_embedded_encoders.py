import json
from importlib.resources import files

import pytest

from surelabel.data.scene_words import all_scene_words
from surelabel.encoders import ENCODERS, embedded_calibration, load_encoder, reference_names
from surelabel.errors import DataError

WEIGHTS = files("surelabel.encoders").joinpath("weights")


@pytest.fixture(scope="module", params=sorted(ENCODERS))
def towers(request):
    return ENCODERS[request.param]()


def test_the_words_of_scenes_are_trained_and_rare_ones_are_named(towers):
    assert towers.labels_with_untrained_tokens([word.name for word in all_scene_words()]) == []
    assert towers.labels_with_untrained_tokens(["hot dog", "zygote", "Dog", "dog zygote"]) == [
        "zygote",
        "dog zygote",
    ]
    assert 0 < len(towers.labels_with_untrained_tokens(reference_names())) < 130


def test_their_images_are_squashed_to_96_pixels(towers):
    assert towers.preprocess_cfg["resize_mode"] == "squash"
    assert towers.preprocess_cfg["size"] == [96, 96]
    assert towers.training_domain == "emoji scenes (generated images of 299 emoji)"
    assert len(all_scene_words()) == 299


def test_a_saved_one_is_a_name_a_size_and_a_fingerprint(towers, tmp_path):
    towers.with_image_size(128 if towers.name == "tiny-rn" else 144).save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    again = load_encoder(f"local-dir:{file.parent}")
    assert again.name == towers.name
    about = json.loads(file.read_text())
    assert about["fingerprint"] == again.fingerprint != towers.fingerprint
    file.write_text(json.dumps({**about, "fingerprint": "0"}))
    with pytest.raises(DataError, match=f"for the loaded weights of {towers.name}; got 0. Copy"):
        load_encoder(f"local-dir:{file.parent}")
    file.write_text(json.dumps({**about, "embedded": "large-vit"}))
    with pytest.raises(DataError, match=r"name of an encoder .tiny-rn, tiny-vit"):
        load_encoder(f"local-dir:{file.parent}")


def test_another_image_size_has_no_stored_calibration(towers):
    assert embedded_calibration(towers) is not None
    assert embedded_calibration(towers.with_image_size(2 * towers.input_side)) is None


@pytest.mark.parametrize("size", [0, 8193, 10**12, 96.0, True, "96", None, [96, 96]])
def test_a_saved_size_that_no_image_can_have_is_refused(tmp_path, size):
    manifest = {"embedded": "tiny-vit", "size": size, "fingerprint": "0"}
    (tmp_path / "surelabel_encoder.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="must be the image side, 1 to 8192 pixels; got"):
        load_encoder(f"local-dir:{tmp_path}")


def test_a_saved_name_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "surelabel_encoder.json").write_text(json.dumps({"embedded": ["tiny-vit"]}))
    with pytest.raises(DataError, match=r"name of an encoder .tiny-rn, tiny-vit"):
        load_encoder(f"local-dir:{tmp_path}")
