import pytest
from open_clip.transform import PreprocessCfg

from surelabel.encoders.open_clip.checkpoint_config import (
    complete_open_clip_preprocess_config,
    read_open_clip_checkpoint_config,
)
from surelabel.errors import ConfigError, DataError


def test_the_size_of_the_file_gives_way_to_the_size_of_the_image_tower(checkpoint, preprocess_cfg):
    folder = checkpoint(preprocess_cfg={**preprocess_cfg, "size": 224})
    architecture, preprocessing = read_open_clip_checkpoint_config(folder / "open_clip_config.json")
    assert architecture["vision_cfg"]["image_size"] == 32
    assert preprocessing == preprocess_cfg


def test_unknown_keys_of_the_file_are_refused(checkpoint):
    file = checkpoint(auto_map={"AutoModel": "x"}) / "open_clip_config.json"
    with pytest.raises(ConfigError, match="keys from model_cfg, preprocess_cfg; got 'auto_map'"):
        read_open_clip_checkpoint_config(file)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transform": "x"}, "preprocess_cfg in f must contain keys from .*; got 'transform'"),
        ({"size": 10**9}, "size in f must be the side or .* 1 to 8192 pixels; got 1000000000"),
        ({"size": [32]}, r"size in f must be .*; got \[32\]"),
        ({"size": "32"}, "size in f must be .*; got '32'"),
        ({"mode": "L"}, "mode in f must be RGB; got 'L'"),
        ({"fill_color": 256}, "fill_color in f must be an integer from 0 to 255; got 256"),
    ],
)
def test_preprocessing_settings_have_accepted_names_types_and_sizes(
    preprocess_cfg, settings, message
):
    with pytest.raises(ConfigError, match=message):
        complete_open_clip_preprocess_config({**preprocess_cfg, **settings}, "f")
    accepted = {**preprocess_cfg, "size": [32, 48], "mode": "RGB", "fill_color": 0}
    assert complete_open_clip_preprocess_config(accepted, "f") == accepted


def test_only_mean_and_std_suffice_with_the_defaults_of_open_clip_and_a_warning(preprocess_cfg):
    partial = {"mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2], "interpolation": None}
    with pytest.warns(UserWarning, match=r"in f contains no interpolation and no resize_mode\. .*"):
        complete = complete_open_clip_preprocess_config(partial, "f")
    default = PreprocessCfg()
    assert complete["interpolation"] == default.interpolation
    assert complete["resize_mode"] == default.resize_mode
    del preprocess_cfg["resize_mode"]
    with pytest.warns(
        UserWarning, match=r"no resize_mode\. The defaults of open_clip are .* shortest"
    ):
        complete = complete_open_clip_preprocess_config(preprocess_cfg, "f")
    assert complete["interpolation"] == "bilinear"
    with pytest.raises(ConfigError, match="got no std, interpolation, resize_mode"):
        complete_open_clip_preprocess_config({"mean": [0.5, 0.5, 0.5]}, "f")


def test_a_configuration_that_is_nested_too_deeply_is_refused(checkpoint):
    file = checkpoint() / "open_clip_config.json"
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        read_open_clip_checkpoint_config(file)
