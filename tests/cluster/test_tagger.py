import os
import pickle
import signal

import numpy as np
import pytest

from surelabel.cluster.tagger import Tagger
from surelabel.errors import InputError


@pytest.fixture(scope="module")
def tagger(recognizer, forked_programs):
    """Return a tagger whose processes are forked; test_tagging_process.py starts interpreters."""
    with forked_programs(), Tagger(recognizer, has_vectors=True) as tagger:
        yield tagger


def readable(images):
    return [path for path in images if path.endswith(("000.jpg", "001.jpg", "no-image.jpg"))]


def test_a_batch_becomes_a_table_without_unreadable_images(tagger, recognizer, images):
    paths = readable(images)
    table = tagger({"row": np.array([7, 8, 9]), "path": np.array(paths)})
    expected = recognizer.predict(paths)
    assert table["row"].to_pylist() == [7, 8]
    assert table["path"].to_pylist() == expected.paths
    np.testing.assert_allclose(table["logit:lion"], expected.logits[:, 0], atol=1e-5)


def test_images_one_by_one_have_the_same_predictions(tagger, images):
    paths = readable(images)
    together, alone = tagger.predict(paths), tagger.predict_one_by_one(paths)
    assert together.positions.tolist() == alone.positions.tolist() == [0, 1]
    assert together.skipped == alone.skipped
    assert list(together.predictions.hashes) == list(alone.predictions.hashes)
    for name in ("scores", "logits", "features"):
        first, second = getattr(together.predictions, name), getattr(alone.predictions, name)
        np.testing.assert_allclose(first, second, atol=1e-2 if name == "features" else 1e-5)


def test_a_killed_process_is_started_again(tagger, images):
    paths = readable(images)
    expected = tagger.predict(paths)
    os.kill(tagger._process.pid, signal.SIGKILL)
    assert tagger.predict(paths).positions.tolist() == expected.positions.tolist()


def test_a_pickled_tagger_predicts_the_same(tagger, images):
    other = pickle.loads(pickle.dumps(tagger))
    assert other.settings == tagger.settings
    with other:
        assert len(other.predict(readable(images)).predictions) == 2


def test_fewer_than_one_decoder_is_refused(recognizer):
    with pytest.raises(InputError, match="decoders must be 1 or more; got 0"):
        Tagger(recognizer, decoders=0)
