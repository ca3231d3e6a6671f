import json

import pytest

from surelabel.encoders.transformers.image_processor import (
    DEFAULTS,
    image_processor_settings,
    read_transformers_image_processor,
)

OLD_CLIP = {  # as of the first CLIP models on the hub
    "crop_size": 224,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": 224,
}


def settings_of(content, model_type, folder):
    file = folder / "preprocessor_config.json"
    file.write_text(json.dumps(content))
    return read_transformers_image_processor(file, model_type).settings


def test_sizes_can_be_integers(tmp_path):
    old = settings_of(OLD_CLIP, "clip", tmp_path)
    assert old == settings_of({}, "clip", tmp_path)
    assert (old["size"], old["resize_mode"]) == ([224, 224], "shortest")
    square = settings_of({"size": 96}, "siglip", tmp_path)
    assert (square["size"], square["resize_mode"]) == ([96, 96], "squash")


def test_images_that_are_not_normalized_stay_between_0_and_1(tmp_path):
    tips = settings_of({}, "tipsv2", tmp_path)
    assert (tips["mean"], tips["std"], tips["size"]) == ([0] * 3, [1] * 3, [448, 448])


@pytest.mark.parametrize("model_type", DEFAULTS)
def test_written_settings_are_read_again(model_type, tmp_path):
    file = tmp_path / "preprocessor_config.json"
    file.write_text("{}")
    preprocess = read_transformers_image_processor(file, model_type)
    file.write_text(json.dumps(image_processor_settings(preprocess)))
    assert read_transformers_image_processor(file, model_type).settings == preprocess.settings
