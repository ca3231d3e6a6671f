"""Define the configurations of the two embedded encoders in the format of open_clip."""

from typing import Any

TEXT: dict[str, Any] = {
    "context_length": 32,
    "vocab_size": 49408,
    "width": 128,
    "heads": 4,
    "layers": 2,
}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "tiny-vit": {
        "embed_dim": 128,
        "vision_cfg": {
            "image_size": 96,
            "layers": 6,
            "width": 192,
            "head_width": 32,
            "patch_size": 12,
        },
        "text_cfg": TEXT,
    },
    "tiny-rn": {
        "embed_dim": 128,
        "vision_cfg": {
            "image_size": 96,
            "layers": [2, 2, 2, 1],
            "width": 24,
            "head_width": 64,
            "patch_size": None,
        },
        "text_cfg": TEXT,
    },
}
