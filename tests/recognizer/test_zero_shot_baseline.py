import shutil

import numpy as np
import pytest

from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer, evaluate
from surelabel.recognizer.zero_shot_baseline import predict_zero_shot_baseline
from surelabel.records import LabelledFeatures, LabelledImages

TEST = collection("scenes-80", split="test").take(range(8))
NAMES = ["lion", "top hat|hat", "star"]


def made(method="tiles", *, cache=None, names=NAMES, **settings):
    run = Run(method=Choice(method, settings))
    return Recognizer(run, names, cache=cache)


def said(recognizer, test=TEST):
    return predict_zero_shot_baseline(recognizer, test, recognizer.predict(test))


def test_it_is_what_plain_zero_shot_says_of_the_same_images_and_names():
    plain = Recognizer.zero_shot("tiny-vit", NAMES).predict(TEST)
    found = said(made())
    np.testing.assert_array_equal(found.scores, plain.scores)
    np.testing.assert_array_equal(found.probabilities, plain.probabilities)
    assert found.calibration == plain.calibration
    assert (list(found.paths), list(found.names)) == (list(plain.paths), list(plain.names))


@pytest.mark.parametrize("settings", [{}, {"templates": "a drawing of a {}"}])
def test_the_plain_encoder_does_not_stand_beside_itself(settings):
    assert said(made("zero_shot", **settings)) is None


def test_zero_shot_in_another_domain_is_another_answer():
    assert said(made("zero_shot", domain="centred")) is not None


def test_images_that_the_method_saw_whole_are_not_encoded_again(tmp_path):
    recognizer = made(cache=FeatureCache(tmp_path))
    predictions = recognizer.predict(TEST)
    kept = recognizer.cache.status()
    assert predict_zero_shot_baseline(recognizer, TEST, predictions) is not None
    assert recognizer.cache.status() == kept


def test_an_encoder_that_knows_no_texts_says_nothing():
    run = Run(encoder=Choice("features:3"), method=Choice("linear"), epochs=1)
    rows = LabelledFeatures(np.eye(3), ["lion"], np.array([[0], [1], [1]]))
    recognizer = Recognizer(run, ["lion"]).fit(rows)
    assert said(recognizer, rows) is None


def test_vectors_of_an_encoder_are_compared_as_they_are():
    plain = Recognizer.zero_shot("tiny-vit", NAMES).predict(TEST)
    rows = LabelledFeatures(plain.features, TEST.names, TEST.targets)
    recognizer = made("standardized").fit(plain.features)
    np.testing.assert_allclose(said(recognizer, rows).scores, plain.scores, atol=0.02)


def test_a_image_that_is_gone_meanwhile_leaves_nothing_to_compare(tmp_path):
    paths = [str(tmp_path / f"{i}.jpg") for i in range(2)]
    for path, here in zip(TEST.paths, paths, strict=False):
        shutil.copy(path, here)
    test = LabelledImages(paths, TEST.names, TEST.targets[:2])
    recognizer = made()
    predictions = recognizer.predict(test)
    (tmp_path / "1.jpg").unlink()
    assert predict_zero_shot_baseline(recognizer, test, predictions) is None


def test_a_image_that_shows_something_else_meanwhile_is_not_compared(tmp_path):
    path = shutil.copy(TEST.paths[0], tmp_path / "0.jpg")
    test = LabelledImages([str(path)], TEST.names, TEST.targets[:1])
    recognizer = made()
    predictions = recognizer.predict(test)
    assert predict_zero_shot_baseline(recognizer, test, predictions) is not None
    shutil.copy(TEST.paths[1], path)
    assert predict_zero_shot_baseline(recognizer, test, predictions) is None


def test_an_evaluation_holds_it_where_it_is_another_answer():
    found = evaluate(made(), TEST)
    assert found.zero_shot_baseline.calibration
    assert found.predictions.calibration is None
    assert evaluate(made("zero_shot"), TEST).zero_shot_baseline is None
