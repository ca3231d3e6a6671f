"""The example client runs with three packages only, and prints the tags of surelabel."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surelabel.config import Choice, Run
from surelabel.export import export_recognizer
from surelabel.recognizer import Recognizer, select_tags

CLIENT = Path(__file__).parents[1] / "examples" / "onnx_client.py"
NAMES = ["lion", "ünï 🎸", "a dog"]
SIZES = [(160, 130), (31, 64), (5, 3)]  # width and height
BLOCKED = ("torch", "surelabel", "open_clip", "transformers", "torchvision", "onnx", "scipy")
ISOLATED = f"""
import runpy, sys
for name in {BLOCKED!r}:
    sys.modules[name] = None  # an import raises an error
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Write a JPEG that is decoded at a lower resolution, and images with alpha and EXIF."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(1)
    blocks = [Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)) for _ in SIZES]
    jpeg, png, small = (
        block.resize(size, Image.Resampling.BICUBIC)
        for block, size in zip(blocks, SIZES, strict=True)
    )
    exif = Image.Exif()
    exif[0x0112] = 6  # the image is rotated
    jpeg.save(folder / "a.jpg", quality=95, exif=exif)
    png.putalpha(128)
    png.save(folder / "b.png")
    small.save(folder / "c.png")
    return [str(folder / name) for name in ("a.jpg", "b.png", "c.png")]


def run_client(file, images):
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, str(CLIENT), str(file), *images],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_lines(lines, predictions, tags):
    """Check that each line has the labels of an image in order, with values of two digits."""
    for line, path, image_tags in zip(lines, predictions.paths, tags, strict=True):
        prefix, _, text = line.partition(": ")
        assert prefix == path
        printed = [tag.rpartition(" ") for tag in text.split(", ")] if text != "-" else []
        assert [name for name, _, _ in printed] == [tag["label"] for tag in image_tags]
        expected = [tag["probability"] or tag["score"] for tag in image_tags]
        assert np.allclose([float(value) for _, _, value in printed], expected, atol=0.006)


def test_the_client_prints_the_tags_of_a_calibrated_recognizer(
    sigmoid_checkpoint, images, tmp_path
):
    recognizer = Recognizer.zero_shot(f"local-dir:{sigmoid_checkpoint}", NAMES)
    predictions = recognizer.predict(images)
    thresholds = np.sort(predictions.probabilities, axis=0)[0] + 1e-3  # hides a tag of each label
    export_recognizer(recognizer, tmp_path / "a.onnx", thresholds=thresholds, images=images)
    tags = select_tags(predictions, threshold=thresholds)
    assert 0 < sum(map(len, tags)) < 9
    check_lines(run_client(tmp_path / "a.onnx", images), predictions, tags)


def test_the_client_makes_the_tiles(random_checkpoint, images, tmp_path):
    run = Run(
        encoder=Choice(f"local-dir:{random_checkpoint}"),
        method=Choice("tiles", {"rows": 2, "columns": 3, "grids": 1}),
    )
    recognizer = Recognizer(run, NAMES)
    export_recognizer(recognizer, tmp_path / "a.onnx", images=images)
    predictions = recognizer.predict(images)
    tags = select_tags(predictions, top_k=5)
    check_lines(run_client(tmp_path / "a.onnx", images), predictions, tags)


def test_the_client_imports_three_packages_and_standard_modules():
    lines = CLIENT.read_text().splitlines()
    packages = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert packages == {"json", "math", "sys", "numpy", "onnxruntime", "PIL"}
