import json
import shutil
from pathlib import Path

import pytest

from surelabel.data import collection
from surelabel.errors import DataError, NotFitted
from surelabel.recognizer import (
    Recognizer,
    index_images_with_recognizer,
    read_calibration_for_indexing,
    recognizer_of_index,
    restore_calibration_for_indexing,
)
from surelabel.records import Images
from surelabel.retrieval import Index

LABELS = ["lion", "guitar"]


@pytest.fixture(scope="module")
def images():
    return list(collection("scenes-80", split="test").paths[:6])


def uncalibrated():
    recognizer = Recognizer.zero_shot("tiny-vit", LABELS)
    recognizer.calibration = None
    return recognizer


@pytest.fixture
def indexed(images, tmp_path):
    """Index images with a recognizer that is calibrated on them without labels."""
    recognizer = uncalibrated().calibrate(Images(images))
    folder = tmp_path / "index"
    index_images_with_recognizer(folder, recognizer, images[:4], model="tiny-vit")
    return folder, recognizer


def test_an_uncalibrated_recognizer_is_refused_before_an_image_is_read(tmp_path):
    message = r"tiny-vit with zero_shot is not calibrated\. .*--calibrate-unlabelled; the result is"
    with pytest.raises(NotFitted, match=message):
        index_images_with_recognizer(tmp_path / "index", uncalibrated(), ["nowhere.jpg"])
    assert not (tmp_path / "index").exists()


def test_an_index_records_a_calibration_without_labels_and_restores_it(indexed, images):
    folder, calibrated = indexed
    recognizer = uncalibrated()
    assert restore_calibration_for_indexing(folder, recognizer)
    assert recognizer.fingerprint == calibrated.fingerprint
    assert recognizer.calibrated_on == calibrated.calibrated_on
    update = index_images_with_recognizer(folder, recognizer, images, model="tiny-vit")
    assert (update.added, update.changed) == (2, 0)
    assert read_calibration_for_indexing(folder) == calibrated.calibrated_on


def test_a_calibrated_recognizer_keeps_its_calibration(indexed):
    folder, _ = indexed
    recognizer = Recognizer.zero_shot("tiny-vit", LABELS)
    description = recognizer.calibrated_on
    assert not restore_calibration_for_indexing(folder, recognizer)
    assert recognizer.calibrated_on == description


def test_the_recognizer_of_a_search_by_sentence_has_the_recorded_calibration(
    images, random_checkpoint, tmp_path
):
    model = f"local-dir:{random_checkpoint}"
    recognizer = Recognizer.zero_shot(model, LABELS).calibrate(Images(images))
    folder = tmp_path / "index"
    index_images_with_recognizer(folder, recognizer, images, model=model)
    loaded = recognizer_of_index(Index.open(folder))
    assert loaded.fingerprint == recognizer.fingerprint


def test_a_calibration_on_labels_is_not_recorded(images, tmp_path):
    recognizer = Recognizer.zero_shot("tiny-vit", LABELS)
    index_images_with_recognizer(tmp_path / "index", recognizer, images[:2], model="tiny-vit")
    recorded = json.loads((tmp_path / "index" / "index.json").read_text())["recognizer"]
    assert (recorded["model"], recorded["labels"]) == ("tiny-vit", LABELS)
    assert set(recorded) == {"model", "labels", "encoder", "scores"}
    assert not restore_calibration_for_indexing(tmp_path / "index", uncalibrated())


def test_without_an_index_there_is_no_calibration(tmp_path):
    assert read_calibration_for_indexing(tmp_path / "index") is None
    assert not restore_calibration_for_indexing(tmp_path / "index", uncalibrated())


def test_an_index_with_an_invalid_calibration_is_refused(indexed, tmp_path):
    folder, _ = indexed
    shutil.copytree(folder, tmp_path / "damaged")
    file = Path(tmp_path, "damaged", "index.json")
    file.write_text(file.read_text().replace('"calibrator"', '"calibratr"'))
    with pytest.raises(DataError, match=r"index\.json is damaged: the checksum does not match"):
        restore_calibration_for_indexing(tmp_path / "damaged", uncalibrated())
