import shutil

import pytest

from surelabel.data import collection
from surelabel.errors import InputError
from surelabel.recognizer import Recognizer, index_images_with_recognizer, recognizer_of_index
from surelabel.retrieval import Index

NAMES = ["lion", "guitar|violin"]


@pytest.fixture(scope="module")
def images():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", NAMES)


@pytest.fixture(scope="module")
def index(tmp_path_factory, images, recognizer):
    """An index that records no recognizer, which no test changes."""
    return Index.create(tmp_path_factory.mktemp("index") / "index", recognizer.predict(images))


@pytest.fixture
def recorded(images, recognizer, tmp_path, monkeypatch):
    """An index that records a saved recognizer, by a relative path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    recognizer.save("recognizer")
    update = index_images_with_recognizer("index", recognizer, images.paths[:3], model="recognizer")
    return update.index


def test_the_recorded_recognizer_is_loaded_from_any_folder(recorded, tmp_path, monkeypatch):
    assert recorded.recognizer.model == str(tmp_path / "recognizer")
    assert list(recorded.recognizer.labels) == NAMES
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    loaded = recognizer_of_index(Index.open(tmp_path / "index"))
    assert loaded.fingerprint == recorded.model


def test_a_recognizer_that_was_moved_is_named_again(recorded, recognizer, images, tmp_path):
    shutil.move("recognizer", "moved")
    with pytest.raises(InputError, match=rf"must be in {tmp_path}/recognizer; .* with --model"):
        recognizer_of_index(recorded)
    assert recognizer_of_index(recorded, "moved").fingerprint == recorded.model
    arguments = ("index", recognizer, images.paths[:3])
    assert index_images_with_recognizer(*arguments).index.recognizer == recorded.recognizer
    index_images_with_recognizer(*arguments, model="moved")
    assert recognizer_of_index(Index.open("index")).fingerprint == recorded.model


def test_an_encoder_as_model_gets_the_recorded_labels(recorded):
    assert recognizer_of_index(recorded, "tiny-vit").names_with_aliases == NAMES
    with pytest.raises(InputError, match="got the recognizer"):
        recognizer_of_index(recorded, "tiny-rn")


def test_an_index_that_records_no_recognizer_needs_a_model(index, recognizer, tmp_path):
    with pytest.raises(InputError, match=r"does not record\. Give --model"):
        recognizer_of_index(index)
    recognizer.save(tmp_path / "recognizer")
    assert recognizer_of_index(index, str(tmp_path / "recognizer")).fingerprint == index.model
