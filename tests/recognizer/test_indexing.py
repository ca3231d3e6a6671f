import shutil
from pathlib import Path

import pytest

from surelabel.data import collection
from surelabel.errors import DataError, InputError
from surelabel.recognizer import Recognizer, index_pictures, indexed_names
from surelabel.retrieval import Index


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pictures").mkdir()
    few = collection("scenes-80", split="test").paths[:4]
    return [str(shutil.copy(path, tmp_path / "pictures")) for path in few]


@pytest.fixture
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


def test_what_was_indexed_is_what_was_predicted(pictures, recognizer, tmp_path):
    made = index_pictures(tmp_path / "index", recognizer, pictures)
    assert (made.added, made.changed, made.removed, made.index.paths) == (4, 0, 0, pictures)
    found = {hit.path: hit.probability for hit in made.index.search("lion")}
    predicted = recognizer.predict(pictures)
    expected = dict(zip(pictures, predicted.probabilities[:, 0], strict=True))
    assert found == pytest.approx(expected, rel=1e-5)


def test_pictures_that_are_not_named_again_stay(pictures, recognizer, tmp_path):
    index_pictures(tmp_path / "index", recognizer, pictures[:2])
    made = index_pictures(tmp_path / "index", recognizer, pictures[2:])
    assert (made.added, len(made.index)) == (2, 4)


def test_when_nothing_new_can_be_read_the_index_lives_on(pictures, recognizer, tmp_path):
    index_pictures(tmp_path / "index", recognizer, pictures)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"")
    made = index_pictures(tmp_path / "index", recognizer, [str(broken)])
    assert (made.added, len(made.index)) == (0, 4)
    assert [skipped.path for skipped in made.skipped] == [str(broken)]


def test_a_picture_that_was_spoilt_leaves_the_index(pictures, recognizer, tmp_path):
    index_pictures(tmp_path / "index", recognizer, pictures)
    Path(pictures[0]).write_bytes(b"no picture any more")
    made = index_pictures(tmp_path / "index", recognizer, pictures)
    assert [skipped.path for skipped in made.skipped] == pictures[:1]
    assert [hit.path for hit in made.index.search("lion", k=9) if hit.path == pictures[0]] == []
    assert len(made.index) == 3


def test_another_recognizer_is_refused_before_any_picture_is_read(pictures, recognizer, tmp_path):
    index_pictures(tmp_path / "index", recognizer, pictures)
    other = Recognizer.zero_shot("tiny-vit", ["lion", "bear"])
    with pytest.raises(InputError, match="An index holds predictions of one recognizer"):
        index_pictures(tmp_path / "index", other, ["nowhere.jpg"])


def test_the_names_of_an_index_are_known_once_it_is_there(pictures, recognizer, tmp_path):
    assert indexed_names(tmp_path / "index") is None
    index_pictures(tmp_path / "index", recognizer, pictures)
    assert indexed_names(tmp_path / "index") == ["lion", "guitar"]


def test_from_another_folder_the_same_pictures_stay(pictures, recognizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "pictures")
    names = [Path(path).name for path in pictures]
    index_pictures("../index", recognizer, [*names, f"./{names[0]}"])
    monkeypatch.chdir(tmp_path)
    made = index_pictures("index", recognizer, [f"pictures/{name}" for name in names])
    assert (made.added, made.changed, made.removed) == (0, 0, 0)
    assert made.index.paths == pictures


def test_when_all_pictures_are_gone_at_once_none_is_removed(pictures, recognizer, tmp_path):
    index_pictures(tmp_path / "index", recognizer, pictures)
    (tmp_path / "pictures").rename(tmp_path / "unmounted")
    new = shutil.copy(tmp_path / "unmounted" / Path(pictures[0]).name, tmp_path)
    with pytest.raises(DataError, match=r"All are gone, such as .*if a disk is not mounted, mount"):
        index_pictures(tmp_path / "index", recognizer, [str(new)])
    (tmp_path / "unmounted").rename(tmp_path / "pictures")
    assert Index.open(tmp_path / "index").paths == pictures


def test_a_picture_edited_after_it_was_predicted_is_stale(pictures, recognizer, tmp_path):
    predicted = recognizer.predict(pictures)
    shutil.copy(pictures[0], pictures[1])
    index = Index.create(tmp_path / "index", predicted)
    assert index.stale() == [pictures[1]]
    made = index_pictures(tmp_path / "index", recognizer, pictures)
    assert (made.added, made.changed, made.index.stale()) == (0, 1, [])


def test_a_broken_picture_whose_name_is_no_text_is_skipped_again(pictures, recognizer, tmp_path):
    odd = f"{tmp_path}/\udcff.jpg"
    Path(odd).write_bytes(b"")
    for _ in range(2):
        made = index_pictures(tmp_path / "index", recognizer, [*pictures, odd])
        assert (len(made.index), [skipped.path for skipped in made.skipped]) == (4, [odd])
