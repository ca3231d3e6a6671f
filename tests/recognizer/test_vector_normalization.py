"""Vectors of recognizers, whose normalization is fitted on training vectors and saved."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import surelabel as sl
from surelabel.config import load_run
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.recognizer import score_pairs
from surelabel.recognizer.fitting import FittingData, fitting_out_of_fold_scores
from surelabel.recognizer.vector_normalization import (
    encoder_with_fitted_normalization,
    image_vector_normalization,
    standardize_fold_vectors,
    text_vector_normalization,
    vector_normalization_description,
)
from surelabel.records import Features, LabelledFeatures, PairFeatures

NAMES = ["warm", "loud"]
OFFSETS, SCALES = np.array([0.0, 300.0, 1.0, -5.0]), np.array([1.0, 40.0, 0.01, 2.0])


def table(n=60, seed=0):
    """Return vectors with columns of different scales, of which two determine the targets."""
    standard = np.random.default_rng(seed).normal(size=(n, 4))
    vectors = (standard * SCALES + OFFSETS).astype(np.float32)
    return vectors, (standard[:, [0, 2]] > 0).astype(float)


def unfitted(*settings):
    defaults = ["encoder.name=features:4", "method.name=linear", "epochs=10"]
    return sl.Recognizer(load_run(None, [*defaults, *settings]), NAMES)


def pairs():
    random = np.random.default_rng(1)
    return PairFeatures(random.normal(3, 2, (9, 4)), random.normal(-1, 5, (9, 3)), np.arange(9))


def test_vectors_that_are_not_of_unit_length_are_standardized_by_default():
    vectors, targets = table()
    recognizer = unfitted().fit(vectors, targets)
    scaler = StandardScaler().fit(vectors.astype(np.float64))
    expected = scaler.transform(vectors[:5]) / 2  # divided by the square root of the width
    np.testing.assert_allclose(recognizer.predict(vectors[:5]).features, expected, atol=2e-3)
    assert "vectors='standardized by the statistics of 60 training vectors'" in repr(recognizer)


def test_standardized_vectors_tell_apart_what_unit_vectors_hide():
    vectors, targets = table(200)
    test, test_targets = table(100, seed=1)
    briers = {
        normalize: np.mean(
            (
                unfitted(f"encoder.normalize={normalize}").fit(vectors, targets).predict_proba(test)
                - test_targets
            )
            ** 2
        )
        for normalize in ("auto", "unit")
    }
    assert briers["auto"] < 0.1 < 0.2 < briers["unit"]


def test_unit_vectors_have_the_same_scores_as_with_unit_length():
    vectors, targets = table()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = (
        unfitted(f"encoder.normalize={normalize}").fit(vectors, targets)
        for normalize in ("auto", "unit")
    )
    assert np.array_equal(first.predict(vectors).scores, second.predict(vectors).scores)
    assert first.fingerprint == second.fingerprint
    assert vector_normalization_description(first.encoder) == "scaled to unit length"


@pytest.mark.parametrize("normalize", ["auto", "standardize", "unit", "none"])
def test_a_loaded_recognizer_states_its_normalization_and_predicts_the_same(normalize, tmp_path):
    vectors, targets = table()
    fitted = unfitted(f"encoder.normalize={normalize}").fit(vectors, targets)
    fitted.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert np.array_equal(loaded.predict(vectors[:1]).logits, fitted.predict(vectors[:1]).logits)
    description = vector_normalization_description(loaded.encoder)
    assert description == vector_normalization_description(fitted.encoder)
    assert f"| vectors | {description} |" in (tmp_path / "saved" / "README.md").read_text()


def test_a_calibration_uses_the_statistics_of_the_training_vectors():
    vectors, targets = table()
    fitted = unfitted().fit(vectors, targets)
    before = fitted.encoder
    shifted = vectors[::2] + 1
    scores = fitted.predict(shifted).scores
    fitted.calibrate(shifted, targets[::2])
    assert fitted.encoder is before
    assert np.array_equal(fitted.predict(shifted).scores, scores)


def test_another_fit_uses_the_statistics_of_its_own_vectors():
    vectors, targets = table()
    recognizer = unfitted().fit(vectors * 100 - 7, targets)
    again, first = recognizer.fit(vectors, targets), unfitted().fit(vectors, targets)
    assert np.array_equal(again.predict(vectors).scores, first.predict(vectors).scores)


def test_a_clone_has_no_statistics():
    vectors, targets = table()
    copy = clone(unfitted().fit(vectors, targets))
    with pytest.raises(NotFitted, match="features:4 must be fitted first"):
        image_vector_normalization(copy.encoder)
    assert "vectors='not fitted yet (normalize=auto)'" in repr(copy)


def test_folds_are_standardized_by_their_training_rows_only():
    vectors, _ = table(20)
    encoder = encoder_with_fitted_normalization(
        load_encoder("features:4"), LabelledFeatures(vectors, (), np.zeros((20, 0)))
    )
    normalized = image_vector_normalization(encoder).normalize(vectors)
    train, test = standardize_fold_vectors(
        encoder, Features(normalized[:15]), Features(normalized[15:])
    )
    scaler = StandardScaler().fit(vectors[:15].astype(np.float64))
    np.testing.assert_allclose(train.pooled, scaler.transform(vectors[:15]) / 2, atol=1e-5)
    np.testing.assert_allclose(test.pooled, scaler.transform(vectors[15:]) / 2, atol=1e-5)


def test_out_of_fold_scores_are_those_of_a_recognizer_of_the_other_folds():
    vectors, targets = table(24)
    fold = np.arange(24) % 3
    whole = unfitted().fit(vectors, targets)
    pooled = image_vector_normalization(whole.encoder).normalize(vectors)
    data = FittingData(
        [f"row {i}" for i in range(24)],
        Features(pooled),
        torch.from_numpy(targets).float(),
        torch.ones(24, 2, dtype=torch.bool),
    )
    scores = fitting_out_of_fold_scores(whole.run, whole.encoder, NAMES, data, fold=fold)
    other = unfitted().fit(vectors[fold != 1], targets[fold != 1])
    np.testing.assert_allclose(
        scores[fold == 1], other.predict(vectors[fold == 1]).scores, atol=1e-4
    )


def test_images_and_captions_have_their_own_statistics(tmp_path):
    settings = ["method.name=cosine_projection", "method.text_width=3", "epochs=1"]
    run = load_run(None, ["encoder.name=features:4", *settings])
    fitted = sl.Recognizer(run, []).fit(pairs())
    for normalization, vectors in (
        (image_vector_normalization(fitted.encoder), pairs().image_vectors),
        (text_vector_normalization(fitted.encoder), pairs().text_vectors),
    ):
        np.testing.assert_allclose(normalization.mean, vectors.mean(axis=0), rtol=1e-5)
    scores = score_pairs(fitted, pairs()).scores
    fitted.save(tmp_path / "saved")
    loaded = sl.Recognizer.load(tmp_path / "saved")
    assert np.array_equal(score_pairs(loaded, pairs()).scores, scores)


def test_vectors_for_an_encoder_of_images_have_unit_length():
    source = LabelledFeatures(np.full((2, 128), 9.0), (), np.zeros((2, 0)))
    encoder = load_encoder("tiny-vit")
    assert encoder_with_fitted_normalization(encoder, source) is encoder
    assert image_vector_normalization(encoder).kind == "unit"
    assert text_vector_normalization(encoder).kind == "unit"
    assert vector_normalization_description(encoder) is None


def test_what_cannot_be_normalized_is_refused():
    vectors, targets = table()
    with pytest.raises(InputError, match="at least 2 training vectors; got 1"):
        unfitted().fit(vectors[:1], targets[:1])
    vectors[7] = 0
    with pytest.raises(InputError, match=r"\(first: row 7\). Remove .* encoder.normalize"):
        unfitted("encoder.normalize=unit").fit(vectors, targets)
    assert unfitted().fit(vectors, targets).is_fitted
    vectors[7] = np.nan
    with pytest.raises(InputError, match="features must be finite"):
        unfitted().fit(vectors, targets)
    with pytest.raises(ConfigError, match="one of auto, standardize, unit, none; got 'l2'"):
        unfitted("encoder.normalize=l2")
    with pytest.raises(ConfigError, match=r"has no setting norm\. Its settings are: {'normalize'"):
        unfitted("encoder.norm=unit")


def test_values_beyond_fp16_are_clipped_in_predictions_of_vectors_without_normalization():
    vectors, targets = table()
    recognizer = unfitted("encoder.normalize=none", "epochs=1").fit(vectors, targets)
    vectors[0] = [1e6, -1e6, 1.0, 0.0]
    found = recognizer.predict(vectors[:1]).features
    assert found.tolist() == [[65504.0, -65504.0, 1.0, 0.0]]
