import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.errors import DataError, InputError
from surelabel.training import ImageBatches
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


def source(files, **options):
    targets = torch.arange(5.0)[:, None] / 4
    known = torch.ones(5, 1, dtype=torch.bool)
    options = {"batch_size": 2, "workers": 0} | options
    return ImageBatches(files, targets, known, preprocess=to_pixels, min_side=4, **options)


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
