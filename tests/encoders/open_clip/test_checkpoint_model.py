import os

import pytest
from safetensors.torch import save_file

from surelabel.encoders import load_encoder
from surelabel.encoders.open_clip.checkpoint_model import load_open_clip_checkpoint_model
from surelabel.errors import DataError


@pytest.mark.parametrize(
    "vision",
    [
        {"width": 16384, "head_width": 64, "layers": 24},
        {"timm_model_name": "vit_large_patch14_224", "image_size": 224},
    ],
)
def test_a_small_file_cannot_request_a_large_model(checkpoint, vision):
    folder = checkpoint(vision=vision)
    with pytest.raises(DataError, match=r"must contain all weights .*, \d{9,} values; .* has 8"):
        load_encoder(f"local-dir:{folder}")


def test_a_file_without_weights_is_refused(tmp_path, model_cfg):
    save_file({}, tmp_path / "empty.safetensors")
    with pytest.raises(DataError, match=r"empty\.safetensors has 0 values"):
        load_open_clip_checkpoint_model("m", model_cfg, tmp_path / "empty.safetensors", None)


def test_weights_that_are_no_regular_file_are_refused_at_once(tmp_path, model_cfg):
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(DataError, match=r"pipe\.pt cannot be read: .* got a named pipe"):
        load_open_clip_checkpoint_model("m", model_cfg, tmp_path / "pipe.pt", None)


def test_only_the_named_weights_and_the_checked_settings_are_read(checkpoint):
    folder = checkpoint()
    for name in ("open_clip_pytorch_model.bin", "model.safetensors", "a.pth", "config.json"):
        (folder / name).write_bytes(b"damaged")
    assert load_encoder(f"local-dir:{folder}").width == 24
