"""Generation of folders of scenes: the same bytes for the same settings, or an error."""

import errno
import os

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.data.scene_files import read_scenes
from surelabel.data.scene_writing import BATCH, write_scenes
from surelabel.errors import ConfigError, DataError, MissingPart, UnknownName

COUNT = BATCH + 6  # two batches
SMALL = {"pixels": 32, "seed": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_scenes(tmp_path_factory.mktemp("scenes") / "out", count=COUNT, **SMALL)


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_a_folder_has_images_scenes_labels_and_settings_and_nothing_else(folder):
    names = set(contents(folder))
    images = {f"images/{i:05d}.jpg" for i in range(COUNT)}
    assert names == images | {"scenes.jsonl", "labels.csv", "about.json"}
    with Image.open(folder / "images" / "00000.jpg") as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (32, 32))


def test_the_same_settings_give_the_same_bytes(folder, tmp_path):
    again = write_scenes(tmp_path / "again", count=COUNT, **SMALL)
    assert contents(again) == contents(folder)


def test_the_number_of_threads_changes_no_byte(tmp_path):
    """At 128 pixels the work is large enough to be shared among threads."""
    one = write_scenes(tmp_path / "one", count=40, seed=5)
    torch.set_num_threads(2)
    try:
        two = write_scenes(tmp_path / "two", count=40, seed=5)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert contents(one) == contents(two)


@pytest.mark.parametrize("count", [1, 10, BATCH, BATCH + 1])
def test_a_smaller_set_is_the_beginning_of_a_larger_one(folder, tmp_path, count):
    fewer = write_scenes(tmp_path / "fewer", count=count, **SMALL)
    small, large = contents(fewer), contents(folder)
    assert [n for n in small if n.startswith("images") and small[n] != large[n]] == []
    for name, lines in (("scenes.jsonl", count), ("labels.csv", count + 1)):
        assert small[name].splitlines() == large[name].splitlines()[:lines]


def test_another_seed_gives_other_images(folder, tmp_path):
    other = write_scenes(tmp_path / "other", count=10, pixels=32, seed=6)
    for i in range(10):
        name = f"images/{i:05d}.jpg"
        assert (other / name).read_bytes() != (folder / name).read_bytes()


def test_another_domain_shows_the_same_scenes(folder, tmp_path):
    sketches = write_scenes(tmp_path / "sketch", count=10, domain="sketch", **SMALL)
    lines = (folder / "scenes.jsonl").read_bytes().splitlines()[:10]
    assert (sketches / "scenes.jsonl").read_bytes().splitlines() == lines
    drawn = np.asarray(Image.open(sketches / "images" / "00000.jpg"), dtype=int)
    assert (drawn.max(axis=2) - drawn.min(axis=2)).mean() < 20  # no colour


def test_a_long_tail_is_another_set(folder, tmp_path):
    tail = write_scenes(tmp_path / "tail", count=60, long_tail=True, **SMALL)
    common = read_scenes(tail).images.targets.sum(axis=0)
    plain = read_scenes(folder).images.targets[:60].sum(axis=0)
    assert common.max() > plain.max()
    assert (common == 0).sum() > (plain == 0).sum()


def test_a_stopped_run_goes_on_where_it_was(folder, tmp_path):
    def stop(done):
        raise KeyboardInterrupt("stopped by hand")

    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        write_scenes(begun, count=COUNT, progress=stop, **SMALL)
    assert not (begun / "scenes.jsonl").exists()
    with pytest.raises(
        DataError, match=r"begun must contain scenes\.jsonl; the file is missing\. Run .* again"
    ):
        read_scenes(begun)
    first = begun / "images" / "00000.jpg"
    os.utime(first, ns=(1, 1))

    seen = []
    write_scenes(begun, count=COUNT, progress=seen.append, **SMALL)
    assert seen == [BATCH, COUNT]
    assert first.stat().st_mtime_ns == 1
    assert contents(begun) == contents(folder)


def test_a_finished_folder_is_left_as_it_is_and_needs_no_font(folder):
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    write_scenes(folder, count=COUNT, font="/no/font.ttf", **SMALL)
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "change",
    [{"count": 5}, {"seed": 6}, {"domain": "night"}, {"pixels": 64}, {"long_tail": True}],
    ids=lambda change: next(iter(change)),
)
def test_other_settings_in_the_same_folder_are_refused(folder, change):
    name, value = next(iter(change.items()))
    before = contents(folder)
    with pytest.raises(
        DataError, match=rf"settings must be those of .*: {name} .*; got {name} {value}\."
    ):
        write_scenes(folder, **{"count": COUNT} | SMALL | change)
    assert contents(folder) == before


def test_a_begun_folder_refuses_other_settings_too(tmp_path):
    def stop(done):
        raise KeyboardInterrupt("stopped by hand")

    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        write_scenes(tmp_path, count=COUNT, progress=stop, **SMALL)
    with pytest.raises(DataError, match="seed 5; got seed 7"):
        write_scenes(tmp_path, count=COUNT, pixels=32, seed=7)


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    (tmp_path / "holiday.jpg").write_text("precious")
    with pytest.raises(
        DataError, match=r"must be a new or empty folder; got a folder with other files"
    ):
        write_scenes(tmp_path, count=1, **SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["holiday.jpg"]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"about.json cannot be written"):
        write_scenes(tmp_path / place, count=1, **SMALL)


def test_images_that_cannot_be_written_are_named(tmp_path):
    def block(done):
        (tmp_path / "images").rename(tmp_path / "away")
        (tmp_path / "images").write_text("in the way")

    with pytest.raises(DataError, match=r"Images cannot be written to .*images"):
        write_scenes(tmp_path, count=COUNT, progress=block, **SMALL)


def test_the_images_of_a_batch_that_does_not_fit_on_the_disk_are_deleted(tmp_path, monkeypatch):
    save = Image.Image.save

    def fill(self, path, **settings):
        if path.name == "00002.jpg":
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(self, path, **settings)

    monkeypatch.setattr(Image.Image, "save", fill)
    with pytest.raises(DataError, match=r"Images cannot be written to .*: No space left on device"):
        write_scenes(tmp_path, count=4, **SMALL)
    assert list((tmp_path / "images").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "least"), [("count", 0, 1), ("seed", -1, 0), ("pixels", 15, 16)]
)
def test_numbers_out_of_range_are_refused(tmp_path, name, value, least):
    with pytest.raises(ConfigError, match=rf"{name} must be at least {least}; got {value}\."):
        write_scenes(tmp_path / "out", **{"count": 1} | SMALL | {name: value})
    assert not (tmp_path / "out").exists()


def test_an_unknown_domain_gets_the_list(tmp_path):
    with pytest.raises(
        UnknownName, match=r"domain must be one of photo, sketch, night, blur, noise.*; got 'rain'"
    ):
        write_scenes(tmp_path / "out", count=1, domain="rain", **SMALL)


def test_with_a_missing_font_file_nothing_is_written(tmp_path):
    with pytest.raises(MissingPart, match=r"/no/font\.ttf is not a file"):
        write_scenes(tmp_path / "out", count=1, font="/no/font.ttf", **SMALL)
    assert not (tmp_path / "out").exists()
