import copy
import json

import open_clip
import pytest
import torch
from safetensors.torch import save_file

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
VIT = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2}
CONFIG = {"embed_dim": 24, "vision_cfg": VIT, "text_cfg": TEXT}


@pytest.fixture
def model_cfg():
    """The settings of a small architecture, a copy for each test."""
    return copy.deepcopy(CONFIG)


@pytest.fixture
def preprocess_cfg():
    """The settings of the preprocessing, except the size."""
    return {
        "mean": [0.5, 0.4, 0.3],
        "std": [0.25, 0.25, 0.2],
        "interpolation": "bilinear",
        "resize_mode": "squash",
    }


@pytest.fixture(scope="session")
def weights():
    """The weights of the small architecture, initialized with seed 0."""
    torch.manual_seed(0)
    return open_clip.CLIP(**CONFIG).state_dict()


@pytest.fixture
def checkpoint(tmp_path, model_cfg, preprocess_cfg, weights):
    """Write a folder of an open_clip checkpoint, with other text settings or other sections."""

    def write(text=(), vision=(), name="checkpoint", **sections):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        architecture = {
            **model_cfg,
            "vision_cfg": {**model_cfg["vision_cfg"], **dict(vision)},
            "text_cfg": {**model_cfg["text_cfg"], **dict(text)},
        }
        content = {"model_cfg": architecture, "preprocess_cfg": preprocess_cfg, **sections}
        (folder / "open_clip_config.json").write_text(json.dumps(content))
        save_file(weights, folder / "open_clip_model.safetensors")
        return folder

    return write
