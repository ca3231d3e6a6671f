from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench.base_new_predictions import (
    BaseNewFit,
    BaseNewPredictions,
    SynthesizedFit,
    base_new_readouts,
    predict_base_and_new,
)
from surelabel.bench.base_new_splits import BaseNewSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.calibration import Dac, LabelTexts, Platt
from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.recognizer import Recognizer
from surelabel.records import Captions, LabelledImages, LabelledTexts


@pytest.fixture(scope="module")
def images():
    few = {}
    for split, size in (("train", 60), ("validation", 12), ("test", 8)):
        each = collection("scenes-80", split=split).take(range(size))
        columns = np.argsort(-collection("scenes-80", split="train").targets.sum(axis=0))[:4]
        names = [each.names[column] for column in columns]
        few[split] = LabelledImages(each.paths, names, each.targets[:, columns])
    few["validation"] = replace(few["validation"], targets=np.eye(12, 4) + np.eye(12, 4, k=-5))
    return BaseNewSplits(
        name="few",
        encoder_name="tiny-vit",
        captions=Captions([f"a {name}" for name in few["train"].names]),
        large_train=few["train"],
        **few,
    )


def fit_with(images, **settings):
    run = Run(encoder=Choice("tiny-vit"), epochs=2, batch_size=8, **settings)
    return BaseNewFit(run, "halves", shots=2)


def test_predictions_are_those_of_a_recognizer_with_the_new_labels(images, tmp_path):
    fit = fit_with(images, method=Choice("clip_adapter"))
    predictions = predict_base_and_new(ResultCache(tmp_path), images, fit)
    names = list(images.test.names)
    recognizer = Recognizer(fit.run, names[:2]).fit(fit.training_data(images))
    expected = recognizer.with_names(names).predict(images.test).logits
    np.testing.assert_allclose(predictions.test, expected, atol=1e-5)
    assert predictions.validation.shape == (12, 2)
    cache = ResultCache(tmp_path)
    again = predict_base_and_new(cache, images, fit)
    np.testing.assert_array_equal(again.test, predictions.test)
    assert cache.n_computed == 0


def test_raw_scores_of_a_loss_without_link_are_kept(images, tmp_path):
    fit = fit_with(images, method=Choice("clip_adapter"), loss=Choice("ranking"))
    predictions = predict_base_and_new(ResultCache(tmp_path), images, fit)
    raw = base_new_readouts(predictions, images, fit)["raw"]["photo"]
    np.testing.assert_array_equal(raw, predictions.test)


def test_a_method_that_learns_from_texts_is_fitted_on_captions(images, tmp_path):
    fit = fit_with(images, method=Choice("tai"))
    data = fit.training_data(images)
    assert isinstance(data, LabelledTexts)
    assert list(data.names) == list(images.test.names[:2])
    predictions = predict_base_and_new(ResultCache(tmp_path), images, fit)
    assert predictions.test.shape == (8, 4)
    assert fit.steps_per_epoch(data) == -(-(len(data) + 2 * 81) // fit.run.batch_size)
    assert (predictions.texts.tuned != predictions.texts.zero_shot).any()


def test_synthesized_images_have_the_labels_of_their_captions(images):
    run = Run(encoder=Choice("tiny-vit"), method=Choice("t2i_pal"), seed=1)
    fit = SynthesizedFit(run, "halves", 1, training_domain="sketch")
    data, again = fit.training_data(images), fit.training_data(images)
    assert isinstance(data, LabelledImages)
    assert list(data.names) == list(images.test.names[:2])
    np.testing.assert_array_equal(data.targets, np.eye(2))
    assert data.known.all()
    assert list(data.paths) == list(again.paths)
    other = replace(fit, run=replace(run, seed=2)).training_data(images)
    assert not set(other.paths) & set(data.paths)


def test_the_shared_calibrator_is_platt_and_dac_multiplies_new_labels(images):
    random = np.random.default_rng(0)
    texts = LabelTexts(random.normal(size=(4, 5)), random.normal(size=(4, 5)))
    validation, test = random.normal(size=(12, 2)), random.normal(size=(8, 4))
    predictions = BaseNewPredictions(validation, test, {}, texts, 0, 0.0)
    fit = fit_with(images, method=Choice("clip_adapter"))
    readouts = base_new_readouts(predictions, images, fit)
    platt = Platt().fit(validation, images.validation.targets[:, :2])
    np.testing.assert_allclose(readouts["calibrated"]["photo"], platt.slope_ * test + platt.shift_)
    dac = Dac().fit(validation, images.validation.targets[:, :2])
    base = LabelTexts(texts.zero_shot[:2], texts.tuned[:2])
    with_dac = base_new_readouts(predictions, images, fit, dac=True)
    expected = dac.with_label_texts(base, texts).logits(test)
    np.testing.assert_allclose(with_dac["calibrated"]["photo"], expected)
    ratio = with_dac["raw"]["photo"] / test
    np.testing.assert_allclose(ratio[:, :2], 1)
    assert (ratio[:, 2:] != 1).all()
