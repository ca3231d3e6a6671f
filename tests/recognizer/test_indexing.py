import json
import shutil
from pathlib import Path

import pytest

from surelabel.data import collection
from surelabel.errors import DataError, InputError
from surelabel.recognizer import Recognizer, index_images_with_recognizer, read_names_for_indexing
from surelabel.retrieval import Index

SAVED_INDEX = Path(__file__).parents[1] / "saved" / "0.1.0" / "index"


@pytest.fixture(scope="module")
def few():
    return tuple(collection("scenes-80", split="test").paths[:4])


@pytest.fixture
def images(few, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    return [str(shutil.copy(path, tmp_path / "images")) for path in few]


@pytest.fixture
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


def test_what_was_indexed_is_what_was_predicted(images, recognizer, tmp_path):
    made = index_images_with_recognizer(tmp_path / "index", recognizer, images)
    assert (made.added, made.changed, made.removed, made.index.paths) == (4, 0, 0, images)
    found = {hit.path: hit.probability for hit in made.index.search("lion")}
    predicted = recognizer.predict(images)
    expected = dict(zip(images, predicted.probabilities[:, 0], strict=True))
    assert found == pytest.approx(expected, rel=1e-5)


def test_images_that_are_not_named_again_stay(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images[:2])
    made = index_images_with_recognizer(tmp_path / "index", recognizer, images[2:])
    assert (made.added, len(made.index)) == (2, 4)


def test_an_index_that_another_process_created_meanwhile_is_not_replaced(
    images, recognizer, tmp_path
):
    folder = tmp_path / "index"

    def index_other_images(done, total):
        if not folder.exists():
            index_images_with_recognizer(folder, recognizer, images[2:])

    with pytest.raises(DataError, match=r"Another process created an index in .*index at .*Run"):
        index_images_with_recognizer(folder, recognizer, images[:2], progress=index_other_images)
    assert Index.open(folder).paths == images[2:]
    made = index_images_with_recognizer(folder, recognizer, images[:2])
    assert (made.added, len(made.index)) == (2, 4)


def test_when_nothing_new_can_be_read_the_index_lives_on(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"")
    made = index_images_with_recognizer(tmp_path / "index", recognizer, [str(broken)])
    assert (made.added, len(made.index)) == (0, 4)
    assert [skipped.path for skipped in made.skipped] == [str(broken)]


def test_a_image_that_was_spoilt_leaves_the_index(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    Path(images[0]).write_bytes(b"no image any more")
    made = index_images_with_recognizer(tmp_path / "index", recognizer, images)
    assert [skipped.path for skipped in made.skipped] == images[:1]
    assert [hit.path for hit in made.index.search("lion", k=9) if hit.path == images[0]] == []
    assert len(made.index) == 3


def test_another_recognizer_is_refused_before_any_image_is_read(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    other = Recognizer.zero_shot("tiny-vit", ["lion", "bear"])
    with pytest.raises(InputError, match=r"contains predictions of .*; got the recognizer"):
        index_images_with_recognizer(tmp_path / "index", other, ["nowhere.jpg"])


def test_the_names_of_an_index_are_known_once_it_is_there(images, recognizer, tmp_path):
    assert read_names_for_indexing(tmp_path / "index") is None
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    assert read_names_for_indexing(tmp_path / "index") == ["lion", "guitar"]


def test_from_another_folder_the_same_images_stay(images, recognizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "images")
    names = [Path(path).name for path in images]
    index_images_with_recognizer("../index", recognizer, [*names, f"./{names[0]}"])
    monkeypatch.chdir(tmp_path)
    made = index_images_with_recognizer("index", recognizer, [f"images/{name}" for name in names])
    assert (made.added, made.changed, made.removed) == (0, 0, 0)
    assert made.index.paths == images


def test_when_all_images_are_gone_at_once_none_is_removed(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    (tmp_path / "images").rename(tmp_path / "unmounted")
    new = shutil.copy(tmp_path / "unmounted" / Path(images[0]).name, tmp_path)
    with pytest.raises(DataError, match=r"all files are missing, such as .*Mount the disk"):
        index_images_with_recognizer(tmp_path / "index", recognizer, [str(new)])
    (tmp_path / "unmounted").rename(tmp_path / "images")
    assert Index.open(tmp_path / "index").paths == images


def test_a_image_edited_after_it_was_predicted_is_stale(images, recognizer, tmp_path):
    predicted = recognizer.predict(images)
    shutil.copy(images[0], images[1])
    index = Index.create(tmp_path / "index", predicted)
    assert index.changed_paths() == [images[1]]
    made = index_images_with_recognizer(tmp_path / "index", recognizer, images)
    assert (made.added, made.changed, made.index.changed_paths()) == (0, 1, [])


def test_a_broken_image_whose_name_is_no_text_is_skipped_again(images, recognizer, tmp_path):
    odd = f"{tmp_path}/\udcff.jpg"
    Path(odd).write_bytes(b"")
    for _ in range(2):
        made = index_images_with_recognizer(tmp_path / "index", recognizer, [*images, odd])
        assert (len(made.index), [skipped.path for skipped in made.skipped]) == (4, [odd])


def test_an_index_of_version_1_becomes_current_without_new_predictions(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(SAVED_INDEX, tmp_path / "index")
    before = Index.open(folder).search("lion & !car", k=40)
    recognizer = Recognizer.zero_shot(
        "tiny-vit", ["lion", "guitar|drum", "car", "airplane", "cow", "coffee"]
    )
    images = list(collection("scenes-80", split="test").paths[:40])
    root = Path(images[0]).parent
    made = index_images_with_recognizer(folder, recognizer, images, root=root)
    assert (made.added, made.changed, made.removed, made.index.paths) == (0, 0, 0, images)
    assert json.loads((folder / "index.json").read_text())["version"] == 2
    hits = Index.open(folder).search("lion & !car", k=40)
    assert [hit.probability for hit in hits] == [hit.probability for hit in before]
    assert [Path(hit.path).name for hit in hits] == [Path(hit.path).name for hit in before]


def test_the_root_of_a_new_index_is_the_folder_of_all_images(images, recognizer, tmp_path):
    made = index_images_with_recognizer(tmp_path / "index", recognizer, images)
    assert made.index.root == str(tmp_path / "images")
    made = index_images_with_recognizer(tmp_path / "other", recognizer, images, root=tmp_path)
    assert made.index.root == str(tmp_path)


def test_a_wrong_root_changes_nothing(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images)
    before = (tmp_path / "index" / "index.json").read_bytes()
    with pytest.raises(DataError, match=r"all files are missing.*give the new root folder"):
        index_images_with_recognizer(tmp_path / "index", recognizer, images, root=tmp_path / "no")
    assert (tmp_path / "index" / "index.json").read_bytes() == before


def test_the_labels_of_an_index_are_read_with_their_aliases_if_they_were_recorded(images, tmp_path):
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "guitar|violin"])
    index_images_with_recognizer(tmp_path / "old", recognizer, images)
    assert read_names_for_indexing(tmp_path / "old") == ["lion", "guitar"]
    index_images_with_recognizer(tmp_path / "new", recognizer, images, model="tiny-vit")
    assert read_names_for_indexing(tmp_path / "new") == recognizer.names_with_aliases
    index_images_with_recognizer(tmp_path / "old", recognizer, images, model="tiny-vit")
    assert read_names_for_indexing(tmp_path / "old") == recognizer.names_with_aliases
