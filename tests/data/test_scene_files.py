"""Reading of folders of scenes: whole or refused."""

import csv
import json
import os
import shutil

import numpy as np
import pytest

from surelabel.data import read_labels
from surelabel.data.scene_arrangement import MIN_VISIBLE_SHARE
from surelabel.data.scene_files import read_scenes
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scene_writing import BATCH, write_scenes
from surelabel.errors import DataError

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
        DataError,
        match=r"about.json; the file is missing. Generate a folder with `surelabel scenes`",
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
        ("about.json", '"names": [', '"names": 3, "x": [', "names must be a list"),
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
