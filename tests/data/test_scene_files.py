"""Scenes as files: the same bytes for the same settings, whole or refused."""

import csv
import errno
import json
import os
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.data import read_labels
from surelabel.data.scene_files import BATCH, read_scenes, write_scenes
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scenes import MIN_VISIBLE_SHARE
from surelabel.errors import ConfigError, DataError, MissingPart, UnknownName

COUNT = BATCH + 6  # two batches
SMALL = {"pixels": 32, "seed": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_scenes(tmp_path_factory.mktemp("scenes") / "out", count=COUNT, **SMALL)


@pytest.fixture(scope="module")
def truth(folder):
    return read_scenes(folder)


@pytest.fixture
def copy(folder, tmp_path):
    """A copy without images, to be damaged."""
    for name in ("scenes.jsonl", "labels.csv", "about.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


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
        DataError, match=r"begun must contain scenes.jsonl; the file is missing. Generate"
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
    with pytest.raises(DataError, match=r"must be new or empty; got a folder with other files"):
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
        UnknownName, match=r"There is no domain 'rain'. Known: photo, sketch, night, blur, noise"
    ):
        write_scenes(tmp_path / "out", count=1, domain="rain", **SMALL)


def test_with_a_missing_font_file_nothing_is_written(tmp_path):
    with pytest.raises(MissingPart, match=r"there is no file /no/font\.ttf"):
        write_scenes(tmp_path / "out", count=1, font="/no/font.ttf", **SMALL)
    assert not (tmp_path / "out").exists()


def test_names_are_those_of_the_vocabulary_in_its_order(truth):
    assert list(truth.images.names) == [w.name for w in read_scene_vocabulary("scenes-80")]
    assert truth.images.known.all()
    assert len(truth) == COUNT


def test_images_of_a_file_of_words_show_only_those_words(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("zebra\nkey\ncloud\n")
    truth = read_scenes(write_scenes(tmp_path / "out", count=20, vocabulary=file, **SMALL))
    assert truth.images.names == ("zebra", "key", "cloud")
    assert {thing.label for things in truth.objects for thing in things} == {
        "zebra",
        "key",
        "cloud",
    }


def test_the_table_of_labels_says_what_the_scenes_say(folder, truth):
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as table:
        head, *rows = csv.reader(table)
    assert head == ["path", *truth.images.names]
    assert [str(folder / row[0]) for row in rows] == truth.images.paths
    assert (np.array([row[1:] for row in rows], dtype=float) == truth.images.targets).all()


def test_labels_are_the_things_of_which_enough_is_seen(truth):
    for things, row in zip(truth.objects, truth.images.targets, strict=True):
        seen = {thing.label for thing in things if thing.visible_share >= MIN_VISIBLE_SHARE}
        assert seen == {truth.images.names[i] for i in np.flatnonzero(row)}


def test_the_main_object_comes_first_and_gives_the_theme(truth):
    theme = {w.name: w.theme for w in read_scene_vocabulary("scenes-80")}
    for things, main, its_theme in zip(truth.objects, truth.main_labels, truth.themes, strict=True):
        assert things[0].label == main
        assert theme[main] == its_theme


def test_boxes_lie_inside_the_image(truth):
    for thing in (thing for things in truth.objects for thing in things):
        left, top, right, bottom = thing.box
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1


def test_captions_mention_labels_only(truth):
    for sentences, row in zip(truth.captions, truth.images.targets, strict=True):
        assert len(sentences) == 5
        for sentence in sentences:
            assert row[list(sentence.mentions)].all()


def test_relevance_of_an_image_to_its_own_sentences_is_full(truth):
    firsts = [sentences[2] for sentences in truth.captions]
    share = truth.caption_relevance(firsts)
    assert share.shape == (COUNT, COUNT)
    assert (np.diag(share) == 1).all()
    i, j = 3, 8
    mentioned = list(firsts[j].mentions)
    assert share[i, j] == pytest.approx(truth.images.targets[i, mentioned].mean())


def test_the_settings_are_written_down(folder):
    about = json.loads((folder / "about.json").read_text())
    assert about["version"] == 1
    assert (about["seed"], about["count"], about["pixels"]) == (5, COUNT, 32)
    assert (about["vocabulary"], about["domain"]) == ("scenes-80", "photo")
    assert len(about["font"]) == 64


def rename_images_folder(folder):
    """Change a folder of scenes to the layout of version 0.1.0, with images in ``pictures/``."""
    (folder / "images").rename(folder / "pictures")
    for file in (folder / "scenes.jsonl", folder / "labels.csv", *folder.glob(".parts/*.jsonl")):
        if file.exists():
            file.write_text(file.read_text().replace("images/", "pictures/"))


def test_a_folder_of_version_0_1_0_is_read_and_left_unchanged(folder, truth, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    rename_images_folder(old)
    before = contents(old)
    scenes, labelled = read_scenes(old), read_labels(old / "labels.csv")
    assert scenes.images.paths == [str(old / f"pictures/{i:05d}.jpg") for i in range(COUNT)]
    assert all(os.path.exists(path) for path in scenes.images.paths)
    assert labelled.paths == scenes.images.paths
    assert labelled.names == list(scenes.images.names)
    assert (labelled.targets == truth.images.targets).all()
    assert (scenes.images.targets == truth.images.targets).all()
    assert scenes.captions == truth.captions
    write_scenes(old, count=COUNT, **SMALL)
    assert contents(old) == before


def test_an_interrupted_generation_of_version_0_1_0_is_resumed(truth, tmp_path):
    def stop(done):
        raise KeyboardInterrupt("stopped by hand")

    old = tmp_path / "old"
    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        write_scenes(old, count=COUNT, progress=stop, **SMALL)
    rename_images_folder(old)
    scenes = read_scenes(write_scenes(old, count=COUNT, **SMALL))
    folders = ["pictures"] * BATCH + ["images"] * (COUNT - BATCH)
    paths = [str(old / f"{name}/{i:05d}.jpg") for i, name in enumerate(folders)]
    assert scenes.images.paths == paths
    assert all(os.path.exists(path) for path in paths)
    assert (scenes.images.targets == truth.images.targets).all()


def test_a_folder_of_something_else_is_no_folder_of_scenes(tmp_path):
    with pytest.raises(
        DataError, match=r"there is no about.json. Generate a folder with `surelabel scenes`"
    ):
        read_scenes(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"count": 3}'])
def test_damaged_settings_are_refused(copy, text):
    (copy / "about.json").write_text(text)
    with pytest.raises(DataError, match=r"about.json is damaged: .* generate the scenes again"):
        read_scenes(copy)


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"path": "a.jpg", "labels": ["plesiosaur"]}', "null"]
)
def test_a_damaged_line_is_named(copy, line):
    lines = (copy / "scenes.jsonl").read_text().splitlines()
    lines[2] = line
    (copy / "scenes.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"scenes.jsonl, line 3 is damaged"):
        read_scenes(copy)


def test_missing_lines_are_counted(copy):
    lines = (copy / "scenes.jsonl").read_text().splitlines()
    (copy / "scenes.jsonl").write_text("\n".join(lines[:-1]))
    with pytest.raises(DataError, match=rf"must have {COUNT} lines.* got {COUNT - 1}"):
        read_scenes(copy)


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("about.json", '"count": 70', '"count": ' + "1" * 5000, "a number with more than 4300"),
        ("about.json", '"count": 70', '"count": 70, "count": 70', "the key 'count' twice"),
        ("about.json", '"names": [', '"names": [[], ', "names must be distinct strings"),
        ("about.json", '"names": [', '"names": 3, "x": [', "names a list"),
        ("scenes.jsonl", '"path": "', '"path": 3, "x": "', "expected a string; got 3"),
        ("scenes.jsonl", '"boxes": [', '"boxes": [["lion", 0, [], 0, 0, 0], ', "float.. argument"),
        ("scenes.jsonl", '"labels": [', '"labels": [[], ', "unhashable"),
        ("scenes.jsonl", '"labels": ', '"labels": ' + "[" * 10_000, "nested too deeply"),
    ],
)
def test_hostile_values_are_refused_on_one_line(copy, name, old, new, reason):
    text = (copy / name).read_text(encoding="utf-8")
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name}.* is damaged: .*{reason}.* again\.$") as caught:
        read_scenes(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["about.json", "scenes.jsonl"])
def test_a_named_pipe_is_refused_without_waiting(copy, name):
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(DataError, match=rf"{name} cannot be read: .* got a named pipe\."):
        read_scenes(copy)
