import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import surelabel as sl
from surelabel.config import Choice
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.recognizer import index_images_with_recognizer, rescore_index
from surelabel.recognizer.index_calibration import recognizer_record_of_index
from surelabel.recognizer.index_rescoring import score_index_vectors
from surelabel.retrieval import Index

SAVED_INDEX = Path(__file__).parents[1] / "saved" / "0.1.0" / "index"


@pytest.fixture(scope="module")
def images():
    return [str(path) for path in sl.collection("scenes-80", split="test").paths[:12]]


@pytest.fixture(scope="module")
def recognizer():
    return sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture
def folder(images, recognizer, tmp_path):
    index_images_with_recognizer(tmp_path / "index", recognizer, images, model="tiny-vit")
    return tmp_path / "index"


def test_a_rescored_index_has_the_probabilities_of_encoding_again(folder, images, recognizer):
    other, steps = recognizer.with_names(["guitar", "piano", "lion"]), []
    index = rescore_index(folder, other, progress=lambda *step: steps.append(step))
    assert steps == [(12, 12)]
    assert index.names == ["guitar", "piano", "lion"]
    expected = other.predict(images).logits.astype(float)
    for column, name in enumerate(index.names):
        found = index.probabilities(name)
        np.testing.assert_allclose(np.log(found / (1 - found)), expected[:, column], atol=0.02)
    update = index_images_with_recognizer(folder, other, images, model="tiny-vit")
    assert (update.added, update.changed, update.removed) == (0, 0, 0)
    assert Index.open(folder).recognizer.labels == ("guitar", "piano", "lion")


def test_scores_of_the_stored_vectors_are_those_of_the_method(recognizer, images):
    predicted = recognizer.predict(images)
    logits, scores = score_index_vectors(recognizer, predicted.features)
    np.testing.assert_allclose(scores, predicted.scores, atol=2e-3 * np.abs(scores).max())
    np.testing.assert_allclose(logits, predicted.logits, atol=0.02)


def test_without_vectors_a_new_calibration_is_applied_to_the_raw_scores(
    images, recognizer, tmp_path
):
    made = replace(recognizer.predict(images), features=None)
    record = recognizer_record_of_index(recognizer, "tiny-vit")
    Index.create(tmp_path / "index", made, recognizer=record).remove(images[:1])
    other = recognizer.with_names(recognizer.names)
    other.calibrate(sl.collection("scenes-80", split="validation").take(range(300)))
    index = rescore_index(tmp_path / "index", other)
    predicted = other.predict(images[1:])
    for column, name in enumerate(index.names):
        np.testing.assert_allclose(
            index.probabilities(name), predicted.probabilities[:, column], rtol=1e-5
        )
    assert index.calibration == other.calibrated_on != recognizer.calibrated_on
    with pytest.raises(InputError, match=r"no image vectors\. Therefore, the recognizer must"):
        rescore_index(tmp_path / "index", recognizer.with_names(["lion", "piano"]))
    Index.create(tmp_path / "bare", made, recognizer=replace(record, scores=None))
    with pytest.raises(
        InputError, match=r"the method and the weights of the index; got a different"
    ):
        rescore_index(tmp_path / "bare", recognizer)


def test_a_recognizer_that_cannot_rescore_an_index_is_refused(folder, recognizer, tmp_path):
    content = (folder / "index.json").read_bytes()
    labels = ["lion", "guitar"]
    tiles = sl.Run(encoder=Choice("tiny-vit"), method=Choice("tiles"))
    with pytest.raises(ConfigError, match=r"one vector for each image; tiles also needs"):
        rescore_index(folder, sl.Recognizer(tiles, labels))
    with pytest.raises(InputError, match=r"come from the encoder of tiny-vit .* got tiny-rn"):
        rescore_index(folder, sl.Recognizer.zero_shot("tiny-rn", labels))
    uncalibrated = sl.Recognizer.zero_shot("tiny-vit", labels, templates="a sketch of {}")
    with pytest.raises(NotFitted, match="not calibrated"):
        rescore_index(folder, uncalibrated)
    assert (folder / "index.json").read_bytes() == content
    old = shutil.copytree(SAVED_INDEX, tmp_path / "old")
    with pytest.raises(
        InputError, match=r"old does not record.*the images and --model of the index"
    ):
        rescore_index(old, recognizer)


def test_a_rescored_index_of_version_1_has_the_dates_of_moved_images(images, recognizer, tmp_path):
    folder = shutil.copytree(SAVED_INDEX, tmp_path / "index")
    listed = folder / "index.json"
    fields = json.loads(listed.read_text())
    labels = fields["names"]
    other = recognizer.with_names(labels)
    record = {"model": "tiny-vit", "labels": labels, "encoder": other.encoder.fingerprint}
    listed.write_text(json.dumps(fields | {"recognizer": record}))
    root = Path(images[0]).parent
    index = rescore_index(folder, other, root=root)
    assert index.root == str(root)
    assert Index.open(folder).root == str(root)
    (rows,) = folder.glob("rows-*.parquet")
    table = pq.read_table(rows)
    assert len(table) == 40
    assert table["date"].null_count == table["width"].null_count == 0


def test_image_vectors_of_another_width_are_refused(images, recognizer, tmp_path):
    made = replace(recognizer.predict(images), features=np.ones((12, 5), np.float16))
    record = recognizer_record_of_index(recognizer, "tiny-vit")
    Index.create(tmp_path, made, recognizer=record)
    with pytest.raises(InputError, match=r"must have the width of tiny-vit, 128; got 5\."):
        rescore_index(tmp_path, recognizer)


def test_an_index_of_an_unexpected_recognizer_is_not_changed(folder, recognizer):
    revision = Index.open(folder).revision
    with pytest.raises(DataError, match="another process replaced them by those of"):
        rescore_index(folder, recognizer, expected_model="0" * 16)
    assert Index.open(folder).revision == revision
    rescore_index(folder, recognizer, expected_model=recognizer.fingerprint)
    assert Index.open(folder).revision != revision
