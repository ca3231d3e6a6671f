import pytest

from surelabel.encoders.open_clip.checkpoint_config import (
    check_open_clip_preprocess_config,
    read_open_clip_checkpoint_config,
)
from surelabel.errors import ConfigError, DataError

PREPROCESS = {
    "mean": [0.5, 0.4, 0.3],
    "std": [0.25, 0.25, 0.2],
    "interpolation": "bilinear",
    "resize_mode": "squash",
}


def test_the_size_of_the_file_gives_way_to_the_size_of_the_image_tower(checkpoint):
    folder = checkpoint(preprocess_cfg={**PREPROCESS, "size": 224})
    model_cfg, preprocess_cfg = read_open_clip_checkpoint_config(folder / "open_clip_config.json")
    assert model_cfg["vision_cfg"]["image_size"] == 32
    assert preprocess_cfg == PREPROCESS


def test_unknown_keys_of_the_file_are_refused(checkpoint):
    file = checkpoint(auto_map={"AutoModel": "x"}) / "open_clip_config.json"
    with pytest.raises(ConfigError, match="keys from model_cfg, preprocess_cfg; got 'auto_map'"):
        read_open_clip_checkpoint_config(file)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transform": "x"}, "preprocess_cfg in f must contain keys from .*; got 'transform'"),
        ({"size": 10**9}, "size in f must be the side, .* 1 to 8192; got 1000000000"),
        ({"size": [32]}, r"size in f must be .*; got \[32\]"),
        ({"size": "32"}, "size in f must be .*; got '32'"),
        ({"mode": "L"}, "mode in f must be RGB; got 'L'"),
        ({"fill_color": 256}, "fill_color in f must be an integer from 0 to 255; got 256"),
    ],
)
def test_preprocessing_settings_have_accepted_names_types_and_sizes(settings, message):
    with pytest.raises(ConfigError, match=message):
        check_open_clip_preprocess_config({**PREPROCESS, **settings}, "f")
    check_open_clip_preprocess_config(
        {**PREPROCESS, "size": [32, 48], "mode": "RGB", "fill_color": 0}, "f"
    )


def test_a_configuration_that_is_nested_too_deeply_is_refused(checkpoint):
    file = checkpoint() / "open_clip_config.json"
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        read_open_clip_checkpoint_config(file)
