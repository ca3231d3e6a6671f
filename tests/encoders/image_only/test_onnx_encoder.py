import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.encoders.image_only.onnx_encoder import onnx_encoder
from surelabel.errors import ConfigError, DataError

IMAGE = Image.fromarray(np.random.default_rng(2).integers(0, 256, (20, 12, 3), dtype=np.uint8))


def same_size():
    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (8, 8, 3), dtype=np.uint8))


def test_images_are_scaled_to_minus_one_to_one_unless_stated_otherwise(onnx_file, expected):
    file, image = onnx_file(), same_size()
    raw = np.asarray(image, dtype=np.float64).transpose(2, 0, 1)[None]
    scale, offset = 1 / 128, -1.0  # what a graph may want of bytes
    std = 1 / (255 * scale)
    chosen = {"mean": [-offset * std] * 3, "std": [std] * 3}
    for settings, scaled in (({}, raw / 127.5 - 1), (chosen, raw * scale + offset)):
        encoder = load_encoder(f"onnx:{file}", **settings)
        found = encoder.encode_images(encoder.preprocess(image)[None]).pooled
        wanted = F.normalize(torch.from_numpy(expected(scaled)), dim=-1).float()
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_colours_may_come_last(onnx_file):
    first = load_encoder(f"onnx:{onnx_file()}")
    last = load_encoder(f"onnx:{onnx_file(shape=('n', 8, 8, 3), name='last.onnx')}")
    assert (first.layout, last.layout) == ("nchw", "nhwc")
    pixels = first.preprocess(IMAGE)[None]
    torch.testing.assert_close(
        first.encode_images(pixels).pooled, last.encode_images(pixels).pooled
    )


def test_a_layout_that_the_graph_leaves_open_has_to_be_stated(onnx_file):
    file = onnx_file(shape=("n", "colours", "down", "across"))
    with pytest.raises(ConfigError, match=r"layout must match .* encoder\.layout=nchw or"):
        load_encoder(f"onnx:{file}", size=8)
    assert load_encoder(f"onnx:{file}", size=8, layout="nchw").width == 6
    with pytest.raises(ConfigError, match=r"layout must be nchw or nhwc; got 'hwc'"):
        load_encoder(f"onnx:{file}", layout="hwc")
    with pytest.raises(ConfigError, match=r"layout=nchw"):
        load_encoder(f"onnx:{onnx_file()}", layout="nhwc")
    with pytest.raises(DataError, match=r"must have three channels .* \[None, 12, 8, 8\]"):
        load_encoder(f"onnx:{onnx_file(shape=('n', 12, 8, 8), matrix=np.ones((192, 6)))}")


def test_a_size_that_the_graph_leaves_open_has_to_be_stated(onnx_file):
    file = onnx_file(shape=("n", 3, "down", "across"))
    with pytest.raises(ConfigError, match=r"size \[None, None\] .* got None\. Set encoder\.size"):
        load_encoder(f"onnx:{file}")
    assert load_encoder(f"onnx:{file}", size=8).preprocess_cfg["size"] == [8, 8]
    assert load_encoder(f"onnx:{file}", size=[16, 4]).preprocess_cfg["size"] == [16, 4]
    with pytest.raises(DataError, match=r"cannot process images of shape \(1, 3, 24, 24\)"):
        load_encoder(f"onnx:{file}", size=24)


@pytest.mark.parametrize("size", [9, 0, -8, 8.0, True, "8", [8], [8, 8, 8], [8, 9], {}, 10**9])
def test_a_size_that_does_not_fit_is_refused(onnx_file, size):
    with pytest.raises(ConfigError, match=r"size must be the side .* input size \[8, 8\]"):
        load_encoder(f"onnx:{onnx_file()}", size=size)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean": [0.5]}, "mean in onnx:.* must be three numbers"),
        ({"std": [0.5, 0.5, 0.0]}, "std in onnx:.* must be three numbers above 0"),
        ({"resize_mode": "crop"}, "resize_mode in onnx:.* must be one of shortest"),
        ({"interpolation": "magic"}, "interpolation in onnx:.* must be one of bicubic"),
        ({"output": "pooled"}, r"has no output 'pooled'\. The outputs are features"),
        ({"outputs": "features"}, "has no setting outputs. Its settings are"),
        ({"output": 3}, "output must have the type of its default"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(onnx_file, settings, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder(f"onnx:{onnx_file()}", **settings)


def test_another_device_than_the_cpu_is_refused(onnx_file):
    with pytest.raises(ConfigError, match=r"device must be cpu for ONNX files; got 'meta'"):
        onnx_encoder(str(onnx_file()), "meta")


def test_it_cannot_be_trained(onnx_file):
    encoder = load_encoder(f"onnx:{onnx_file()}")
    for call in (encoder.trainable_network, lambda: encoder.with_network(torch.nn.Identity())):
        with pytest.raises(ConfigError, match=r"onnx:.* cannot be trained\. .* timm:NAME"):
            call()


def test_the_fingerprint_covers_the_bytes_the_output_and_the_preparation(onnx_file):
    file = onnx_file(outputs=("features", "flat"))
    same = [load_encoder(f"onnx:{file}").fingerprint, load_encoder(f"onnx:{file}").fingerprint]
    others = [
        load_encoder(f"onnx:{file}", **changed).fingerprint
        for changed in ({"output": "flat"}, {"mean": [0.4] * 3}, {"resize_mode": "squash"})
    ]
    moved = onnx_file(outputs=("features", "flat"), matrix=np.ones((48, 6)), name="moved.onnx")
    others.append(load_encoder(f"onnx:{moved}").fingerprint)
    assert same[0] == same[1]
    assert len({*same, *others}) == 5


def test_a_saved_one_stands_alone_with_all_its_settings(onnx_file, tmp_path):
    chosen = {"mean": [0.4, 0.5, 0.6], "std": [0.2] * 3, "resize_mode": "squash"}
    file = onnx_file(shape=("n", 3, "down", "across"))
    encoder = load_encoder(f"onnx:{file}", size=8, interpolation="bilinear", **chosen)
    encoder.save(tmp_path / "saved")
    pixels = encoder.preprocess(IMAGE)[None]
    file.unlink()
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert again.settings == encoder.settings
    assert again.name == encoder.name
    assert torch.equal(again.preprocess(IMAGE)[None], pixels)
    assert torch.equal(again.encode_images(pixels).pooled, encoder.encode_images(pixels).pooled)


def test_weights_beside_the_graph_are_saved_with_it(onnx_file, tmp_path):
    (tmp_path / "from").mkdir()
    file = onnx_file(
        name="from/big.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    encoder = load_encoder(f"onnx:{file}")
    encoder.save(tmp_path / "saved")
    for part in (tmp_path / "from").iterdir():
        part.unlink()
    assert load_encoder(f"local-dir:{tmp_path / 'saved'}").fingerprint == encoder.fingerprint


def test_a_saved_one_that_was_changed_is_refused(onnx_file, tmp_path):
    encoder = load_encoder(f"onnx:{onnx_file()}")
    encoder.save(tmp_path / "saved")
    load = f"local-dir:{tmp_path / 'saved'}"
    kept = tmp_path / "saved" / "onnx" / "tiny.onnx"
    whole = kept.read_bytes()
    kept.write_bytes(onnx_file(matrix=np.ones((48, 6))).read_bytes())
    with pytest.raises(DataError, match=rf"of onnx:.*; got {encoder.fingerprint}"):
        load_encoder(load)
    kept.write_bytes(whole[:200])
    with pytest.raises(DataError, match=r"tiny\.onnx (must be an ONNX file|cannot be loaded)"):
        load_encoder(load)
    kept.unlink()
    with pytest.raises(DataError, match=r"tiny\.onnx cannot be read: No such file"):
        load_encoder(load)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"settings": None}, DataError, "contain settings with keys from output, layout"),
        (
            {"settings": {"device": "cpu"}},
            DataError,
            "contain settings with keys from output, layout",
        ),
        ({"settings": {"mean": "x"}}, ConfigError, "mean in .* must be three numbers"),
        ({"settings": {"output": 3}}, ConfigError, "has no output 3"),
        (
            {"onnx": "../../tiny.onnx"},
            DataError,
            "an ONNX file; got '../../tiny.onnx'",
        ),
        ({"onnx": 3}, DataError, "the name of an ONNX file; got 3"),
        ({"fingerprint": None}, DataError, "The fingerprint in .* got None"),
        ({"timm": "test_vit"}, DataError, "one of the keys embedded, exported, features, onnx"),
    ],
)
def test_what_is_said_of_a_saved_one_is_checked(onnx_file, tmp_path, change, error, message):
    load_encoder(f"onnx:{onnx_file()}").save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(error, match=message):
        load_encoder(f"local-dir:{file.parent}")
