"""A recognizer as an estimator of scikit-learn."""

import inspect
import pickle

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold, cross_val_predict

import surelabel as sl
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.recognizer import Recognizer

NAMES = ["warm", "loud", "heavy"]
SETTINGS = ["encoder.name=features:8", "method.name=linear", "loss.name=spa", "epochs=8"]
RUN = sl.load_run(None, [*SETTINGS, "calibrator.name=platt"])


@pytest.fixture(scope="module")
def vectors():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(120, 8)).astype(np.float32)
    return vectors, (vectors[:, :3] + 0.3 * random.normal(size=(120, 3)) > 0).astype(int)


def test_the_parameters_are_the_arguments_of_the_constructor():
    recognizer = Recognizer(RUN, NAMES)
    arguments = list(inspect.signature(Recognizer.__init__).parameters)[1:]
    assert list(recognizer.get_params()) == arguments
    assert recognizer.get_params()["run"] is RUN
    assert recognizer.get_params(deep=False) == recognizer.get_params()


def test_a_clone_is_not_fitted_and_shares_the_encoder(vectors):
    fitted = Recognizer(RUN, NAMES)
    encoder = fitted.encoder
    copy = clone(fitted.fit(*vectors))
    assert not copy.is_fitted
    assert fitted.is_fitted
    assert copy.encoder is encoder
    assert copy.cache is fitted.cache
    assert copy.run == fitted.run
    np.testing.assert_array_equal(
        copy.fit(*vectors).predict_proba(vectors[0]), fitted.predict_proba(vectors[0])
    )


def test_parameters_can_be_changed(vectors):
    recognizer = Recognizer(RUN, NAMES).fit(*vectors)
    assert recognizer.set_params(names=["other"]) is recognizer
    assert list(recognizer.classes_) == ["other"]
    assert not recognizer.is_fitted
    with pytest.raises(ConfigError, match=r"Parameters must be among run, names, .*; got epochs"):
        recognizer.set_params(epochs=3)


def test_changed_labels_keep_the_encoder_and_another_run_changes_it():
    copy = clone(Recognizer(RUN, NAMES))
    encoder = copy.encoder
    assert copy.get_params()["encoder"] is None
    assert copy.set_params(names=["other"]).encoder is encoder
    narrow = sl.load_run(None, ["encoder.name=features:4", "method.name=linear"])
    assert copy.set_params(run=narrow).encoder.width == 4


def test_fit_with_separate_targets_is_fit_on_labelled_features(vectors):
    together = Recognizer(RUN, NAMES).fit(sl.LabelledFeatures(vectors[0], NAMES, vectors[1]))
    apart = Recognizer(RUN, NAMES).fit(*vectors)
    assert apart.fingerprint == together.fingerprint


def test_calibration_takes_separate_targets(vectors):
    recognizer = Recognizer(RUN, NAMES).fit(*vectors).calibrate(*vectors)
    assert "120 labelled rows" in recognizer.calibrated_on


def test_predicted_probabilities_have_a_column_for_each_class(vectors):
    recognizer = Recognizer(RUN, NAMES).fit(*vectors)
    probabilities = recognizer.predict_proba(vectors[0])
    assert probabilities.shape == (120, len(recognizer.classes_))
    np.testing.assert_array_equal(probabilities, recognizer.predict(vectors[0]).probabilities)


def test_an_uncalibrated_recognizer_has_no_probabilities(vectors):
    run = sl.load_run(
        None, ["encoder.name=features:8", "method.name=linear", "loss.name=two_way", "epochs=1"]
    )
    with pytest.raises(NotFitted, match="Probabilities need a calibrated recognizer"):
        Recognizer(run, NAMES).fit(*vectors).predict_proba(vectors[0])


def test_an_unreadable_image_is_an_error_of_predict_proba(tmp_path):
    damaged = tmp_path / "damaged.jpg"
    damaged.write_bytes(b"nothing")
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "car"])
    good = sl.collection("scenes-80", split="test").paths[0]
    with pytest.raises(DataError, match=r"damaged\.jpg: not an image"):
        recognizer.predict_proba([good, str(damaged)])


def test_cross_validated_probabilities_are_those_of_plain_folds(vectors):
    x, y = vectors
    folds = KFold(4)
    recognizer = Recognizer(RUN, NAMES)
    predicted = cross_val_predict(recognizer, x, y, cv=folds, method="predict_proba")
    expected = np.empty(y.shape)
    for train, test in folds.split(x):
        expected[test] = Recognizer(RUN, NAMES).fit(x[train], y[train]).predict_proba(x[test])
    np.testing.assert_array_equal(predicted, expected)
    assert average_precision_score(y, predicted) > 0.8
    assert not recognizer.is_fitted


def test_paths_are_cross_validated():
    images = sl.collection("scenes-80", split="train").take(range(24))
    columns = np.argsort(-images.targets.sum(axis=0), kind="stable")[:2]
    names = [images.names[column] for column in columns]
    run = sl.load_run(None, ["method.name=linear", "loss.name=spa", "epochs=2"])
    probabilities = cross_val_predict(
        Recognizer(run, names),
        images.paths,
        images.targets[:, columns],
        cv=2,
        method="predict_proba",
    )
    assert probabilities.shape == (24, 2)
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_a_recognizer_is_a_multi_label_classifier():
    assert is_classifier(Recognizer(RUN, NAMES))
    assert Recognizer(RUN, NAMES).__sklearn_tags__().classifier_tags.multi_label


def test_a_pickled_recognizer_predicts_the_same(vectors):
    recognizer = Recognizer(RUN, NAMES).fit(*vectors, folds=3)
    copy = pickle.loads(pickle.dumps(recognizer))
    assert copy.fingerprint == recognizer.fingerprint
    np.testing.assert_array_equal(
        copy.predict_proba(vectors[0]), recognizer.predict_proba(vectors[0])
    )


def test_a_recognizer_of_images_works_in_a_worker_process():
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "car"])
    paths = sl.collection("scenes-80", split="test").paths[:4]
    (probabilities,) = Parallel(n_jobs=2)([delayed(recognizer.predict_proba)(paths)])
    np.testing.assert_allclose(probabilities, recognizer.predict_proba(paths), rtol=1e-4)


def test_targets_with_too_few_columns_are_refused(vectors):
    with pytest.raises(InputError, match="one column per label, 3; got 2"):
        Recognizer(RUN, NAMES).fit(vectors[0], vectors[1][:, :2])


def test_the_representation_names_encoder_method_labels_and_calibration(vectors):
    text = repr(Recognizer(RUN, NAMES))
    for part in ("'features:8'", "'linear'", "'warm, loud, heavy'", "is_fitted=False", "=None"):
        assert part in text
    fitted = Recognizer(RUN, NAMES).fit(*vectors)
    assert "calibrated_on='by its loss alone (spa)'" in repr(fitted)


def test_the_html_representation_escapes_labels():
    html = Recognizer(RUN, ["<b>warm</b>"])._repr_html_()
    assert "&lt;b&gt;warm&lt;/b&gt;" in html
    assert "<b>warm" not in html
