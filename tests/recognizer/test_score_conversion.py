import json

import numpy as np
import pytest
import torch

import surelabel as sl
from surelabel.calibration import Platt
from surelabel.config import Choice, Run
from surelabel.encoders import TEMPLATES, load_encoder
from surelabel.errors import NotFitted
from surelabel.features import FeatureCache
from surelabel.links import Bias, Sigmoid
from surelabel.recognizer import guarantee, operating_point
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.score_conversion import ScoreConversion
from surelabel.recognizer.zero_shot_baseline import predict_zero_shot_baseline
from surelabel.records import calibration_provenance

SCORES = np.array([[-90.0, 1.0], [0.5, 70.0]], np.float32)
VECTORS = np.eye(2, dtype=np.float16)


def test_scores_without_link_and_calibration_have_no_log_odds():
    conversion = ScoreConversion("spa", None, None)
    assert (conversion.logits(SCORES, VECTORS), conversion.description) == (None, None)
    np.testing.assert_array_equal(conversion.calibrator_input(SCORES), SCORES)


def test_without_calibration_the_log_odds_are_those_of_the_link():
    conversion = ScoreConversion("by its loss alone (binary)", Sigmoid(), None)
    np.testing.assert_array_equal(conversion.logits(SCORES, VECTORS), SCORES.clip(-40, 40))
    np.testing.assert_array_equal(conversion.calibrator_input(SCORES), SCORES.clip(-40, 40))
    assert conversion.description == "by its loss alone (binary)"


def test_a_calibration_replaces_the_log_odds_of_the_loss():
    targets = np.array([[0.0, 1.0], [1.0, 0.0]])
    platt = Platt().fit(np.array([[-1.0, 2.0], [1.0, 0.5]]), targets)
    record = CalibrationRecord("platt", platt, "platt on 2 labelled images")
    conversion = ScoreConversion("binary", Sigmoid(), record)
    logits = conversion.logits(SCORES, VECTORS)
    np.testing.assert_allclose(logits, platt.logits(SCORES.clip(-40, 40)), rtol=1e-6)
    assert logits.dtype == np.float32
    assert not np.allclose(logits, SCORES.clip(-40, 40))
    assert conversion.description == "platt on 2 labelled images"


@pytest.fixture(scope="module")
def images():
    return sl.collection("scenes-80", split="test").take(range(6))


@pytest.fixture(scope="module")
def siglip(sigmoid_checkpoint, tmp_path_factory):
    """Return a function that makes zero-shot recognizers of one small SigLIP."""
    encoder = load_encoder(f"local-dir:{sigmoid_checkpoint}")
    cache = FeatureCache(tmp_path_factory.mktemp("cache"))

    def make(names, **settings):
        run = Run(
            encoder=Choice(f"local-dir:{sigmoid_checkpoint}"),
            method=Choice("zero_shot", settings),
        )
        return sl.Recognizer(run, names, encoder=encoder, cache=cache)

    return make


@pytest.mark.parametrize("templates", ["one", "ensemble"])
@pytest.mark.parametrize("names", [["lion"], ["lion", "sofa", "hot dog"]], ids=len)
def test_probabilities_of_siglip_are_those_of_its_scale_and_bias(names, templates, siglip, images):
    recognizer = siglip(names, templates=templates)
    predictions = recognizer.predict(images.paths)
    assert predictions.calibration == recognizer.calibrated_on == "model"
    assert calibration_provenance(predictions.calibration) == "model"
    vectors = torch.tensor(predictions.features.astype(np.float32))
    texts = recognizer.encoder.encode_labels(names, TEMPLATES[templates])
    expected = torch.sigmoid(20 * vectors @ texts.T - 2)
    np.testing.assert_allclose(predictions.probabilities, expected, atol=5e-4)  # vectors in fp16


def test_labels_of_siglip_do_not_change_the_probabilities_of_others(siglip, images):
    alone = siglip(["lion"]).predict(images.paths)
    other = siglip(["lion"]).with_names(["sofa|couch", "lion"]).predict(images.paths)
    assert other.calibration == "model"
    np.testing.assert_allclose(other.logits[:, 1], alone.logits[:, 0], atol=1e-5)


def test_a_saved_siglip_states_its_probabilities_and_predicts_them_again(siglip, images, tmp_path):
    recognizer = siglip(["lion", "sofa"])
    recognizer.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "link.json").read_text()) == {
        "loss": None,
        "model": True,
    }
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "| calibration | model (scale and bias of the encoder) |" in card
    again = sl.Recognizer.load(tmp_path / "saved")
    assert (again.calibrated_on, again.link) == ("model", Bias(bias=-2.0))
    assert again.fingerprint == recognizer.fingerprint
    found, expected = (it.predict(images.paths).logits for it in (again, recognizer))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_siglip_that_was_saved_without_its_bias_keeps_scores_of_the_reference_list(
    siglip, images, tmp_path
):
    today = siglip(["lion", "sofa"], domain="reference")
    today.save(tmp_path / "saved")
    run = tmp_path / "saved" / "run.toml"
    run.write_text(run.read_text().replace('domain = "reference"\n', ""))  # as 0.1.0 wrote it
    again = sl.Recognizer.load(tmp_path / "saved")
    assert (again.calibrated_on, again.fingerprint) == (None, today.fingerprint)
    scores = [it.predict(images.paths).scores for it in (again, again.with_names(["lion", "sofa"]))]
    np.testing.assert_allclose(scores, [today.predict(images.paths).scores] * 2, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{"domain": "reference"}, {"background": ["sky"]}, {"scale": 7.0}], ids=str
)
def test_other_scores_of_siglip_are_no_probabilities(settings, siglip, images):
    recognizer = siglip(["lion", "sofa"], **settings)
    predictions = recognizer.predict(images.paths)
    assert (recognizer.link, predictions.calibration, predictions.logits) == (None, None, None)


def test_operating_points_and_guarantees_refuse_the_probabilities_of_a_model(siglip):
    recognizer = siglip(["lion"])
    refused = pytest.raises(NotFitted, match=r"calibration on images; .* \(calibration: model\)")
    with refused:
        operating_point(recognizer, "cost", miss_cost=2.0)
    with refused:
        operating_point(recognizer, "f1")
    with refused:
        guarantee(recognizer, "at_most_wrong", level=0.1)


def test_a_calibration_replaces_the_probabilities_of_siglip(siglip, images):
    targets = np.array([[1, 0], [0, 1], [1, 0], [0, 0], [1, 1], [0, 1]])
    recognizer = siglip(["lion", "sofa"]).calibrate(images.paths, targets)
    assert recognizer.calibrated_on == "beta on 6 labelled images"
    predictions = recognizer.predict(images.paths)
    uncalibrated = siglip(["lion", "sofa"]).predict(images.paths).logits
    np.testing.assert_allclose(recognizer.uncalibrated_logits(predictions), uncalibrated, atol=1e-5)


def test_an_evaluation_of_siglip_states_that_the_probabilities_are_its_own(siglip, images):
    labels = list(images.names[:3])
    evaluation = sl.evaluate(siglip(labels), images)
    assert evaluation.predictions.calibration == "model"
    assert np.isfinite(evaluation.summary["log_loss"])


def test_the_zero_shot_baseline_of_siglip_has_probabilities(siglip, images):
    recognizer = siglip(["lion", "sofa"], background=["sky"])
    predictions = recognizer.predict(images.paths)
    baseline = predict_zero_shot_baseline(recognizer, images, predictions)
    expected = siglip(["lion", "sofa"]).predict(images.paths)
    assert baseline.calibration == "model"
    np.testing.assert_allclose(baseline.logits, expected.logits, atol=1e-5)
