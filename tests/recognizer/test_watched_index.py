import os
import shutil

import pytest

from surelabel.data import collection
from surelabel.errors import DataError, InputError, NotFitted
from surelabel.recognizer import Recognizer, resolve_model
from surelabel.recognizer.watched_index import WatchedIndex
from surelabel.retrieval import Index
from surelabel.retrieval.index_lock import lock_index


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture
def images(tmp_path):
    (tmp_path / "images").mkdir()
    few = collection("scenes-80", split="test").paths[:4]
    return [str(shutil.copy(path, tmp_path / "images")) for path in few]


@pytest.fixture
def opened(recognizer, tmp_path):
    return WatchedIndex(
        str(tmp_path / "index"), recognizer, root=str(tmp_path / "images"), model="tiny-vit"
    )


def test_the_first_images_create_the_index_and_others_are_added(opened, recognizer, images):
    assert (len(opened), opened.statuses(), os.path.exists(opened.folder)) == (0, {}, False)
    assert opened.add(recognizer.predict(images[:1])) == 1
    assert opened.add(recognizer.predict(images[1:])) == len(opened) == 4
    index = Index.open(opened.folder)
    assert (index.paths, index.recognizer.model) == (images, "tiny-vit")
    assert index.root == os.path.dirname(images[0])


def test_the_recorded_statuses_are_those_of_the_files(opened, recognizer, images):
    opened.add(recognizer.predict(images))
    expected = {path: (os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in images}
    assert opened.statuses() == expected
    assert opened.statuses([images[2], "/no/such/image.jpg"]) == {images[2]: expected[images[2]]}


def test_images_that_another_process_removed_are_ignored(opened, recognizer, images):
    opened.add(recognizer.predict(images))
    Index.open(opened.folder).remove(images[:1])
    assert opened.remove(images[:2]) == 2
    assert Index.open(opened.folder).paths == images[2:]


def test_an_index_that_another_process_created_is_used(opened, recognizer, images):
    Index.create(opened.folder, recognizer.predict(images[:1]))
    assert opened.add(recognizer.predict(images[1:2])) == 2


def test_an_index_on_a_disk_that_is_not_mounted_is_not_replaced(opened, recognizer, images):
    opened.add(recognizer.predict(images[:1]))
    os.rename(opened.folder, f"{opened.folder}-elsewhere")
    for change in (lambda: opened.add(recognizer.predict(images[1:2])), opened.statuses):
        with pytest.raises(DataError, match=r"index\.json is missing\. Mount the disk"):
            change()
    assert not os.path.exists(opened.folder)


def test_a_locked_index_is_an_error_and_stays_unchanged(opened, recognizer, images, tmp_path):
    opened.add(recognizer.predict(images[:1]))
    predictions = recognizer.predict(images[1:])
    with (
        lock_index(tmp_path / "index"),
        pytest.raises(DataError, match="Another process is writing to"),
    ):
        opened.add(predictions)
    assert len(opened) == 1


def test_an_index_of_another_recognizer_is_refused(opened, recognizer, images, tmp_path):
    opened.add(recognizer.predict(images[:1]))
    other = Recognizer.zero_shot("tiny-vit", ["lion"])
    with pytest.raises(InputError, match="contains predictions of the recognizer"):
        WatchedIndex(opened.folder, other, root=str(tmp_path), model="tiny-vit")


def test_a_folder_of_other_files_and_a_model_without_probabilities_are_refused(
    recognizer, images, tmp_path
):
    with pytest.raises(DataError, match="images"):
        WatchedIndex(str(tmp_path / "images"), recognizer, root=str(tmp_path), model="tiny-vit")
    uncalibrated = resolve_model("tiny-vit", ["lion"], settings=["method.name=tiles"])
    with pytest.raises(NotFitted, match="An index needs probabilities"):
        WatchedIndex(str(tmp_path / "index"), uncalibrated, root=str(tmp_path), model="tiny-vit")
