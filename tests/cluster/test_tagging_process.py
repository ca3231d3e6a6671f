from dataclasses import replace

import pytest

from surelabel.cluster.tagger import Tagger
from surelabel.cluster.tagging_process import TaggingProcess
from surelabel.errors import DataError, InputError


@pytest.fixture(scope="module")
def settings(recognizer):
    return Tagger(recognizer).settings


def test_a_missing_folder_of_images_is_an_error(settings):
    with pytest.raises(InputError, match="no folder /nowhere"):
        TaggingProcess(replace(settings, image_folder="/nowhere"))


def test_a_missing_recognizer_is_an_error(settings, tmp_path):
    with pytest.raises(InputError, match="must load the recognizer"):
        TaggingProcess(replace(settings, recognizer=str(tmp_path / "none")))


def test_a_process_that_ended_is_an_error(settings):
    process = TaggingProcess(settings)
    process.close()
    with pytest.raises(DataError, match="ended with exit code -9"):
        process.predict(["a.jpg"])


def test_vectors_are_left_out_unless_requested(settings, images):
    process = TaggingProcess(settings)
    predictions = process.predict(images[:1])
    process.close()
    assert predictions.paths == images[:1]
    assert (predictions.features, predictions.hashes) == (None, None)
