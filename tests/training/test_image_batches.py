import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from surelabel.errors import DataError, InputError
from surelabel.losses import binary
from surelabel.training import (
    Checkpoint,
    ImageBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)
from surelabel.training.image_batches import RandomCropFlip


@pytest.fixture
def files(tmp_path):
    paths = []
    for i in range(5):
        pixels = np.full((20, 30, 3), 40 * i, np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
        paths.append(str(tmp_path / f"{i}.png"))
    return paths


def to_pixels(image):
    small = np.asarray(image.resize((4, 4)), np.float32)
    return torch.from_numpy(small.transpose(2, 0, 1).copy())


def to_pixels_unless_marked(image):
    """Kill the process that decodes the file 3.png."""
    if image.getpixel((0, 0))[0] == 120:
        os.kill(os.getpid(), signal.SIGKILL)
    return to_pixels(image)


def source(files, **options):
    targets = torch.arange(len(files))[:, None] / 4
    known = torch.ones(len(files), 1, dtype=torch.bool)
    options = {"batch_size": 2, "workers": 0, "preprocess": to_pixels} | options
    return ImageBatches(files, targets, known, min_side=4, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_every_image_comes_once_with_its_own_labels(files, workers):
    batches = list(source(files, workers=workers).batches(torch.Generator().manual_seed(0)))
    assert [len(b.targets) for b in batches] == [2, 2, 1]
    brightness = torch.cat([b.features.pixels[:, 0, 0, 0] for b in batches])
    targets = torch.cat([b.targets[:, 0] for b in batches])
    assert torch.equal(brightness, targets * 160)
    assert sorted(targets.tolist()) == [0, 0.25, 0.5, 0.75, 1]


def test_the_same_generator_gives_the_same_pixels_however_many_workers(tmp_path):
    noise = np.random.default_rng(0).integers(255, size=(20, 30, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    paths = [str(tmp_path / "a.png")] * 5
    passes = [
        [b.features.pixels for b in source(paths, workers=w).batches(torch.Generator())]
        for w in (0, 1)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*passes, strict=True))


def test_a_part_has_at_least_the_area_asked_for_and_stays_inside():
    image = Image.new("RGB", (200, 100))
    for seed in range(50):
        across, down = RandomCropFlip(min_area=0.5)(image, seed).size
        assert across <= 200
        assert down <= 100
        assert across * down >= 0.48 * 200 * 100


def test_without_variation_the_image_stays_as_it_is():
    noise = np.random.default_rng(0).integers(255, size=(7, 9, 3), dtype=np.uint8)
    still = RandomCropFlip(min_area=1.0, flip=False)(Image.fromarray(noise), 3)
    assert np.array_equal(np.asarray(still), noise)


def test_about_half_are_mirrored():
    edge = Image.fromarray(np.array([[0, 255]], np.uint8))
    varied = [RandomCropFlip(min_area=1.0)(edge, seed) for seed in range(200)]
    mirrored = sum(np.asarray(v)[0, 0] == 255 for v in varied)
    assert 70 < mirrored < 130


def test_a_file_that_vanished_stops_the_run_with_its_name(files, tmp_path):
    (tmp_path / "3.png").unlink()
    with pytest.raises(DataError, match=r"3\.png"):
        list(source(files).batches(torch.Generator()))


def test_nothing_known_is_an_error(files):
    targets = torch.zeros(5, 1)
    with pytest.raises(InputError, match="needs at least one known target"):
        ImageBatches(files, targets, targets > 0, preprocess=to_pixels, min_side=4, batch_size=2)


def test_the_rest_of_a_pass_is_what_would_have_come(files):
    whole, rest = (list(source(files).batches(torch.Generator(), skip)) for skip in (0, 1))
    assert len(rest) == len(whole) - 1
    for there, then in zip(rest, whole[1:], strict=True):
        assert torch.equal(there.features.pixels, then.features.pixels)
        assert torch.equal(there.targets, then.targets)


class MeanHead(nn.Module):
    """Linear function of the mean colour; stops the run after some batches."""

    def __init__(self, n_batches=99):
        super().__init__()
        self.n_batches = n_batches
        self.head = nn.Linear(3, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, features):
        self.n_batches -= 1
        if self.n_batches < 0:
            raise InterruptedError("enough")
        return self.head(features.pixels.mean(dim=(2, 3)) / 255)


def fit_with_kills(files, method, **options):
    """Return the result of two epochs, each with an empty batch instead of the file 3.png."""
    it = source(files, preprocess=to_pixels_unless_marked, batch_size=1, workers=2)
    objective = Objective(objective_mean_over_known(binary))
    with pytest.warns(UserWarning, match=r"3\.png is left out of this epoch"):
        return run_training_loop(
            method, it, objective=objective, epochs=2, learning_rate=0.1, **options
        )


def test_a_run_with_killed_processes_resumes_as_if_it_had_not_stopped(files, tmp_path, monkeypatch):
    monkeypatch.setattr("surelabel.training.loop.CHECKPOINT_INTERVAL", 1)
    checkpoint = Checkpoint(tmp_path / "state", run_id="a test")
    whole, resumed = MeanHead(), MeanHead()
    history = fit_with_kills(files, whole)
    with pytest.raises(InterruptedError, match="enough"):
        fit_with_kills(files, MeanHead(n_batches=7), checkpoint=checkpoint)
    assert checkpoint.path.exists()
    rest = source(files, batch_size=1)  # 3.png was in the finished part
    assert (
        run_training_loop(
            resumed,
            rest,
            objective=Objective(objective_mean_over_known(binary)),
            epochs=2,
            learning_rate=0.1,
            checkpoint=checkpoint,
        )
        == history
    )
    assert resumed.n_batches == 98
    assert torch.equal(resumed.head.weight, whole.head.weight)
    assert whole.head.weight.abs().min() > 0


def test_a_batch_without_its_killed_image_has_the_targets_of_the_others(files):
    batches = source(files, workers=1, preprocess=to_pixels_unless_marked).batches
    with pytest.warns(UserWarning, match=r"3\.png is left out of this epoch"):
        rest = list(batches(torch.Generator().manual_seed(0)))
    for batch, whole in zip(
        rest, source(files).batches(torch.Generator().manual_seed(0)), strict=True
    ):
        others = whole.targets[:, 0] != 0.75
        assert torch.equal(batch.features.pixels, whole.features.pixels[others])
        assert torch.equal(batch.targets, whole.targets[others])
        assert torch.equal(batch.known, whole.known[others])


def test_training_without_any_image_is_an_error(files):
    with pytest.raises(DataError, match="At least one image with a known target must be decoded"):
        fit_with_kills([files[3]], MeanHead())
