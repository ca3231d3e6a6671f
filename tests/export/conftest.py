"""Fixtures: a small recognizer, images of several sizes, and one export in each format."""

import numpy as np
import pytest
from PIL import Image

from surelabel.export import export_recognizer
from surelabel.recognizer import Recognizer

NAMES = ["lion", 'say "hi" <&> \\ \'', "ünï 🎸 \u202e", "sofa|couch"]
THRESHOLDS = np.array([0.25, 0.5, 0.125, 1.0])
SIZES = [(48, 32), (32, 32), (33, 70)]  # width and height


@pytest.fixture(scope="session")
def small_recognizer(sigmoid_checkpoint):
    """Return a recognizer whose encoder has a link to log-odds, for images of 32 by 32 pixels."""
    return Recognizer.zero_shot(f"local-dir:{sigmoid_checkpoint}", NAMES)


@pytest.fixture(scope="session")
def check_paths(tmp_path_factory):
    """Write an image of each size, smooth with noise, and return the paths."""
    folder, rng = tmp_path_factory.mktemp("check"), np.random.default_rng(0)
    paths = []
    for width, height in SIZES:
        coarse = rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        paths.append(str(folder / f"{width}.png"))
        image.save(paths[-1])
    return paths


@pytest.fixture(scope="session")
def exports(small_recognizer, check_paths, tmp_path_factory):
    """Return the report of an export in each format, by its suffix."""
    folder = tmp_path_factory.mktemp("exports")
    return {
        suffix: export_recognizer(
            small_recognizer,
            folder / f"tagger{suffix}",
            thresholds=THRESHOLDS,
            preprocessing_in_graph=suffix == ".onnx",
            images=check_paths,
        )
        for suffix in (".onnx", ".xml", ".pt2")
    }
