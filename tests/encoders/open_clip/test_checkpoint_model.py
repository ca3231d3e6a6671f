import os

import pytest
from safetensors.torch import save_file

from surelabel.encoders import load_encoder
from surelabel.encoders.open_clip.checkpoint_model import load_open_clip_checkpoint_model
from surelabel.errors import DataError

VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
CONFIG = {"embed_dim": 24, "vision_cfg": VIT, "text_cfg": TEXT}


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


def test_a_file_without_weights_is_refused(tmp_path):
    save_file({}, tmp_path / "empty.safetensors")
    with pytest.raises(DataError, match=r"empty\.safetensors has 0 values"):
        load_open_clip_checkpoint_model("m", CONFIG, tmp_path / "empty.safetensors", None)


def test_weights_that_are_no_regular_file_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(DataError, match=r"pipe\.pt cannot be read: .* got a named pipe"):
        load_open_clip_checkpoint_model("m", CONFIG, tmp_path / "pipe.pt", None)


def test_only_the_named_weights_and_the_checked_settings_are_read(checkpoint):
    folder = checkpoint()
    for name in ("open_clip_pytorch_model.bin", "model.safetensors", "a.pth", "config.json"):
        (folder / name).write_bytes(b"damaged")
    assert load_encoder(f"local-dir:{folder}").width == 24
