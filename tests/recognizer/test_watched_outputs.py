import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from surelabel.data import collection
from surelabel.recognizer import Recognizer
from surelabel.recognizer.watched_index import WatchedIndex
from surelabel.recognizer.watched_outputs import WatchedOutputs
from surelabel.storage.stored_images import stored_image_status


@pytest.fixture(scope="module")
def recognizer():
    return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture
def images(tmp_path):
    few = collection("scenes-80", split="test").paths[:3]
    paths = [shutil.copy(path, tmp_path / f"{n}.jpg") for n, path in enumerate(few)]
    return {path: stored_image_status(path) for path in map(str, paths)}


@pytest.fixture
def predictions(recognizer, images):
    """Predictions whose first two images show the first label, and the third image none."""
    predicted = recognizer.predict(list(images))
    shown = np.array([[True, False], [True, False], [False, False]])
    return replace(predicted, shown=shown)


@pytest.fixture
def index(recognizer, tmp_path):
    return WatchedIndex(str(tmp_path / "i"), recognizer, root=str(tmp_path), model="tiny-vit")


def test_an_image_with_a_current_sidecar_was_tagged_before(recognizer, images, predictions):
    outputs = WatchedOutputs(recognizer.fingerprint, naming="stem")
    assert outputs.tagged_before(images) == set()
    written = outputs.write(predictions, {})
    assert (written.refused, written.n_indexed) == ([], None)
    first, second, _ = images
    assert outputs.tagged_before(images) == {first, second}
    os.utime(first, ns=(2**62, 2**62))
    assert outputs.tagged_before(images) == {second}
    assert WatchedOutputs("another", naming="stem").tagged_before(images) == set()
    assert WatchedOutputs(recognizer.fingerprint, naming="full").tagged_before(images) == set()


def test_an_index_states_which_images_were_tagged_before(images, predictions, index):
    outputs = WatchedOutputs(predictions.model, index, naming="stem")
    assert outputs.tagged_before(images) == set()
    assert outputs.write(predictions, {}).n_indexed == 3
    assert outputs.tagged_before(images) == set(images)
    first = next(iter(images))
    changed = images | {first: images[first]._replace(size=1)}
    assert outputs.tagged_before(changed) == set(images) - {first}


def test_a_sidecar_that_can_belong_to_two_images_is_refused_and_all_others_are_written(
    images, predictions, tmp_path, index
):
    (tmp_path / "0.CR2").touch()
    outputs = WatchedOutputs(predictions.model, index, naming="stem")
    refused = outputs.refused_sidecars(images)
    reason = "the sidecar can belong to 0.CR2 or 0.jpg; give --sidecar-name full"
    assert refused == {next(iter(images)): reason}
    written = outputs.write(predictions, refused)
    assert [(r.path, r.reason) for r in written.refused] == [(str(tmp_path / "0.xmp"), reason)]
    assert written.n_indexed == 3
    assert sorted(path.name for path in tmp_path.glob("*.xmp")) == ["1.xmp"]
    assert WatchedOutputs(predictions.model, naming="full").refused_sidecars(images) == {}


def test_without_outputs_no_image_was_tagged_before(images, predictions):
    outputs = WatchedOutputs(predictions.model)
    assert (outputs.tagged_before(images), outputs.refused_sidecars(images)) == (set(), {})
    written = outputs.write(predictions, {})
    assert (written.refused, written.n_indexed) == ((), None)
