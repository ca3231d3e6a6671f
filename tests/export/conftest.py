"""Fixtures: a small recognizer, images of several sizes, and one export in each format."""

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from PIL import Image

from surelabel.encoders.engines.conversion import exported_program
from surelabel.export import export_recognizer, exporting, pt2_file
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
def record_once():
    """Return ``exported_program`` for the small recognizer: each of its two programs is reused."""
    programs = {}

    def program_of(module, arguments, *, dynamic_axes):
        if dynamic_axes not in programs:
            programs[dynamic_axes] = exported_program(module, arguments, dynamic_axes=dynamic_axes)
        return programs[dynamic_axes]

    return program_of


@pytest.fixture(scope="session")
def exports(small_recognizer, check_paths, tmp_path_factory, pt2_runtimes, record_once):
    """Return the report of an export in each format, by its suffix."""
    folder = tmp_path_factory.mktemp("exports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "exported_program", record_once)
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


@pytest.fixture(scope="session")
def pt2_runtimes():
    """Return the runtimes of the exported .pt2 file: its process runs until the session ends."""
    runtimes = {}
    with ExitStack() as processes, pytest.MonkeyPatch.context() as patch:

        @contextmanager
        def keep_open(file, open_runtimes=pt2_file.open_runtimes):
            patch.undo()
            runtimes.update(processes.enter_context(open_runtimes(file)))
            yield runtimes

        patch.setattr(pt2_file, "open_runtimes", keep_open)
        yield runtimes
