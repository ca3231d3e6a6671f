from dataclasses import replace

import pytest

from surelabel.cluster.tagger import Tagger
from surelabel.cluster.tagging_process import TaggingProcess
from surelabel.errors import DataError, InputError


@pytest.fixture(scope="module")
def settings(recognizer):
    return Tagger(recognizer).settings


def test_a_missing_folder_of_images_is_an_error(settings):
    with pytest.raises(InputError, match="paths, /nowhere, does not exist"):
        TaggingProcess(replace(settings, image_folder="/nowhere"))


def test_a_missing_recognizer_is_an_error(settings, tmp_path, forked_programs):
    with forked_programs(), pytest.raises(InputError, match="cannot load the recognizer"):
        TaggingProcess(replace(settings, recognizer=str(tmp_path / "none")))


@pytest.fixture(scope="module")
def ended_process(settings, images):
    """Return a process that ended, and its predictions of an image."""
    process = TaggingProcess(settings)
    predictions = process.predict(images[:1])
    process.close()
    return process, predictions


def test_a_process_that_ended_is_an_error(ended_process):
    process, _ = ended_process
    with pytest.raises(DataError, match="ended with exit code -9"):
        process.predict(["a.jpg"])


def test_vectors_are_left_out_unless_requested(ended_process, images):
    _, predictions = ended_process
    assert predictions.paths == images[:1]
    assert (predictions.features, predictions.hashes) == (None, None)
